# Expands a script: a line `--- @include "lib/x.lua"` stands for that file of the same folder, or of
# redis/lua, which has what several folders share. Redis
# runs a script's whole text for each EVALSHA, so a script includes what it uses and nothing else.
# What only a rare branch uses is included in that branch. A file that is already there, at the top
# or in a block around the line, is not repeated. Comments of included files are left out.
#
# A line `--- @step "lib/x.lua"` is the same for code that is no declaration: it stands wherever it is
# named, and works on the locals there. It is for what each run of a script does: a function would be
# made anew for each run, with all that it refers to.

set(hf_shared_lua "${CMAKE_CURRENT_LIST_DIR}/../redis/lua")
string(ASCII 1 hf_open)
string(ASCII 2 hf_close)
string(ASCII 3 hf_semicolon)
string(ASCII 4 hf_backslash)

# hf_guard(out text) and hf_unguard(out text): without, and again with, the characters that split
# CMake lists or are lost in them.
function(hf_guard out text)
  string(REPLACE "[" "${hf_open}" text "${text}")
  string(REPLACE "]" "${hf_close}" text "${text}")
  string(REPLACE ";" "${hf_semicolon}" text "${text}")
  string(REPLACE "\\" "${hf_backslash}" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(hf_unguard out text)
  string(REPLACE "${hf_open}" "[" text "${text}")
  string(REPLACE "${hf_close}" "]" text "${text}")
  string(REPLACE "${hf_semicolon}" ";" text "${text}")
  string(REPLACE "${hf_backslash}" "\\" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# hf_include(out dir path depth within): the guarded text of dir/path with its includes. It stands in
# a block that is indented by `depth` spaces; `within` are the files that include it. Needs hf_there,
# the list of `file@depth` that are visible here, and updates it.
function(hf_include out dir path depth within)
  set(from "${dir}")
  if(NOT EXISTS "${dir}/${path}")
    set(from "${hf_shared_lua}")
  endif()
  file(READ "${from}/${path}" text)
  hf_guard(text "${text}")
  string(REPLACE "\n" ".;" lines "${text}.") # no element is empty
  list(APPEND within "${path}")
  set(all "")
  set(n 0)
  foreach(line IN LISTS lines)
    math(EXPR n "${n} + 1")
    string(REGEX REPLACE "\\.$" "" line "${line}")
    string(REGEX REPLACE "[^ ].*$" "" indent "${line}")
    string(LENGTH "${indent}" indent)
    math(EXPR indent "${indent} + ${depth}")
    if(line MATCHES "^ *--- @(include|step) \"([a-z_/]+\\.lua)\"$")
      set(kind "${CMAKE_MATCH_1}")
      set(file "${CMAKE_MATCH_2}")
      if(file IN_LIST within)
        message(FATAL_ERROR "${dir}/${path}:${n}: ${file} is included by itself: ${within}")
      elseif(NOT EXISTS "${dir}/${file}" AND NOT EXISTS "${hf_shared_lua}/${file}")
        message(FATAL_ERROR "${dir}/${path}:${n}: there is no ${file}")
      elseif(kind STREQUAL "step" OR NOT "@${hf_there}@" MATCHES "@${file}@")
        if(kind STREQUAL "include")
          list(APPEND hf_there "@${file}@ ${indent}")
        endif()
        hf_include(text "${dir}" "${file}" "${indent}" "${within}")
        string(APPEND all "${text}")
      endif()
      continue()
    elseif(line MATCHES "@(include|step)")
      message(FATAL_ERROR "${dir}/${path}:${n}: expected --- @include \"lib/name.lua\" or "
        "--- @step \"lib/name.lua\": ${line}")
    elseif(within MATCHES ";" AND line MATCHES "^ *--")
      continue()
    elseif(NOT line STREQUAL "") # ends the blocks that are indented more
      foreach(one IN LISTS hf_there)
        string(REGEX MATCH "[0-9]+$" at "${one}")
        if(at GREATER indent)
          list(REMOVE_ITEM hf_there "${one}")
        endif()
      endforeach()
    endif()
    string(APPEND all "${line}\n")
  endforeach()
  string(REGEX REPLACE "\n$" "" all "${all}") # what follows the last newline is no line
  set(${out} "${all}" PARENT_SCOPE)
  set(hf_there "${hf_there}" PARENT_SCOPE)
endfunction()
