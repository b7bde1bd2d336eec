# SPDX-License-Identifier: Apache-2.0
#
# The package for pip: what a build of Hone installs goes into the package's folder (bin, lib, include), and two small programs
# that start bin/hone from there onto the PATH.
set(HONE_BUILD ${CMAKE_CURRENT_SOURCE_DIR}/../build/release CACHE PATH "A build of Hone; made here when there is none")
set(HONE_VENV ${CMAKE_CURRENT_SOURCE_DIR}/../.venv CACHE PATH "Python environment that holds oneDNN and nanobind")

if(NOT EXISTS ${HONE_BUILD}/python/hone/py.typed)
  set(HONE_BUILD ${CMAKE_BINARY_DIR}/hone)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_SOURCE_DIR}/.. -B ${HONE_BUILD}
    -G ${CMAKE_GENERATOR} -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DHONE_VENV=${HONE_VENV})
  add_custom_target(hone_build ALL COMMAND ${CMAKE_COMMAND} --build ${HONE_BUILD} --target programs _hone_stub)
endif()

add_executable(start src/start.c)
foreach(program hone trtexec)
  install(PROGRAMS $<TARGET_FILE:start> DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME ${program})
endforeach()
foreach(component programs python)
  install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${CMAKE_COMMAND} --install ${HONE_BUILD} --component ${component} --strip --prefix \${CMAKE_INSTALL_PREFIX}/hone)")
endforeach()
install(FILES ../include/hone/hone.h ../include/hone/diagnosis.h ../include/hone/graph.h ../include/hone/operators.h ../include/hone/ranks.h ../include/hone/reference.h ../include/hone/refit.h ../include/hone/tools.h ../include/hone/hone.hpp
  ../include/hone/diagnosis.hpp ../include/hone/graph.hpp ../include/hone/network.hpp ../include/hone/operators.hpp ../include/hone/reference.hpp
  ../include/hone/compare.hpp ../include/hone/compare_files.hpp ../include/hone/compare_judging.hpp ../include/hone/compare_onnxruntime.hpp ../include/hone/onnxruntime.hpp
  DESTINATION hone/include/hone)
