# Every third-party package is found here, once. The folder that uses it is named beside it.
find_package(fmt CONFIG REQUIRED)                        # everywhere
find_package(OpenSSL REQUIRED)                           # base: SHA-256; http: TLS
find_package(TBB CONFIG REQUIRED)                        # base: threads
find_package(hwy CONFIG REQUIRED)                        # kernels, quant: SIMD
if(NOT CLEFKIT_LIBRARY_ONLY)
  find_package(CLI11 CONFIG REQUIRED)                    # cli
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)   # text: NFC
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)       # text: the pre-tokenizer's pattern
if(CLEFKIT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(CLEFKIT_BUILD_BENCHMARKS)
  find_package(benchmark CONFIG QUIET)
  pkg_check_modules(openblas QUIET IMPORTED_TARGET openblas)       # kernels: the benchmark's yardstick only
endif()
