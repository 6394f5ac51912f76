# Builds only what the tests with the label `plain` need.
add_custom_target(plain_tests)

# isthmus_add_tests(<name> SOURCES <files> [LABELS <labels>] [SHARDS <n>] [INTERNAL])
#
# Adds a gtest executable and a ctest of that name. With SHARDS, adds n ctests, name_1 to name_n, that
# share the tests, so that all processors stay busy. The executable is linked with the shared library,
# so that it sees what users see; with INTERNAL, with the objects of the library instead. Without
# sources, adds nothing.
function(isthmus_add_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL" "SHARDS" "SOURCES;LABELS")
  if(NOT arg_SOURCES)
    return()
  endif()
  isthmus_unity(files "${PROJECT_SOURCE_DIR}/tests" ${name} ${ISTHMUS_UNITY} ${arg_SOURCES})
  add_executable(${name} ${files})
  isthmus_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if(arg_INTERNAL)
    target_link_libraries(${name} PRIVATE isthmus_objects)
  else()
    target_link_libraries(${name} PRIVATE isthmus::isthmus Threads::Threads ${CMAKE_DL_LIBS})
  endif()
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest_main)
  # The library stays optimized. Without optimization, the tests compile in a third of the time.
  target_compile_options(${name} PRIVATE -O0)
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  isthmus_add_runs(${name} ${name} ${arg_SHARDS} LABELS "${arg_LABELS}")
endfunction()

# isthmus_add_runs(<name> <executable> <n> [FILTER <filter>] [LABELS <labels>] [TIMEOUT <s>]
#                  [ENVIRONMENT <name=value>...])
#
# Adds one ctest, or n that share the tests of a gtest executable. FILTER selects tests; it is prepended
# to GTEST_FILTER, in which presets exclude tests. TIMEOUT only ends tests that hang: with a sanitizer,
# on two busy processors, every test needs far less.
function(isthmus_add_runs name executable shards)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "FILTER;TIMEOUT" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  foreach(shard RANGE 1 ${shards})
    set(each ${name})
    set(changes "")
    if(shards GREATER 1)
      set(each ${name}_${shard})
      math(EXPR index "${shard} - 1")
      list(APPEND changes "GTEST_TOTAL_SHARDS=set:${shards}" "GTEST_SHARD_INDEX=set:${index}")
    endif()
    if(arg_FILTER)
      list(APPEND changes "GTEST_FILTER=string_prepend:${arg_FILTER}")
    endif()
    add_test(NAME ${each} COMMAND ${executable} --gtest_brief=1)
    set_tests_properties(${each} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "${arg_ENVIRONMENT}" ENVIRONMENT_MODIFICATION "${changes}")
  endforeach()
endfunction()

# isthmus_add_plain(<name> <executable> <filter> [ENVIRONMENT ...]): runs those tests of the executable
# again in a build without sanitizers.
function(isthmus_add_plain name executable filter)
  add_dependencies(plain_tests ${executable})
  isthmus_add_runs(plain_${name} ${executable} 1 FILTER "${filter}" LABELS plain TIMEOUT 300 ${ARGN})
endfunction()

# isthmus_glob(<variable> <pattern>...): files below tests/; the search is repeated at every build.
function(isthmus_glob variable)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/tests/")
  file(GLOB found CONFIGURE_DEPENDS ${ARGN})
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# isthmus_add_compiled(<name> <c or cpp file>): the file must compile as strict C99 or C++20 without
# warnings.
function(isthmus_add_compiled name source)
  add_library(${name} OBJECT "${source}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  isthmus_target(${name})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-std=c99> -pedantic -Werror)
  add_dependencies(plain_tests ${name})
endfunction()

# isthmus_add_headers_alone(<headers>): each header must compile if it is the first one included.
function(isthmus_add_headers_alone)
  list(FILTER ARGN EXCLUDE REGEX "/rmm\\.hpp$") # needs RMM's headers
  set(stamps "")
  foreach(header IN LISTS ARGN)
    cmake_path(GET header STEM name)
    set(stamp "${CMAKE_CURRENT_BINARY_DIR}/alone/${name}")
    add_custom_command(OUTPUT "${stamp}" DEPFILE "${stamp}.d" DEPENDS "${header}" VERBATIM
      COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Werror
        "-I${PROJECT_SOURCE_DIR}/include" -MD -MF "${stamp}.d" -MT "${stamp}"
        -include "${header}" -x c++ /dev/null
      COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
      COMMENT "Compiling ${name}.hpp alone")
    list(APPEND stamps "${stamp}")
  endforeach()
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/alone")
  add_custom_target(headers_alone ALL DEPENDS ${stamps})
  add_dependencies(plain_tests headers_alone)
endfunction()

# isthmus_add_compile_fail(<files>): compilation of each file must fail with the error that its first
# line expects.
#
# All of them include isthmus.hpp, which takes most of the time, so it is precompiled.
function(isthmus_add_compile_fail)
  set(flags -std=c++20 -Wall -Wextra -Werror "-I${PROJECT_SOURCE_DIR}/include")
  set(first "${CMAKE_CURRENT_BINARY_DIR}/read_first.hpp")
  file(CONFIGURE OUTPUT "${first}" CONTENT "#include <isthmus/isthmus.hpp>\n")
  # g++ uses this file in place of the header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ISTHMUS_SANITIZE)
    set(read "${first}.gch")
    add_custom_command(OUTPUT "${read}" DEPFILE "${read}.d" VERBATIM
      COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -MD -MF "${read}.d" -MT "${read}" -x c++-header
        "${first}" -o "${read}"
      COMMENT "Precompiling isthmus.hpp for the compile_fail tests")
    add_custom_target(read_first ALL DEPENDS "${read}")
    add_dependencies(plain_tests read_first)
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    add_test(NAME compile_fail_${name}
      COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/compile_fail/must_fail.py"
        "${source}" -- "${CMAKE_CXX_COMPILER}" ${flags} -fsyntax-only -include "${first}")
    set_tests_properties(compile_fail_${name} PROPERTIES LABELS "compile_fail;plain" TIMEOUT 120)
  endforeach()
endfunction()

# isthmus_add_fuzzer(<file>): a libFuzzer target, which ctest runs for 20 seconds.
function(isthmus_add_fuzzer source)
  cmake_path(GET source STEM stem)
  set(name fuzz_${stem})
  add_executable(${name} "${source}")
  isthmus_target(${name})
  target_link_libraries(${name} PRIVATE isthmus_objects)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(corpus "${CMAKE_CURRENT_BINARY_DIR}/corpus/${stem}")
  file(MAKE_DIRECTORY "${corpus}")
  add_test(NAME ${name} COMMAND ${name} -max_total_time=20 -rss_limit_mb=4096
    -artifact_prefix=${corpus}/ "${corpus}")
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
