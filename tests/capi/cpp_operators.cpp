// SPDX-License-Identifier: Apache-2.0
//
// A library of operators in C++, for trtexec --staticPlugins: com.acme::SoftClip. It is not linked with Hone.
#include <cmath>

#include "hone/operators.hpp"

namespace {

hone::Operator& soft_clip() {
  static hone::Operator op("com.acme", "SoftClip", 1, 1, {"x0"});
  op.run = [](const hone::Call& call) {
    const float limit = call.real("limit", 1);
    const auto x = call.read<float>(0);
    std::ranges::transform(x, call.write<float>(0).begin(), [&](float v) { return limit * std::tanh(v / limit); });
  };
  return op;
}

}  // namespace

extern "C" HONE_API const hone_operator* const* hone_library_operators(int) {
  static const hone::OperatorLibrary list{&soft_clip()};
  return list.data();
}
