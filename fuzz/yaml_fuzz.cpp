// SPDX-License-Identifier: Apache-2.0
//
// YAML of any shape is read or refused; what was read is written, and read from there as it was.
#include "harness.h"
#include "tools/files/yaml.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  return {
      "name: toyPlugin\nop: CustomToyPlugin\ninstances:\n- inputs:\n  - i1\n  - i1\n  outputs: [o1, o2]\n  "
      "attributes:\n    ToyX: 2\n",
      "--- &a {x: [1, 2.5, -.inf, ~, 'it''s', \"\\u00e4\\n\"], y: !!str 3}\n...\n---\n- &b |\n  text\n  more\n- *b\n- "
      ">-\n  folded\n",
      yaml_text({Json{{"a", {1, 2.0, true, nullptr, "no", ""}}}})};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  fuzz::accepted([&] {
    const std::vector<Json> read = parse_yaml(fuzz::text_of(data, size));
    std::string text;
    if (!fuzz::accepted([&] { text = yaml_text(read); })) return;
    const auto dump = [](const std::vector<Json>& documents) {
      return Json(documents).dump(-1, ' ', false, Json::error_handler_t::replace);
    };
    const std::vector<Json> again = parse_yaml(text);
    HONE_ASSERT(dump(again) == dump(read), "{} becomes {}", dump(read), dump(again));
  });
  return 0;
}
