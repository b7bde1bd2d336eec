# SPDX-License-Identifier: Apache-2.0
#
# embed_page(<output> <name>=<file>...): a source file with one text per file, made when configuring and again whenever one of them
# changes.
function(embed_page output)
  set(HONE_EMBEDDED "")
  foreach(pair IN LISTS ARGN)
    string(REGEX MATCH "^([a-z0-9_]+)=(.*)$" _ ${pair})
    set(name ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
    file(READ ${path} text)
    string(APPEND HONE_EMBEDDED "const std::string_view ${name} = R\"hone(${text})hone\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT
    "#include \"explore/embedded_page.h\"\n\nnamespace hone::page {\n\n@HONE_EMBEDDED@\n}  // namespace hone::page\n" @ONLY)
endfunction()
