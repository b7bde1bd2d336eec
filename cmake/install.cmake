# SPDX-License-Identifier: Apache-2.0
#
# What is installed where, in components:
#
#   programs     hone, libhone.so, the backend for Triton and oneDNN: what a wheel holds, too
#   system       trtexec, polygraphy and trex (links), manual pages, completion for bash, zsh and fish
#   development  hone.h, hone.hpp, find_package(hone), hone.pc
#   libraries    Debian's libraries that the programs are linked with, for the archive that is to run elsewhere
#   python       the Python package (python/CMakeLists.txt)
#
# Everything finds what it needs relative to itself, so the installed folder may be moved.

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # not the tests

set_target_properties(hone_shared PROPERTIES INSTALL_RPATH "$ORIGIN/hone")
# The older tag counts for libraries of libraries, too; those of Debian have none of their own.
target_link_options(hone_shared PRIVATE -Wl,--disable-new-dtags)
install(TARGETS hone_shared EXPORT hone RUNTIME_DEPENDENCY_SET hone_libraries
  LIBRARY DESTINATION lib COMPONENT programs NAMELINK_COMPONENT development
  INCLUDES DESTINATION include)
if(NOT HONE_MINIMAL)
  set_target_properties(hone PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/hone")
  target_link_options(hone PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS hone RUNTIME_DEPENDENCY_SET hone_libraries RUNTIME DESTINATION bin COMPONENT programs)
endif()
if(NOT HONE_MINIMAL)
  # A folder of backends as tritonserver wants it: backends/NAME/libtriton_NAME.so.
  set_target_properties(triton_hone PROPERTIES INSTALL_RPATH "$ORIGIN/../../..:$ORIGIN/../..")
  install(TARGETS triton_hone LIBRARY DESTINATION lib/hone/backends/hone COMPONENT programs)
endif()
if(HONE_GLOO_FOUND)
  # Opened by Hone where networks are divided over processes. What it needs itself is Debian's libgloo0.
  set_target_properties(hone_gloo PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS hone_gloo RUNTIME_DEPENDENCY_SET hone_libraries LIBRARY DESTINATION lib/hone COMPONENT programs)
endif()
if(HONE_WITH_ONEDNN)
  install(FILES ${HONE_DNNL_LIBRARY} DESTINATION lib/hone RENAME libdnnl.so.3 COMPONENT programs)
endif()
install(RUNTIME_DEPENDENCY_SET hone_libraries COMPONENT libraries DESTINATION lib/hone EXCLUDE_FROM_ALL
  PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|dnnl)\\.so" "^ld-linux")

install(FILES include/hone/hone.h include/hone/diagnosis.h include/hone/graph.h include/hone/operators.h include/hone/ranks.h include/hone/reference.h include/hone/refit.h include/hone/tools.h include/hone/hone.hpp include/hone/diagnosis.hpp include/hone/graph.hpp include/hone/network.hpp
  include/hone/operators.hpp include/hone/reference.hpp include/hone/compare.hpp include/hone/compare_judging.hpp include/hone/compare_files.hpp include/hone/compare_onnxruntime.hpp include/hone/onnxruntime.hpp DESTINATION include/hone COMPONENT development)
configure_file(cmake/hone.pc.in ${CMAKE_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hone.pc DESTINATION lib/pkgconfig COMPONENT development)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hone-config-version.cmake DESTINATION lib/cmake/hone COMPONENT development)
install(EXPORT hone FILE hone-config.cmake NAMESPACE hone:: DESTINATION lib/cmake/hone COMPONENT development)
add_library(hone::hone ALIAS hone_shared)  # the same name for who has the sources in a project

if(NOT HONE_MINIMAL)
  set(share ${CMAKE_BINARY_DIR}/share)
  add_custom_command(OUTPUT ${share}/man/man1/hone.1 DEPENDS hone COMMAND hone help documents ${share} VERBATIM)
  add_custom_target(documents ALL DEPENDS ${share}/man/man1/hone.1)
  install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/trtexec ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/polygraphy
    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/trex DESTINATION bin COMPONENT system)
  install(DIRECTORY ${share} DESTINATION . COMPONENT system)
  install(FILES LICENSE DESTINATION share/doc/hone RENAME copyright COMPONENT system)
endif()

set(CPACK_PACKAGE_VENDOR "The Hone developers")
set(CPACK_PACKAGE_CONTACT "The Hone developers <maintainers@users.noreply.hone.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Tuned inference engines from ONNX models")
set(CPACK_PACKAGE_FILE_NAME "hone-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR "DEB;TXZ")
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/components.cmake)
include(CPack)
