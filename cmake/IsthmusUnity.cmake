# isthmus_unity(<variable> <root> <name> <max> <files>): sets the variable to generated files, each of
# which includes up to `max` of the files. If ISTHMUS_UNITY is 1, sets it to the files themselves.
#
# CMake's own unity builds include files by absolute paths, and precompiled headers differ from build
# to build. With either, a compiler cache cannot reuse the results of another clone. The generated
# files include others by paths relative to `root`, which must be on the include path of the targets.
# A file with COMPILE_OPTIONS is compiled by itself.
function(isthmus_unity variable root name max)
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
    list(SUBLIST together ${first} ${max} these)
    list(TRANSFORM these REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
    list(JOIN lines "" lines)
    set(unity "${CMAKE_CURRENT_BINARY_DIR}/unity/${name}_${first}.cpp")
    file(CONFIGURE OUTPUT "${unity}" CONTENT "${lines}" @ONLY)
    list(APPEND result "${unity}")
    math(EXPR first "${first} + ${max}")
  endwhile()
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()
