# What `cmake --install` copies, in three components, each a package of packaging/debian:
# `command` (the command, what shells, man and systemd know of it, scripts, documents),
# `runtime` (the shared library), `development` (headers, the libraries to link with, and
# what pkg-config and find_package need to know). Everything is found from where it lies,
# so that the whole of it may be moved.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
set(data "${CMAKE_INSTALL_DATADIR}")
set(HOLDFAST_ZSH_DIR "${data}/zsh/site-functions" CACHE STRING
  "Where zsh looks for completions, below the prefix")
set(HOLDFAST_UNIT_DIR "lib/systemd/system" CACHE STRING
  "Where systemd looks for units, below the prefix")

install(TARGETS holdfast EXPORT holdfast
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
if(HOLDFAST_SHARED)
  install(TARGETS holdfast_shared EXPORT holdfast
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime
      NAMELINK_COMPONENT development
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
endif()
install(EXPORT holdfast NAMESPACE holdfast:: DESTINATION "${config_dir}"
  FILE holdfastTargets.cmake COMPONENT development)

cmake_path(SET pc_dir NORMALIZE "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(NOT IS_ABSOLUTE "${pc_dir}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  file(RELATIVE_PATH up "/${pc_dir}" "/.")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
else() # asked for fixed places
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/holdfast.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/holdfastConfig.cmake "${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
  DESTINATION "${config_dir}" COMPONENT development)

install(TARGETS holdfast_command
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
get_property(scripts GLOBAL PROPERTY HOLDFAST_SCRIPTS)
install(FILES ${scripts} DESTINATION "${data}/holdfast/lua" COMPONENT command)
file(GLOB acl CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/packaging/acl/*.acl")
install(FILES ${acl} DESTINATION "${data}/holdfast/acl" COMPONENT command)
foreach(section IN ITEMS 1 5)
  file(GLOB manuals CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.${section}")
  install(FILES ${manuals}
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT command)
endforeach()
install(FILES completions/holdfast.bash RENAME holdfast
  DESTINATION "${data}/bash-completion/completions" COMPONENT command)
install(FILES completions/_holdfast DESTINATION "${HOLDFAST_ZSH_DIR}" COMPONENT command)
install(FILES completions/holdfast.fish
  DESTINATION "${data}/fish/vendor_completions.d" COMPONENT command)
install(FILES "packaging/holdfast-worker@.service"
  DESTINATION "${HOLDFAST_UNIT_DIR}" COMPONENT command)

# Where `holdfast` looks for them (cli/helper_path.c).
if(TARGET holdfast_dashboard_command)
  install(TARGETS holdfast_dashboard_command holdfast_metrics_command
    RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/holdfast" COMPONENT dashboard)
  install(FILES packaging/holdfast-dashboard.service
    DESTINATION "${HOLDFAST_UNIT_DIR}" COMPONENT dashboard)
  install(FILES packaging/prometheus/holdfast.rules.yml
    DESTINATION "${data}/holdfast/prometheus" COMPONENT dashboard)
  install(FILES packaging/grafana/holdfast.json
    DESTINATION "${data}/holdfast/grafana" COMPONENT dashboard)
endif()

# A package says where the licence is in its own way, so that is a component of its own.
# The documents keep their folders, so that the links between them lead somewhere.
file(GLOB documents CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/docs/*.md" "${PROJECT_SOURCE_DIR}/docs/*.svg")
install(FILES README.md CHANGELOG.md CONTRIBUTING.md
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT command)
install(FILES ${documents} DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" COMPONENT command)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT license)
file(GLOB examples CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/examples/*.c" "${PROJECT_SOURCE_DIR}/examples/*.yaml")
file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.py")
file(GLOB handlers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/handlers/*")
set(examples_dir "${CMAKE_INSTALL_DOCDIR}/examples")
install(FILES ${examples} DESTINATION "${examples_dir}" COMPONENT command)
install(PROGRAMS ${programs} DESTINATION "${examples_dir}" COMPONENT command)
install(PROGRAMS ${handlers} DESTINATION "${examples_dir}/handlers" COMPONENT command)
foreach(application reports thumbnails webhooks)
  set(from "${PROJECT_SOURCE_DIR}/examples/${application}")
  file(GLOB files CONFIGURE_DEPENDS "${from}/*.md" "${from}/*.yaml" "${from}/*.py" "${from}/*.mjs"
    "${from}/*.go" "${from}/go.*")
  install(FILES ${files} DESTINATION "${examples_dir}/${application}" COMPONENT command)
endforeach()

if(PROJECT_IS_TOP_LEVEL AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  include(HoldfastPackage)
endif()
