# SPDX-License-Identifier: Apache-2.0
#
# How Hone's own code is compiled, and the helpers that every folder's CMakeLists.txt is made of:
#
#   hone_library(<name> SOURCES a.cpp... [DEPS other hone targets...] [LIBS external targets...] [HOT])   -> hone_<name>
#   hone_executable(<name> SOURCES main.cpp... [DEPS ...] [LIBS ...] [ALIASES links beside it...])   -> <build>/bin/<name>
#   hone_test(<name> SOURCES a_test.cpp... [DEPS ...] [LIBS ...] [LABELS slow threaded] [TIMEOUT seconds])   -> ctest "<name>", run in the root
#   hone_fuzz(<name> SOURCES a_fuzz.cpp... [DEPS ...] [LIBS ...] [SEEDS files or folders...])   -> libFuzzer target, or ctest "fuzz_<name>"
#   hone_listed_sources(<variable> <list>.def)   -> the sources that a list names, so that they stand in one place; also _texts
#
# Names in DEPS are written without the prefix `hone_`. Sources are listed by hand: a missing file is an error.

include_guard()

add_custom_target(unit_tests)
add_custom_target(threaded_tests)  # what the thread sanitizer has something to see in

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# -O3 is for the loops (see HOT below): elsewhere it costs a quarter of the build and gains nothing that can be measured.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

find_program(HONE_CCACHE ccache)
if(HONE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HONE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${HONE_CCACHE})
endif()

# The baseline is what every 64-bit x86 of the last fifteen years has. Faster instructions are generated or chosen at run
# time, so that one binary serves every machine: never -march=native.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

if(HONE_SANITIZE)
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HONE_SANITIZE})
endif()
if(HONE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(HONE_LTO)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

add_library(hone_warnings INTERFACE)
target_compile_options(hone_warnings INTERFACE
  -Wall -Wextra -Wno-restrict -Wno-stringop-overflow -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wundef
  -Wno-missing-field-initializers $<$<BOOL:${HONE_UNITY}>:-Wno-subobject-linkage> $<$<BOOL:${HONE_WERROR}>:-Werror>)

# What a unit test says itself is quick at any level; -O1 saves a quarter of its compilation.
add_library(hone_test_options INTERFACE)
target_compile_options(hone_test_options INTERFACE $<$<CONFIG:Release>:-O1>)

# The headers that everything includes cost half of a cold build when each file parses them anew.
if(HONE_PRECOMPILE)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "")
  add_library(hone_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_include_directories(hone_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake)
  target_link_libraries(hone_precompiled PRIVATE fmt::fmt hone_warnings)
  # In brackets: without the path of this tree, so that ccache serves others too.
  target_precompile_headers(hone_precompiled PRIVATE <precompiled.h>)
  # The standard library's headers ask for _OPENMP: who reads them precompiled has to agree.
  target_link_libraries(hone_warnings INTERFACE OpenMP::OpenMP_CXX)
  if(BUILD_TESTING)  # with GoogleTest's, which cost a unit test more than its own text does
    add_library(hone_precompiled_test OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
    target_include_directories(hone_precompiled_test PRIVATE ${CMAKE_SOURCE_DIR}/cmake)
    target_link_libraries(hone_precompiled_test PRIVATE fmt::fmt hone_warnings hone_test_options GTest::gtest GTest::gmock)
    target_precompile_headers(hone_precompiled_test PRIVATE <precompiled_test.h>)
  endif()
endif()

function(hone_link_ target deps libs)
  set_property(GLOBAL APPEND PROPERTY HONE_TARGETS ${target})
  list(TRANSFORM deps PREPEND hone_)
  target_link_libraries(${target} PUBLIC ${deps} ${libs} PRIVATE hone_warnings)
  if(HONE_PRECOMPILE)
    if("hone_test_options" IN_LIST libs)
      target_precompile_headers(${target} REUSE_FROM hone_precompiled_test)
    else()
      target_precompile_headers(${target} REUSE_FROM hone_precompiled)
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_compile_options(${target} PRIVATE -fPIC)  # as the headers were compiled
    endif()
  endif()
endfunction()

# The C++ sources of a target, as absolute paths.
function(hone_sources_of target variable)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(paths "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    list(APPEND paths ${source})
  endforeach()
  set(${variable} ${paths} PARENT_SCOPE)
endfunction()

# GCC 12 turns no loop into vectors in a file that meets a target pragma, as Highway's headers have, behind a precompiled header
# ("no vectype for stmt" of -fopt-info-vec-missed): such files are compiled without. Called when all targets have all their sources.
function(hone_skip_precompiled)
  get_property(targets GLOBAL PROPERTY HONE_TARGETS)
  foreach(target IN LISTS targets)
    hone_sources_of(${target} paths)
    foreach(path IN LISTS paths)
      file(STRINGS ${path} pragmas REGEX "#include <(hwy/|immintrin)" LIMIT_COUNT 1)
      if(pragmas)
        set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endforeach()
endfunction()

# Where HONE_UNITY says so, files of a target are compiled in packs that scripts/packs.py puts together: what the sanitizers and
# clang-tidy do to the headers they then do once a pack. Called when all targets have all their sources.
function(hone_unite)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_property(targets GLOBAL PROPERTY HONE_TARGETS)
  foreach(target IN LISTS targets)
    hone_sources_of(${target} paths)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/packs.py ${paths}
      OUTPUT_VARIABLE packs COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/packs.py ${paths})
    string(REGEX MATCHALL "[^\n]+" packs "${packs}")
    foreach(row IN LISTS packs)
      string(REGEX MATCH "^([0-9]+) (.*)$" row "${row}")
      set_source_files_properties(${CMAKE_MATCH_2} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
    endforeach()
    # Every family has a reason_against.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_UNIQUE_ID HONE_FILE
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#define HONE_JOIN_(a, b) a##b\n#define HONE_JOIN(a, b) HONE_JOIN_(a, b)\n#define reason_against HONE_JOIN(reason_against_, HONE_FILE)"
      UNITY_BUILD_CODE_AFTER_INCLUDE "#undef reason_against")
  endforeach()
endfunction()

function(hone_listed_ variable list suffix)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} rows REGEX "^ *[A-Z]+\\(.*\\.${suffix}[,)]")
  list(TRANSFORM rows REPLACE ".*[ (]([a-z0-9_/]+\\.${suffix}).*" "\\1")
  list(REMOVE_DUPLICATES rows)
  set(${variable} ${rows} PARENT_SCOPE)
