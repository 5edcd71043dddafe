# What everything of ours is compiled with. None of it reaches a program that uses the library.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(HOLDFAST_GENERATED "${PROJECT_BINARY_DIR}/generated")

# Without a sanitizer, for what is loaded into programs that have none.
add_library(holdfast_plain_flags INTERFACE)
target_include_directories(holdfast_plain_flags INTERFACE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${HOLDFAST_GENERATED}")
target_compile_definitions(holdfast_plain_flags INTERFACE
  _POSIX_C_SOURCE=200809L HOLDFAST_VERSION="${PROJECT_VERSION}")
target_compile_options(holdfast_plain_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
  -Wconversion -Wpointer-arith -Wcast-align -Wformat=2 -Wundef -Wvla
  $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>)
add_library(holdfast_flags INTERFACE)
target_link_libraries(holdfast_flags INTERFACE holdfast_plain_flags)
if(HOLDFAST_SANITIZE)
  target_compile_definitions(holdfast_flags INTERFACE HF_SANITIZED)
  target_compile_options(holdfast_flags INTERFACE
    -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # What gcc concludes from the flow of instrumented code is wrong too often.
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation -Wno-maybe-uninitialized>)
  target_link_options(holdfast_flags INTERFACE -fsanitize=${HOLDFAST_SANITIZE})
endif()

# Before 1.0 a minor version may change the interface, so it is a part of the soname.
set(HOLDFAST_SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

# hf_add_library(name STATIC|SHARED): one form of the library, made of the common objects.
# Nobody who links it needs the headers of what is below it; a static one brings the link
# line. In this build `holdfast` is the static library; others know the two forms as
# holdfast::holdfast_static and holdfast::holdfast_shared.
function(hf_add_library name type)
  add_library(${name} ${type}
    $<TARGET_OBJECTS:holdfast_objects> $<TARGET_OBJECTS:holdfast_lock_scripts>
    $<TARGET_OBJECTS:holdfast_queue_scripts>)
  string(TOLOWER "${type}" form)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME holdfast LINKER_LANGUAGE C
    EXPORT_NAME holdfast_${form} VERSION ${PROJECT_VERSION} SOVERSION ${HOLDFAST_SOVERSION})
  add_library(holdfast::holdfast_${form} ALIAS ${name})
  target_sources(${name} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${public_headers})
  target_link_libraries(${name} PRIVATE PkgConfig::HOLDFAST_HIREDIS
    PkgConfig::HOLDFAST_LIBUV PkgConfig::HOLDFAST_JANSSON
    PkgConfig::HOLDFAST_OPENSSL Threads::Threads)
  if(type STREQUAL STATIC)
    set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    add_library(holdfast::holdfast ALIAS ${name})
  else()
    # What is missing at run time is missing here, and only what is used is needed.
    target_link_options(${name} PRIVATE LINKER:--as-needed)
    if(HOLDFAST_SANITIZE)
      target_link_options(${name} PRIVATE -fsanitize=${HOLDFAST_SANITIZE})
    else()
      target_link_options(${name} PRIVATE LINKER:--no-undefined)
    endif()
  endif()
endfunction()
