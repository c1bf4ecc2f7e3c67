# clefkit_library(NAME SOURCES ... DEPENDS ... LIBRARIES ... TESTS ... SLOW_TESTS ... TEST_LIBRARIES ... FUZZERS ... BENCHMARKS ...)
#
# One static library per folder. DEPENDS names other clefkit folders and so repeats the table of
# docs/architecture.md; LIBRARIES are third-party targets, which stay private to the folder.
# TESTS become one GoogleTest binary; SLOW_TESTS are x_test.cc files with one program each, which
# take minutes (CTest label `slow`); FUZZERS are x_fuzz.cc files with one libFuzzer target each;
# BENCHMARKS are x_bench.cc files with one program each.
set(CLEFKIT_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                     -Wnon-virtual-dtor -Woverloaded-virtual -Werror)

# What every test, and every program a test starts, finds in its environment.
set(CLEFKIT_TEST_ENVIRONMENT "CLEFKIT_SANITIZED=0")
if(CLEFKIT_SANITIZE)
  set(CLEFKIT_TEST_ENVIRONMENT "CLEFKIT_SANITIZED=1")
endif()

function(clefkit_compile_options target)
  # Contraction would let the compiler choose where a multiply-add rounds once; kernels say it themselves.
  target_compile_options(${target} PRIVATE ${CLEFKIT_WARNINGS} -ffp-contract=off)
  if(CLEFKIT_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${CLEFKIT_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    # Asio has fences, which ThreadSanitizer does not follow: g++ warns of each.
    if(CLEFKIT_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PUBLIC -Wno-tsan)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${CLEFKIT_SANITIZE})
  endif()
  if(CLEFKIT_BUILD_FUZZERS)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link,address,undefined
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# clefkit_test_program(NAME LIBRARIES ... SOURCES ...)
function(clefkit_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_UNPARSED_ARGUMENTS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE CLEFKIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  clefkit_compile_options(${name})
endfunction()

function(clefkit_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;SLOW_TESTS;TEST_LIBRARIES;FUZZERS;BENCHMARKS" ${ARGN})
  set(target clefkit_${name})
  set(depends ${ARG_DEPENDS})
  list(TRANSFORM depends PREPEND clefkit_)
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "clefkit_library(${name}): no SOURCES")
  endif()
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(clefkit::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${depends} fmt::fmt PRIVATE ${ARG_LIBRARIES})
  clefkit_compile_options(${target})
  set_property(GLOBAL APPEND PROPERTY CLEFKIT_LIBRARIES ${target})

  if(CLEFKIT_BUILD_TESTS AND ARG_TESTS)
    clefkit_test_program(${name}_test ${target} ${ARG_TEST_LIBRARIES} SOURCES ${ARG_TESTS})
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600
                         ENVIRONMENT "${CLEFKIT_TEST_ENVIRONMENT}")
  endif()
  if(CLEFKIT_BUILD_TESTS)
    foreach(source ${ARG_SLOW_TESTS})
      get_filename_component(test ${source} NAME_WE)
      clefkit_test_program(${test} ${target} ${ARG_TEST_LIBRARIES} SOURCES ${source})
      add_test(NAME ${test} COMMAND ${test})
      set_tests_properties(${test} PROPERTIES LABELS slow TIMEOUT 3600
                           ENVIRONMENT "${CLEFKIT_TEST_ENVIRONMENT}")
    endforeach()
  endif()
  if(CLEFKIT_BUILD_FUZZERS)
    foreach(source ${ARG_FUZZERS})
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      target_link_libraries(${fuzzer} PRIVATE ${target})
      clefkit_compile_options(${fuzzer})
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY CLEFKIT_FUZZERS ${fuzzer})
    endforeach()
  endif()
  if(CLEFKIT_BUILD_BENCHMARKS AND benchmark_FOUND AND NOT CLEFKIT_SANITIZE)
    foreach(source ${ARG_BENCHMARKS})
      get_filename_component(bench ${source} NAME_WE)
      add_executable(${bench} ${source})
      target_link_libraries(${bench} PRIVATE ${target} benchmark::benchmark)
      if(TARGET PkgConfig::openblas)
        target_link_libraries(${bench} PRIVATE PkgConfig::openblas)
        target_compile_definitions(${bench} PRIVATE CLEFKIT_HAVE_OPENBLAS)
      endif()
      clefkit_compile_options(${bench})
    endforeach()
  endif()
endfunction()
