# The paths of installed files. In a wheel, all files lie in the package. A wheel contains no symbolic
# links, so the library is one file there: libisthmus.so.<major>.

include(GNUInstallDirs)
if(SKBUILD)
  set(ISTHMUS_INSTALL_LIBDIR isthmus/lib)
  set(ISTHMUS_INSTALL_INCLUDEDIR isthmus/include)
  set(ISTHMUS_FILE_VERSION ${PROJECT_VERSION_MAJOR})
  set(ISTHMUS_NAMELINK NAMELINK_SKIP)
  set(ISTHMUS_PC_LIB "-l:libisthmus.so.${PROJECT_VERSION_MAJOR}")
else()
  set(ISTHMUS_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  set(ISTHMUS_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
  set(ISTHMUS_FILE_VERSION ${PROJECT_VERSION})
  set(ISTHMUS_NAMELINK "")
  set(ISTHMUS_PC_LIB "-listhmus")
endif()
set(ISTHMUS_INSTALL_CMAKEDIR ${ISTHMUS_INSTALL_LIBDIR}/cmake/isthmus)
set(ISTHMUS_INSTALL_PCDIR ${ISTHMUS_INSTALL_LIBDIR}/pkgconfig)
