# hf_add_test(NAME x LABEL unit|redis|chaos|history SOURCES ...): one cmocka program, called
# <label>.<name> in CTest. A program that exits with 77 was skipped, for want of a
# redis-server. Each test brings its own server, so all of them may run at once.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# Only against hanging: the longest take a minute or two, and deadlines stretch to eight times.
set(HF_TEST_TIMEOUT_S 900)

function(hf_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LABEL" "SOURCES")
  set(target test_${arg_LABEL}_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE
    holdfast_flags holdfast_test_support holdfast_cli PkgConfig::CMOCKA)
  target_compile_definitions(${target} PRIVATE
    HF_TEST_SOURCE="${PROJECT_SOURCE_DIR}" HF_TEST_BUILD="${PROJECT_BINARY_DIR}"
    HF_TEST_COMMAND="${PROJECT_BINARY_DIR}/holdfast")
  if(TARGET holdfast_command)
    add_dependencies(${target} holdfast_command)
  endif()
  if(TARGET holdfast_top) # which that one runs
    add_dependencies(${target} holdfast_top)
  endif()
  if(TARGET holdfast_dashboard_command)
    add_dependencies(${target} holdfast_dashboard_command)
  endif()
  add_test(NAME ${arg_LABEL}.${arg_NAME} COMMAND ${target})
  set_tests_properties(${arg_LABEL}.${arg_NAME} PROPERTIES
    LABELS ${arg_LABEL} SKIP_RETURN_CODE 77)
  set_tests_properties(${arg_LABEL}.${arg_NAME} PROPERTIES TIMEOUT ${HF_TEST_TIMEOUT_S})
endfunction()

# hf_add_tests(LABEL unit FOLDER unit): one test per <folder>/test_<name>.c.
function(hf_add_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "LABEL;FOLDER" "")
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/test_*.c")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    string(REGEX REPLACE "^test_" "" name "${name}")
    hf_add_test(NAME ${name} LABEL ${arg_LABEL} SOURCES "${file}")
  endforeach()
endfunction()
