# find_package(holdfast) gives holdfast::holdfast. The three libraries below it are found
# with pkg-config, because the oldest hiredis that we support knows no other way.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis>=0.14)
pkg_check_modules(LIBUV REQUIRED IMPORTED_TARGET libuv>=1.44)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
include("${CMAKE_CURRENT_LIST_DIR}/holdfastTargets.cmake")
