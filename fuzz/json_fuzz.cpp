// SPDX-License-Identifier: Apache-2.0
//
// JSON of any shape is read as attributes and types or refused; what was read is written back unchanged.
#include "harness.h"
#include "tensor/json.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  const Attrs attrs{{"axis", int64_t{-1}},
                    {"scale", 0.1},
                    {"mode", std::string("a\"b\\")},
                    {"pads", std::vector<int64_t>{0, 1}},
                    {"weights", std::vector<double>{1, 2.5}},
                    {"labels", std::vector<std::string>{"", "x"}}};
  const TensorType tensor{DType::f32, {Dim::symbol("N"), Dim::parse("floordiv(H + 1, 2)"), 3}, Layout::linear};
  return {to_json(attrs).dump(), to_json(tensor).dump(), to_json(container_of(DType::sequence, tensor)).dump()};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  fuzz::accepted([&] {
    const Json json = parse_json(fuzz::text_of(data, size), "the input");
    fuzz::accepted([&] {
      const Json once = to_json(attrs_from_json(json));
      HONE_ASSERT(dump(to_json(attrs_from_json(once))) == dump(once), "{} changes", dump(once));
    });
    fuzz::accepted([&] {
      const Json once = to_json(type_from_json(json));
      HONE_ASSERT(dump(to_json(type_from_json(once))) == dump(once), "{} changes", dump(once));
    });
  });
  return 0;
}
