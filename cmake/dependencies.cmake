# Every third-party package is found here, once. The folder that uses it is named beside it.
find_package(fmt CONFIG REQUIRED)                        # everywhere
find_package(OpenSSL REQUIRED)                           # base: SHA-256; http: TLS
find_package(TBB CONFIG REQUIRED)                        # base: threads
find_package(hwy CONFIG REQUIRED)                        # kernels, quant: SIMD
if(NOT CLEFKIT_LIBRARY_ONLY)
  find_package(CLI11 CONFIG REQUIRED)                    # cli
endif()
if(NOT CLEFKIT_LIBRARY_ONLY)
  find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS headers)   # http: Beast, Asio
  find_package(spdlog CONFIG REQUIRED)                   # server: the request log
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)   # text: NFC
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)       # text: the pre-tokenizer's pattern
if(NOT CLEFKIT_LIBRARY_ONLY)
  pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)         # http: compressed bodies
  # media: only the decoder's program links these
  pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)
  pkg_check_modules(webp REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
  find_package(PNG REQUIRED)
  find_package(GIF REQUIRED)
  if(NOT APPLE)
    pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
  endif()
  if(CLEFKIT_VIDEO STREQUAL "ON")
    pkg_check_modules(ffmpeg REQUIRED IMPORTED_TARGET libavformat libavcodec libavutil libswscale)
  elseif(CLEFKIT_VIDEO STREQUAL "AUTO")
    pkg_check_modules(ffmpeg QUIET IMPORTED_TARGET libavformat libavcodec libavutil libswscale)
  endif()
endif()
if(CLEFKIT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(CLEFKIT_BUILD_BENCHMARKS)
  find_package(benchmark CONFIG QUIET)
  pkg_check_modules(openblas QUIET IMPORTED_TARGET openblas)       # kernels: the benchmark's yardstick only
endif()
