# hf_embed_lua(MODULE queue [PREFIX prefix]): turns <folder>/lua/*.lua into the OBJECT library
# holdfast_<module>_scripts and the header <module>_scripts.h, and writes the complete
# scripts (each with its includes) to <build>/lua/<prefix><name>.lua for other languages.
# The scripts have a library of their own because a rule only serves targets of the
# folder that it is written in.
function(hf_embed_lua)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "MODULE;PREFIX" "")
  set(dir "${CMAKE_CURRENT_SOURCE_DIR}/lua")
  set(out "${HOLDFAST_GENERATED}/${arg_MODULE}_scripts")
  set(lua "${PROJECT_BINARY_DIR}/lua")
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
  file(GLOB included CONFIGURE_DEPENDS "${dir}/lib/*.lua" "${dir}/steps/*.lua"
    "${PROJECT_SOURCE_DIR}/redis/lua/lib/*.lua")
  add_custom_command(OUTPUT "${out}.c" "${out}.h"
    COMMAND "${CMAKE_COMMAND}" -D MODULE=${arg_MODULE} -D "PREFIX=${arg_PREFIX}" -D "DIR=${dir}"
      -D "NAMES=${names}" -D "OUT=${out}" -D "LUA=${lua}" -P "${embed}"
    DEPENDS ${scripts} ${included} "${embed}"
      "${PROJECT_SOURCE_DIR}/cmake/LuaInclude.cmake"
    COMMENT "Checking and embedding the scripts of ${arg_MODULE}/lua" VERBATIM)
  add_library(holdfast_${arg_MODULE}_scripts OBJECT "${out}.c" "${out}.h")
  target_link_libraries(holdfast_${arg_MODULE}_scripts PRIVATE holdfast_flags)
  add_dependencies(holdfast_objects holdfast_${arg_MODULE}_scripts)
endfunction()
