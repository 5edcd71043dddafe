# What a script takes of preludes. Redis runs a script's whole text anew for each EVALSHA: each
# local function at its top is made again, and each key's name is put together again, used or not.
# So a script gets of its preludes only what it uses, and what that uses.
#
# A prelude is a comment, for who reads it, and definitions: `local function name`, or `local a, b`,
# at the start of a line, with the comment right above. An empty line ends a definition; nothing
# else stands at the start of a line, but what closes it (`end`, `}`).

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

# hf_words(out text): the names in guarded text that could be those of locals: no comments, texts
# or fields.
function(hf_words out text)
  string(REGEX REPLACE "--[^\n]*" "" text "${text}")
  string(REGEX REPLACE "'[^'\n]*'" "" text "${text}")
  string(REGEX REPLACE "([A-Za-z0-9_)${hf_close}])\\.[A-Za-z_]+" "\\1" text "${text}")
  string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*" words "${text}")
  list(REMOVE_DUPLICATES words)
  set(${out} "${words}" PARENT_SCOPE)
endfunction()

# hf_prelude_add(list path): appends the definitions of a prelude to a list, whose length is in
# <list>; each has <list>_<n>_text, guarded, <list>_<n>_names and <list>_<n>_words.
macro(hf_prelude_end_one)
  if(names)
    math(EXPR n "${n} + 1")
    hf_words(words "${one}")
    set(${list}_${n}_text "${one}" PARENT_SCOPE)
    set(${list}_${n}_names "${names}" PARENT_SCOPE)
    set(${list}_${n}_words "${words}" PARENT_SCOPE)
  endif()
  set(one "")
  set(names "")
endmacro()

function(hf_prelude_add list path)
  set(n "${${list}}")
  set(one "")
  set(names "")
  file(READ "${path}" text)
  hf_guard(text "${text}")
  string(REPLACE "\n" ".;" lines "${text}.") # no element is empty
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "\\.$" "" line "${line}")
    if(names AND line MATCHES "^(local |--)")
      hf_prelude_end_one()
    endif()
    string(APPEND one "${line}\n")
    if(line MATCHES "^local (function )?([A-Za-z_][A-Za-z0-9_, ]*)")
      string(REGEX MATCHALL "[A-Za-z0-9_]+" names "${CMAKE_MATCH_2}")
    elseif(line STREQUAL "")
      hf_prelude_end_one()
    elseif(NOT line MATCHES "^--" AND NOT (names AND line MATCHES "^( |end$|}$)"))
      message(FATAL_ERROR "${path}: expected a definition, found: ${line}")
    endif()
  endforeach()
  hf_prelude_end_one()
  set(${list} "${n}" PARENT_SCOPE)
endfunction()

# hf_prelude_take(out list wanted without): of the definitions in the list those that are wanted
# and what they use, as guarded text; but none of those numbered in `without`. Sets <out>_taken to
# their numbers. A definition may use only what stands above it.
function(hf_prelude_take out list wanted without)
  set(text "")
  set(taken "")
  set(i "${${list}}")
  while(i GREATER 0)
    foreach(name IN LISTS ${list}_${i}_names)
      if(name IN_LIST wanted AND NOT i IN_LIST without)
        string(PREPEND text "${${list}_${i}_text}")
        list(APPEND wanted ${${list}_${i}_words})
        list(APPEND taken ${i})
        break()
      endif()
    endforeach()
    math(EXPR i "${i} - 1")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
  set(${out}_taken "${taken}" PARENT_SCOPE)
endfunction()

# hf_prelude_join(out list body): the guarded body with what it uses in front, or in place of a
# line `-- prelude: name, name`: what only a branch uses that is rarely gone is made there.
function(hf_prelude_join out list body)
  hf_words(wanted "${body}")
  string(REGEX MATCHALL "-- prelude: [a-z_, ]+" places "${body}")
  foreach(place IN LISTS places)
    string(REGEX MATCHALL "[a-z_]+" names "${place}")
    list(REMOVE_ITEM wanted ${names})
  endforeach()
  hf_prelude_take(top ${list} "${wanted}" "")
  foreach(place IN LISTS places)
    string(REPLACE "-- prelude: " "" names "${place}")
    string(REGEX MATCHALL "[a-z_]+" names "${names}")
    hf_prelude_take(here ${list} "${names}" "${top_taken}")
    string(REPLACE "${place}\n" "${here}" body "${body}")
  endforeach()
  set(${out} "${top}${body}" PARENT_SCOPE)
endfunction()
