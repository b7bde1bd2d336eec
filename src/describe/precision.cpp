// SPDX-License-Identifier: Apache-2.0
//
// A layer computes in the type that its tactic rounds operands or weights to, else in that of its result, or, where the result is a truth
// value or an index, of what it reads. FP32 by parts of BF16 is named as such.
#include "describe/precision.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace hone {
namespace {

struct Share {
  size_t layers = 0;
  double ms = 0;
};

DType computed_type(const Profile& profile, const Step& step) {
  for (const char* rounded : {"operands", "weights"})
    if (step.tactic_params.has(rounded)) return parse_dtype(step.tactic_params.text(rounded)).value_or(DType::f32);
  const auto type = [&](BufferId id) { return profile.buffers[static_cast<size_t>(id)].type.dtype; };
  for (const auto* ids : {&step.outputs, &step.inputs})
    for (const BufferId id : *ids)
      if (is_float(type(id))) return type(id);
  return step.outputs.empty() ? DType::f32 : type(step.outputs[0]);
}

std::string word(DType dtype) {
  switch (dtype) {
    case DType::f32: return "FP32";
    case DType::f16: return "FP16";
    case DType::bf16: return "BF16";
    case DType::f64: return "FP64";
    case DType::f8e4m3fn: return "FP8";
    case DType::f8e5m2: return "FP8E5M2";
    default: break;
  }
  const std::string text(name_of(dtype));
  if (is_integer(dtype)) return (text[0] == 'u' ? "UINT" : "INT") + text.substr(1);
  return dtype == DType::boolean ? "BOOL" : text;
}

std::string computed_word(const Profile& profile, const Step& step) {
  if (step.tactic_params.has("operands"))
    if (const std::string& operands = step.tactic_params.text("operands"); operands.starts_with("bf16x"))
      return "FP32 by BF16" + operands.substr(4);
  return word(computed_type(profile, step));
}

}  // namespace

std::string precision_text(const Profile& profile) {
  std::map<std::string, Share> shares;
  Share all;
  for (const Step& step : profile.steps) {
    if (step.code < 0) continue;
    Share& share = shares[computed_word(profile, step)];
    for (Share* counted : {&share, &all}) {
      ++counted->layers;
      counted->ms += step.tuned_ms;
    }
  }
  std::vector<std::pair<std::string, Share>> order(shares.begin(), shares.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return std::pair(a.second.ms, a.second.layers) > std::pair(b.second.ms, b.second.layers);
  });
  std::vector<std::string> parts;
  for (const auto& [name, share] : order) {
    std::string part = fmt::format("{} in {}", name, share.layers);
    if (parts.empty()) part += fmt::format(" of {} layers", all.layers);
    if (all.ms > 0)
      part += fmt::format(" ({:.1f} %{})", 100 * share.ms / all.ms, parts.empty() ? " of the tuned time" : "");
    parts.push_back(std::move(part));
  }
  return parts.empty() ? "nothing is computed" : join(parts, ", ");
}

}  // namespace hone
