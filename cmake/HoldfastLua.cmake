# The linker puts the scripts together while Holdfast is built. So it runs on this machine, without a
# sanitizer.
set(hf_link_lua_sources "${PROJECT_SOURCE_DIR}/tools/link_lua.c" "${PROJECT_SOURCE_DIR}/tools/lua_chunk.c"
  "${PROJECT_SOURCE_DIR}/tools/lua_inline.c")
if(CMAKE_CROSSCOMPILING)
  find_program(HOLDFAST_HOST_CC NAMES cc gcc clang NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  set(hf_link_lua "${PROJECT_BINARY_DIR}/tools/link_lua")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tools")
  add_custom_target(holdfast_link_lua
    COMMAND "${HOLDFAST_HOST_CC}" -std=c11 -O1 -D_POSIX_C_SOURCE=200809L -I "${PROJECT_SOURCE_DIR}"
      -o "${hf_link_lua}" ${hf_link_lua_sources} VERBATIM)
else()
  add_executable(holdfast_link_lua ${hf_link_lua_sources} "${PROJECT_SOURCE_DIR}/tools/lua_chunk.h")
  set_target_properties(holdfast_link_lua PROPERTIES
    OUTPUT_NAME link_lua RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools")
  target_link_libraries(holdfast_link_lua PRIVATE holdfast_plain_flags)
  set(hf_link_lua holdfast_link_lua)
endif()

# hf_embed_lua(MODULE queue [PREFIX prefix]): puts <folder>/lua/*.lua together with what they use, as
# <build>/lua/<prefix><name>.lua for other languages, and makes of them the OBJECT library
# holdfast_<module>_scripts and the header <module>_scripts.h.
# The scripts have a library of their own because a rule only serves targets of the
# folder that it is written in.
function(hf_embed_lua)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "MODULE;PREFIX" "")
  set(dir "${CMAKE_CURRENT_SOURCE_DIR}/lua")
  set(shared "${PROJECT_SOURCE_DIR}/redis/lua/lib")
  set(out "${HOLDFAST_GENERATED}/${arg_MODULE}_scripts")
  set(lua "${PROJECT_BINARY_DIR}/lua")
  file(MAKE_DIRECTORY "${lua}")
  file(GLOB scripts CONFIGURE_DEPENDS "${dir}/*.lua")
  set(names "")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    list(APPEND names "${name}")
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_SCRIPTS
      "${lua}/${arg_PREFIX}${name}.lua") # installed
  endforeach()
  string(REPLACE ";" "," names "${names}")
  set(embed "${PROJECT_SOURCE_DIR}/cmake/EmbedLua.cmake")
  file(GLOB parts CONFIGURE_DEPENDS "${dir}/lib/*.lua" "${dir}/steps/*.lua" "${shared}/*.lua")
  add_custom_command(OUTPUT "${out}.c" "${out}.h"
    COMMAND "${hf_link_lua}" "${dir}" "${shared}" "${lua}" "${arg_PREFIX}"
    COMMAND "${CMAKE_COMMAND}" -D MODULE=${arg_MODULE} -D "PREFIX=${arg_PREFIX}" -D "DIR=${dir}"
      -D "NAMES=${names}" -D "OUT=${out}" -D "LUA=${lua}" -P "${embed}"
    DEPENDS ${scripts} ${parts} "${embed}" holdfast_link_lua ${hf_link_lua_sources}
    COMMENT "Linking, checking and embedding the scripts of ${arg_MODULE}/lua" VERBATIM)
  add_library(holdfast_${arg_MODULE}_scripts OBJECT "${out}.c" "${out}.h")
  target_link_libraries(holdfast_${arg_MODULE}_scripts PRIVATE holdfast_flags)
  add_dependencies(holdfast_objects holdfast_${arg_MODULE}_scripts)
endfunction()
