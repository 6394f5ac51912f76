# isthmus_unity(<variable> <root> <name> <most> <files>): generated files, each of which includes up
# to `most` of those; the files themselves where ISTHMUS_UNITY is 1.
#
# CMake's own unity builds include by absolute paths, and precompiled headers differ from build to
# build: with either, a compiler cache has nothing for another clone. These include by paths relative
# to `root`, which must be on the targets' include path. Files with COMPILE_OPTIONS stay alone.
function(isthmus_unity variable root name most)
  set(result "")
  set(together "")
  foreach(file IN LISTS ARGN)
    get_source_file_property(own "${file}" COMPILE_OPTIONS)
    if(own OR ISTHMUS_UNITY LESS 2)
      list(APPEND result "${file}")
    else()
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${root}")
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${root}")
      list(APPEND together "${file}")
    endif()
  endforeach()
  list(LENGTH together count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST together ${first} ${most} these)
    list(TRANSFORM these REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
    list(JOIN lines "" lines)
    set(unity "${CMAKE_CURRENT_BINARY_DIR}/unity/${name}_${first}.cpp")
    file(CONFIGURE OUTPUT "${unity}" CONTENT "${lines}" @ONLY)
    list(APPEND result "${unity}")
    math(EXPR first "${first} + ${most}")
  endwhile()
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()
