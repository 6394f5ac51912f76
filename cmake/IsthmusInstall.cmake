# Installs the library, its headers, and the files for find_package(isthmus) and pkg-config.

include(CMakePackageConfigHelpers)

install(TARGETS isthmus EXPORT isthmusTargets
  LIBRARY DESTINATION ${ISTHMUS_INSTALL_LIBDIR} ${ISTHMUS_NAMELINK})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/isthmus"
  DESTINATION ${ISTHMUS_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT isthmusTargets NAMESPACE isthmus:: DESTINATION ${ISTHMUS_INSTALL_CMAKEDIR})

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/isthmusConfig.cmake.in" "${PROJECT_BINARY_DIR}/isthmusConfig.cmake"
  INSTALL_DESTINATION ${ISTHMUS_INSTALL_CMAKEDIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/isthmusConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/isthmusConfig.cmake"
  "${PROJECT_BINARY_DIR}/isthmusConfigVersion.cmake" DESTINATION ${ISTHMUS_INSTALL_CMAKEDIR})

# Relocatable: the prefix is derived from the location of the .pc file.
foreach(dir LIBDIR INCLUDEDIR)
  file(RELATIVE_PATH ISTHMUS_PC_${dir}
    "/${ISTHMUS_INSTALL_PCDIR}" "/${ISTHMUS_INSTALL_${dir}}")
endforeach()
configure_file("${CMAKE_CURRENT_LIST_DIR}/isthmus.pc.in" "${PROJECT_BINARY_DIR}/isthmus.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/isthmus.pc" DESTINATION ${ISTHMUS_INSTALL_PCDIR})
