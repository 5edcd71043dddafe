cmake_minimum_required(VERSION 3.25)
# cmake -D DIR=.. -D FILES=a,b -D OUT=x.h -P EmbedPages.cmake: writes the files of the dashboard's
# pages as a table in C, plain and compressed, each with its type and an ETag of its SHA-256.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(arrays "/* Generated from dashboard/pages. Do not edit. */\n")
set(rows "")
string(REPLACE "," ";" files "${FILES}")
set(n 0)
foreach(file IN LISTS files)
  cmake_path(GET file EXTENSION LAST_ONLY end)
  string(SUBSTRING "${end}" 1 -1 end)
  if(NOT DEFINED type_${end})
    message(FATAL_ERROR "dashboard/pages/${file}: expected .html, .css, .js or .svg")
  endif()
  file(SHA256 "${DIR}/${file}" sum)
  string(SUBSTRING "${sum}" 0 32 sum)
  file(READ "${DIR}/${file}" plain HEX)
  execute_process(COMMAND gzip -9nc "${DIR}/${file}" OUTPUT_FILE "${OUT}.gz"
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${OUT}.gz" packed HEX)
  file(REMOVE "${OUT}.gz")
  string(REGEX REPLACE "(..)" "0x\\1," plain "${plain}")
  string(REGEX REPLACE "(..)" "0x\\1," packed "${packed}")
  string(APPEND arrays "static const unsigned char page_${n}[] = {${plain}0};\n"
    "static const unsigned char packed_${n}[] = {${packed}0};\n")
  string(APPEND rows "    {\"${file}\", \"${type_${end}}\", \"\\\"${sum}\\\"\", page_${n}, "
    "sizeof page_${n} - 1, packed_${n}, sizeof packed_${n} - 1},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE "${OUT}" "${arrays}static const hf_asset pages[] = {\n${rows}"
  "    {NULL, NULL, NULL, NULL, 0, NULL, 0}};\n")
