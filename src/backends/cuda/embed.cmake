# SPDX-License-Identifier: Apache-2.0
#
# embed_texts(<output> <folder> name...): a source file with one string constant per <folder>/<name>.cuh, made when configuring
# and again whenever one of them changes.
function(embed_texts output folder)
  set(HONE_EMBEDDED "")
  foreach(name IN LISTS ARGN)
    file(READ ${folder}/${name}.cuh text)
    string(APPEND HONE_EMBEDDED "const char* const ${name} = R\"hone(${text})hone\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${name}.cuh)
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT
    "#include \"backends/cuda/kernels/embedded.h\"\n\nnamespace hone::cuda::kernels {\n\n@HONE_EMBEDDED@\n}  // namespace hone::cuda::kernels\n" @ONLY)
endfunction()
