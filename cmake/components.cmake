# SPDX-License-Identifier: Apache-2.0
#
# Read by CPack for each kind of package: Debian brings the libraries itself; the archive has to, in a folder of its own.
set(CPACK_COMPONENTS_ALL programs system development)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  list(APPEND CPACK_COMPONENTS_ALL libraries)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
