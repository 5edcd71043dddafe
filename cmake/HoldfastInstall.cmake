# What `cmake --install` copies: the library, its headers, the command, the scripts for
# other languages, the manual page, and what pkg-config and find_package need to know.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
set(libraries holdfast)
if(BUILD_SHARED_LIBS)
  list(APPEND libraries holdfast_shared)
endif()
install(TARGETS ${libraries} EXPORT holdfast
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT holdfast NAMESPACE holdfast:: DESTINATION "${config_dir}"
  FILE holdfastTargets.cmake)
if(TARGET holdfast_command)
  install(TARGETS holdfast_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_BINARY_DIR}/lua" DESTINATION "${CMAKE_INSTALL_DATADIR}/holdfast")
file(GLOB manuals CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.1")
install(FILES ${manuals} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

# The prefix is found from where the file is, so that what is installed may be moved.
file(RELATIVE_PATH up_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/holdfast.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/holdfastConfig.cmake "${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
  DESTINATION "${config_dir}")
