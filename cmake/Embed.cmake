# cmake -DOUT=x.cpp -DFILES="name=path;…" -P Embed.cmake: a C++ file with each
# file's bytes, and a zero byte after them, as commsir::embedded::<name> and its
# length as <name>Size.

set(text "// Made by CMake from binary files; do not edit.\n#include <cstddef>\nnamespace commsir::embedded {\n")
foreach(file ${FILES})
  string(REGEX MATCH "^([^=]*)=(.*)$" unused "${file}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "extern const unsigned char ${name}[];\nextern const size_t ${name}Size;\n"
    "alignas(8) const unsigned char ${name}[] = {${bytes}0};\nconst size_t ${name}Size = ${size};\n")
endforeach()
file(WRITE "${OUT}" "${text}} // namespace commsir::embedded\n")
