# `cmake --install` and find_package(CommsIR): libraries (CommsIR::commsir is the C
# one), headers, tools, and a package file that finds the MLIR they were built with.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/commsir")

install(TARGETS CommsIRDialect CommsIRLowering CommsIRRuntime
  EXPORT CommsIRTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS commsir EXPORT CommsIRTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(tools GLOBAL PROPERTY COMMSIR_TOOLS)
install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET CommsIRPlugin)
  install(TARGETS CommsIRPlugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY dialect lowering runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/commsir
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN "*.def")
install(DIRECTORY "${PROJECT_BINARY_DIR}/dialect" "${PROJECT_BINARY_DIR}/lowering"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/commsir
  FILES_MATCHING PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
install(EXPORT CommsIRTargets NAMESPACE CommsIR:: DESTINATION ${package_dir})

configure_package_config_file(cmake/CommsIRConfig.cmake.in
  "${PROJECT_BINARY_DIR}/CommsIRConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/CommsIRConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/CommsIRConfig.cmake"
  "${PROJECT_BINARY_DIR}/CommsIRConfigVersion.cmake" DESTINATION ${package_dir})
