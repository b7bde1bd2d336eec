# SPDX-License-Identifier: Apache-2.0
#
# The test of the interface, with the calls that are written from hone.h.
if(HONE_MINIMAL OR NOT BUILD_TESTING)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(calls ${CMAKE_CURRENT_BINARY_DIR}/generated/calls.inc)
add_custom_command(OUTPUT ${calls}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/generated
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/capi_calls.py ${CMAKE_SOURCE_DIR}/include/hone/hone.h ${calls}
  DEPENDS ${CMAKE_SOURCE_DIR}/scripts/capi_calls.py ${CMAKE_SOURCE_DIR}/include/hone/hone.h)
set_source_files_properties(calls_test.cpp PROPERTIES OBJECT_DEPENDS ${calls})
hone_test(capi SOURCES building_test.cpp calls_test.cpp contexts_test.cpp streams_test.cpp DEPS capi LIBS protozero LABELS fast threaded)
target_include_directories(hone_capi_test PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
