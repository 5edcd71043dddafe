# Debian packages, made by `./dev package` (cpack -G DEB): holdfast, holdfast-dashboard,
# libholdfast0.2 and libholdfast-dev, from the components of HoldfastInstall.cmake. What Debian wants beside
# them is in packaging/debian. Included where the prefix is /usr, as packages have it.
set(HOLDFAST_MAINTAINER "Nobody <nobody@localhost>" CACHE STRING
  "Who made the package, as name and address")
set(debian "${PROJECT_SOURCE_DIR}/packaging/debian")
set(package_command holdfast)
set(package_runtime "libholdfast${HOLDFAST_SOVERSION}")
set(package_development libholdfast-dev)
set(package_dashboard holdfast-dashboard)
set(components command runtime development)
if(TARGET holdfast_dashboard_command)
  list(APPEND components dashboard)
endif()

# Each package has its own licence and changelog. The date is that of the last change.
string(TIMESTAMP HOLDFAST_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, if set
configure_file("${debian}/changelog.in" changelog.Debian @ONLY)
foreach(component IN LISTS components)
  install(FILES "${debian}/copyright" "${PROJECT_BINARY_DIR}/changelog.Debian"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package_${component}}"
    COMPONENT ${component})
endforeach()

# control_files(VARIABLE COMPONENT UNITS): what dpkg runs, for these units of systemd.
function(control_files variable component units)
  set(folder "${PROJECT_BINARY_DIR}/control/${component}")
  set(files "")
  foreach(name IN ITEMS postinst prerm postrm)
    configure_file("${debian}/${name}" "${folder}/${name}" @ONLY)
    list(APPEND files "${folder}/${name}")
  endforeach()
  set(${variable} "${files}" PARENT_SCOPE)
endfunction()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME holdfast)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${debian}/finish.cmake")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${HOLDFAST_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

# One text each: its first line is the summary.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(about "A distributed work queue on Redis. A job that was accepted is run at
least once, by one worker at a time, never before its time and promptly
after it; a worker that lost its lock cannot finish the job.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME ${package_command})
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION net)
set(recommends "ca-certificates, tzdata") # for rediss://, and for schedules in time zones
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "${recommends}")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "redis-server | valkey-server")
control_files(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA command holdfast-worker@*.service)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "work queue on Redis whose jobs are held by locks
${about}

This is the command, which enqueues jobs, runs them by programs in any
language, and looks into queues; with a unit for systemd, and the scripts
for other languages.")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${package_runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "${recommends}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${debian}/triggers")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "work queue on Redis - shared library
${about}

This is the library for producers and workers in C and C++.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${package_development})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${package_runtime} (= ${PROJECT_VERSION}-1), \
libhiredis-dev (>= 0.14), libuv1-dev (>= 1.44), libjansson-dev, \
libssl-dev (>= 3.0)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "work queue on Redis - development files
${about}

These are the headers and the static library, and what pkg-config and
CMake need to find them.")

set(CPACK_DEBIAN_DASHBOARD_PACKAGE_NAME ${package_dashboard})
set(CPACK_DEBIAN_DASHBOARD_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DASHBOARD_PACKAGE_DEPENDS "holdfast (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DASHBOARD_PACKAGE_RECOMMENDS "${recommends}")
control_files(CPACK_DEBIAN_DASHBOARD_PACKAGE_CONTROL_EXTRA dashboard holdfast-dashboard.service)
set(CPACK_DEBIAN_DASHBOARD_DESCRIPTION "work queue on Redis - dashboard and exporter
${about}

This is the program behind `holdfast dashboard` and `holdfast exporter`:
pages, an API of JSON and metrics for Prometheus; with a unit for systemd.
With it come `holdfast top`, the metrics of a worker, and the module that
sends traces.")
include(CPack)
