# SPDX-License-Identifier: Apache-2.0
#
# The test of the interface, with the calls that are written from hone.h.
if(HONE_MINIMAL OR NOT BUILD_TESTING)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(calls ${CMAKE_CURRENT_BINARY_DIR}/generated/calls.inc)
set(from ${CMAKE_SOURCE_DIR}/scripts/capi_calls.py ${CMAKE_SOURCE_DIR}/include/hone/hone.h
  ${CMAKE_SOURCE_DIR}/include/hone/diagnosis.h ${CMAKE_SOURCE_DIR}/include/hone/graph.h ${CMAKE_SOURCE_DIR}/include/hone/operators.h ${CMAKE_SOURCE_DIR}/include/hone/ranks.h ${CMAKE_SOURCE_DIR}/include/hone/reference.h ${CMAKE_SOURCE_DIR}/include/hone/refit.h
  ${CMAKE_SOURCE_DIR}/include/hone/tools.h)
# When configuring, so that clang-tidy has it, too, for which nothing is built.
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated)
execute_process(COMMAND ${Python3_EXECUTABLE} ${from} ${calls} COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
hone_test(capi SOURCES tools/benchmark_test.cpp building_test.cpp calls_test.cpp contexts_test.cpp operators/gpu_test.cpp operators/operators_test.cpp streams_test.cpp DEPS capi LIBS protozero LABELS fast threaded)
target_include_directories(hone_capi_test PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
