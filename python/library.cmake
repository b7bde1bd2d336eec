# SPDX-License-Identifier: Apache-2.0
#
# The library for the package alone: found, or built from the sources around it.
if(HONE_LIBRARY)
  add_library(hone_shared SHARED IMPORTED)
  set_target_properties(hone_shared PROPERTIES IMPORTED_LOCATION ${HONE_LIBRARY})
else()
  set(BUILD_TESTING OFF CACHE BOOL "" FORCE)
  set(HONE_WITH_PYTHON OFF CACHE BOOL "" FORCE)
  add_subdirectory(.. hone-build EXCLUDE_FROM_ALL)
endif()
install(FILES $<TARGET_FILE:hone_shared> DESTINATION hone)
file(GLOB onednn ${HONE_VENV}/lib/libdnnl.so.3)
install(FILES ${onednn} DESTINATION hone)
