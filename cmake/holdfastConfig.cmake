# find_package(holdfast) gives holdfast::holdfast, and its two forms
# holdfast::holdfast_shared and holdfast::holdfast_static as far as they are installed.
# holdfast::holdfast is the form that is named as a component (`shared` or `static`), else
# the one that BUILD_SHARED_LIBS asks for, else the shared one, which is what a linker
# takes. The first find_package of a folder decides.
#
# The static form needs what is below it at link time. That is found with pkg-config,
# because the oldest hiredis that is supported knows no other way.
include("${CMAKE_CURRENT_LIST_DIR}/holdfastTargets.cmake")

set(_holdfast_form "")
foreach(_holdfast_part IN LISTS holdfast_FIND_COMPONENTS)
  if(TARGET holdfast::holdfast_${_holdfast_part})
    set(holdfast_${_holdfast_part}_FOUND TRUE)
    if(NOT _holdfast_form)
      set(_holdfast_form ${_holdfast_part})
    endif()
  elseif(holdfast_FIND_REQUIRED_${_holdfast_part})
    set(holdfast_FOUND FALSE)
    set(holdfast_NOT_FOUND_MESSAGE
      "expected the components shared or static, as installed; found ${_holdfast_part}")
    return()
  endif()
endforeach()
if(NOT _holdfast_form)
  set(_holdfast_form static)
  if(TARGET holdfast::holdfast_shared AND (NOT DEFINED BUILD_SHARED_LIBS OR BUILD_SHARED_LIBS))
    set(_holdfast_form shared)
  endif()
endif()

include(CMakeFindDependencyMacro)
set(_holdfast_quietly QUIET)
if(_holdfast_form STREQUAL static OR "static" IN_LIST holdfast_FIND_COMPONENTS)
  find_dependency(PkgConfig)
  find_dependency(Threads)
  set(_holdfast_quietly "")
else()
  find_package(PkgConfig QUIET)
  find_package(Threads QUIET)
endif()
foreach(_holdfast_part IN ITEMS hiredis>=0.14 libuv>=1.44 jansson openssl>=3.0)
  string(REGEX MATCH "^[a-z]+" _holdfast_name "${_holdfast_part}")
  string(TOUPPER "HOLDFAST_${_holdfast_name}" _holdfast_name)
  if(PkgConfig_FOUND)
    pkg_check_modules(${_holdfast_name} QUIET IMPORTED_TARGET "${_holdfast_part}")
  endif()
  if(NOT _holdfast_quietly AND NOT ${_holdfast_name}_FOUND)
    set(holdfast_FOUND FALSE)
    set(holdfast_NOT_FOUND_MESSAGE "the static library needs ${_holdfast_part}")
    return()
  endif()
endforeach()

if(NOT TARGET holdfast::holdfast)
  add_library(holdfast::holdfast INTERFACE IMPORTED)
  set_target_properties(holdfast::holdfast PROPERTIES
    INTERFACE_LINK_LIBRARIES holdfast::holdfast_${_holdfast_form})
endif()
unset(_holdfast_form)
unset(_holdfast_quietly)
unset(_holdfast_part)
unset(_holdfast_name)