endfunction()

macro(hone_listed_sources variable list)
  hone_listed_(${variable} ${list} cpp)
endmacro()

macro(hone_listed_texts variable list)
  hone_listed_(${variable} ${list} cuh)
endmacro()

function(hone_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HOT" "" "SOURCES;DEPS;LIBS")
  add_library(hone_${name} STATIC ${arg_SOURCES})
  set_target_properties(hone_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(hone_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  hone_link_(hone_${name} "${arg_DEPS}" "${arg_LIBS}")
  if(arg_HOT)
    target_compile_options(hone_${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
endfunction()

function(hone_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;LIBS;ALIASES")
  add_executable(${name} ${arg_SOURCES})
  hone_link_(${name} "${arg_DEPS}" "${arg_LIBS}")
  foreach(alias IN LISTS arg_ALIASES)
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${name} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${alias})
  endforeach()
endfunction()

# Idle threads of GNU's OpenMP spin for 10 ms, which two tests beside each other take from one another: so they spent four
# fifths of their processor time. The programs set the same for themselves (src/tools/main.cpp).
set(HONE_TEST_ENVIRONMENT GOMP_SPINCOUNT=1000)
if(HONE_SANITIZE STREQUAL "thread")
  list(APPEND HONE_TEST_ENVIRONMENT OMP_NUM_THREADS=1)  # of the reference: see tsan.supp
endif()

function(hone_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LIBS;LABELS")
  if(NOT BUILD_TESTING)
    return()
  endif()
  string(REGEX REPLACE "_test$" "" name ${name})
  add_executable(hone_${name}_test ${arg_SOURCES})
  hone_link_(hone_${name}_test "${arg_DEPS}" "${arg_LIBS};GTest::gtest_main;GTest::gmock;hone_test_options")
  set_target_properties(hone_${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
  add_test(NAME ${name} COMMAND hone_${name}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS fast)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS};unit" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "${HONE_TEST_ENVIRONMENT};ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")
  add_dependencies(unit_tests hone_${name}_test)
  if("threaded" IN_LIST arg_LABELS)
    add_dependencies(threaded_tests hone_${name}_test)
  endif()
endfunction()

# The libFuzzer build gets fuzz/hone_<name>_fuzz; every other build runs the same harness on its seeds and damaged copies.
function(hone_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;LIBS;SEEDS")
  set(target hone_${name}_fuzz)
  if(HONE_FUZZ)
    add_executable(${target} ${arg_SOURCES})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  elseif(BUILD_TESTING)
    add_executable(${target} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/fuzz/replay.cpp)
    add_test(NAME fuzz_${name} COMMAND ${target} ${arg_SEEDS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(fuzz_${name} PROPERTIES LABELS fast ENVIRONMENT "${HONE_TEST_ENVIRONMENT}" TIMEOUT 3900)  # HONE_FUZZ_SECONDS is the bound
  else()
    return()
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  hone_link_(${target} "${arg_DEPS}" "${arg_LIBS}")
  add_dependencies(fuzzers ${target})
endfunction()
