# `cmake --install build` gives `find_package(clefkit)`: the static libraries, their headers, the program.
include(CMakePackageConfigHelpers)

get_property(clefkit_libraries GLOBAL PROPERTY CLEFKIT_LIBRARIES)
install(TARGETS ${clefkit_libraries} EXPORT clefkitTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET clefkit)
  install(TARGETS clefkit clefkit_media_decoder RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET clefkit_ane_compiler)
    install(TARGETS clefkit_ane_compiler RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/models/nano/clef-nano/manifest.json)
    install(DIRECTORY models/nano/clef-nano DESTINATION ${CMAKE_INSTALL_DATADIR}/clefkit/models)
  endif()
endif()
install(DIRECTORY clefkit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT clefkitTargets NAMESPACE clefkit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/clefkit)
configure_package_config_file(cmake/clefkitConfig.cmake.in ${CMAKE_BINARY_DIR}/clefkitConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/clefkit)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/clefkitConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/clefkitConfig.cmake ${CMAKE_BINARY_DIR}/clefkitConfigVersion.cmake
              cmake/dependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/clefkit)

if(CLEFKIT_BUILD_FUZZERS)
  get_property(clefkit_fuzzers GLOBAL PROPERTY CLEFKIT_FUZZERS)
  add_custom_target(fuzzers DEPENDS ${clefkit_fuzzers})
  list(JOIN clefkit_fuzzers "\n" fuzzer_lines)
  file(WRITE ${CMAKE_BINARY_DIR}/fuzzers.txt "${fuzzer_lines}\n")
endif()
