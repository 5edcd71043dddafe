cmake_minimum_required(VERSION 3.25)
# cmake -P cmake/CheckCircles.cmake: fails when the files of one folder include each other in a
# circle. A source and its header count as one file: lock/lease is lease.c and lease.h.
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
# The circles that are there, each by the includes ("file>header") that close it. An entry whose
# include is gone is an error, too: this list only becomes shorter.
set(exceptions
  redis/call>redis/client_state
  redis/call>redis/reply
  config/config>config/fault
  config/config>config/read
  config/config>config/value
  queue/ops>queue/keys
  queue/ops>queue/send
  worker/programs>worker/process
  worker/programs>worker/program_text
  cli/args>cli/suggest
)
set(bad "")
set(unused ${exceptions})
foreach(folder IN ITEMS base redis config lock queue admin producer worker cli bench)
  file(GLOB_RECURSE files RELATIVE "${root}" "${root}/${folder}/*.c" "${root}/${folder}/*.h")
  set(edges "")
  foreach(f IN LISTS files)
    string(REGEX REPLACE "[.][ch]$" "" from "${f}")
    file(STRINGS "${root}/${f}" lines REGEX "^#[ \t]*include +\"${folder}/.*[.]h\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE ".*\"(.*)[.]h\".*" "\\1" to "${line}")
      set(edge "${from}>${to}")
      if(edge IN_LIST exceptions)
        list(REMOVE_ITEM unused "${edge}")
      elseif(NOT from STREQUAL to)
        list(APPEND edges "${edge}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES edges)
  # An include of a file that itself includes nothing more is in no circle, and goes. The same
  # holds for the includes in a file that nothing includes. What stays are circles.
  set(before -1)
  list(LENGTH edges n)
  while(NOT n EQUAL before)
    set(before ${n})
    list(TRANSFORM edges REPLACE ">.*" "" OUTPUT_VARIABLE sources)
    list(TRANSFORM edges REPLACE ".*>" "" OUTPUT_VARIABLE targets)
    set(stay "")
    foreach(edge from to IN ZIP_LISTS edges sources targets)
      if(to IN_LIST sources AND from IN_LIST targets)
        list(APPEND stay "${edge}")
      endif()
    endforeach()
    set(edges ${stay})
    list(LENGTH edges n)
  endwhile()
  foreach(edge IN LISTS edges)
    string(APPEND bad "\n  ${edge}")
  endforeach()
endforeach()
if(bad)
  message(FATAL_ERROR "These includes make circles:${bad}")
endif()
if(unused)
  list(JOIN unused "\n  " unused)
  message(FATAL_ERROR "These exceptions of CheckCircles.cmake name no include:\n  ${unused}")
endif()
