# Run by CPack over what is to be packed: names and compresses the texts as Debian has them,
# and takes from the libraries what only compilers have written into them.
set(staged "${CPACK_TEMPORARY_DIRECTORY}")
file(GLOB changelog "${staged}/*/usr/share/doc/*/CHANGELOG.md")
if(changelog)
  string(REPLACE CHANGELOG.md changelog renamed "${changelog}")
  file(RENAME "${changelog}" "${renamed}")
  # The documents link to these two by the names that they have in the sources.
  cmake_path(GET changelog PARENT_PATH documents)
  file(CREATE_LINK changelog.gz "${documents}/CHANGELOG.md" SYMBOLIC)
  file(CREATE_LINK copyright "${documents}/LICENSE" SYMBOLIC)
endif()
file(GLOB_RECURSE texts "${staged}/*/usr/share/man/man*/*.[15]"
  "${staged}/*/usr/share/doc/*/changelog" "${staged}/*/usr/share/doc/*/changelog.Debian")
if(texts)
  execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
endif()
file(GLOB_RECURSE binaries "${staged}/*.a" "${staged}/*.so.*" "${staged}/*/usr/bin/*"
  "${staged}/*/usr/libexec/*")
foreach(file IN LISTS binaries)
  if(NOT IS_SYMLINK "${file}")
    execute_process(COMMAND strip --strip-debug --enable-deterministic-archives
      --remove-section=.comment "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
