# SPDX-License-Identifier: Apache-2.0
#
# embed_texts(<output> <room>/<name>.cuh...): a source file with one string constant per file, made when configuring
# and again whenever one of them changes.
function(embed_texts output)
  set(HONE_EMBEDDED "")
  foreach(path IN LISTS ARGN)
    file(READ ${path} text)
    get_filename_component(name ${path} NAME_WE)
    string(APPEND HONE_EMBEDDED "const char* const ${name} = R\"hone(${text})hone\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${path})
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT
    "#include \"backends/cuda/support/embedded.h\"\n\nnamespace hone::cuda::kernels {\n\n@HONE_EMBEDDED@\n}  // namespace hone::cuda::kernels\n" @ONLY)
endfunction()
