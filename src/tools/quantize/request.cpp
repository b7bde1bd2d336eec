// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/request.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "tools/model/calibration.h"

namespace hone {
namespace {

constexpr int64_t kLargestBlock = 1 << 20;
constexpr std::array<std::string_view, 5> kModes{"int8", "int4", "fp8", "fp16", "bf16"};
constexpr std::array<std::string_view, 4> kAwq{"off", "clip", "lite", "full"};
constexpr std::array<std::string_view, 3> kMetrics{"cosine_similarity", "relative_error", "max_error"};

/// The place of a flag's value in the list of those that it takes.
template <size_t count>
size_t choice(const FriendlyLine& line, std::string_view flag, const std::array<std::string_view, count>& values) {
  const std::string value = line.value(flag);
  const auto found = std::ranges::find(values, value);
  if (found == values.end())
    throw Error(fmt::format("{} takes {}, not '{}'", flag, join(values, ", "), value),
                fmt::format("did you mean {}?", nearest(value, values)));
  return static_cast<size_t>(found - values.begin());
}

std::optional<double> number(const FriendlyLine& line, std::string_view flag) {
  if (!line.has(flag)) return std::nullopt;
  const std::optional<double> value = parse_real(line.value(flag));
  if (value && *value >= 0) return value;
  throw Error(fmt::format("{} takes a number of 0 or more, not '{}'", flag, line.value(flag)));
}

}  // namespace

QuantizeRequest::QuantizeRequest(const FriendlyLine& line)
    : model(line.options.tool.onnx),
      data(line.options.tool.calibration_data),
      cache(line.options.build.calibration_file),
      out(line.value("-o")),
      new_cache(line.value("--write-cache")),
      keep_list(line.value("--keep-list")),
      clipping(read_clipping("--method", line.options.tool.calibration_method)),
      codes(line.has("--asymmetric") ? Codes::asymmetric : Codes::symmetric),
      keeps_io(line.has("--keep-io-types")) {
  if (model.empty() || out.empty())
    throw Error("hone quantize takes an ONNX model and where the quantised one goes",
                "hone quantize MODEL.onnx -o QUANTISED.onnx --data=samples.npz");
  read_mode(line);
  read_blocks(line);
  read_balancing(line);
  read_analysis(line);
  refuse_contradictions();
}

std::string QuantizeRequest::mode_text() const { return std::string(kModes[static_cast<size_t>(mode)]); }

void QuantizeRequest::read_mode(const FriendlyLine& line) {
  if (line.has("--mode")) mode = static_cast<QuantizeMode>(choice(line, "--mode", kModes));
  weights_only = mode == QuantizeMode::int4 || line.has("--weights-only");
  if (mode == QuantizeMode::fp8 && codes == Codes::asymmetric)
    throw Error("codes of fp8 are symmetric", "leave --asymmetric out");
  if (mode == QuantizeMode::fp8) codes = Codes::f8e4m3;
}

void QuantizeRequest::read_blocks(const FriendlyLine& line) {
  if (line.has("--block")) block = parse_integer(line.value("--block")).value_or(0);
  if (block < 1 || block > kLargestBlock)
    throw Error(fmt::format("--block takes a number of weights, not '{}'", line.value("--block")),
                "for example 32 or 128");
  if (line.has("--awq")) awq = static_cast<Awq>(choice(line, "--awq", kAwq));
  feeds_back = line.has("--gptq");
  if (feeds_back && (mode != QuantizeMode::int4 || data.empty()))
    throw Error("--gptq is for --mode int4 with samples", "give --data=samples.npz");
  if (scales_channels() && (mode != QuantizeMode::int4 || data.empty()))
    throw Error(fmt::format("--awq {} is for --mode int4 with samples", line.value("--awq")),
                "give --data=samples.npz");
}

void QuantizeRequest::read_balancing(const FriendlyLine& line) {
  equalizes = line.has("--equalize");
  corrects_biases = line.has("--bias-correction");
  smooth = number(line, "--smooth");
  if (smooth && *smooth > 1)
    throw Error(fmt::format("--smooth takes the activations' share, from 0 to 1, not '{}'", line.value("--smooth")),
                "0.5 is usual");
  if (smooth && data.empty()) throw Error("--smooth looks at activations on samples", "give --data=samples.npz");
  if (corrects_biases && (data.empty() || weights_only))
    throw Error("--bias-correction is for --mode int8 or fp8 with activations, on samples",
                "give --data=samples.npz, and leave --weights-only out");
}

void QuantizeRequest::read_analysis(const FriendlyLine& line) {
  verifies = line.has("--verify");
  ranks = line.has("--sensitivity") || line.has("--budget");
  budget = number(line, "--budget");
  threshold = number(line, "--threshold");
  if (line.has("--sensitivity")) (void)choice(line, "--sensitivity", std::array<std::string_view, 1>{"node"});
  if (line.has("--compare")) metric = kMetrics[choice(line, "--compare", kMetrics)];
  if ((ranks || verifies) && data.empty())
    throw Error("--sensitivity, --budget and --verify run the network on samples", "give --data=samples.npz");
  if (ranks && !cache.empty())
    throw Error("--sensitivity and --budget take their scales from the samples", "leave --calib-cache out");
  if (ranks && (to_few_bits() || weights_only))
    throw Error("--sensitivity and --budget are for --mode int8 or fp8 with activations");
  if (threshold && !verifies) throw Error("--threshold is of --verify", "give --verify, too");
  if (!keep_list.empty() && !budget) throw Error("--keep-list is what --budget leaves out", "give --budget=0.01");
}

void QuantizeRequest::refuse_contradictions() const {
  const bool uses_cache = !new_cache.empty() || !cache.empty();
  if (codes == Codes::asymmetric && uses_cache)
    throw Error("calibration caches have symmetric scales", "leave --asymmetric or the cache out");
  if ((equalizes || smooth) && uses_cache)
    throw Error("a calibration cache is of the model as it stands, and --equalize and --smooth change it",
                "leave them or the cache out");
  if (uses_cache && (weights_only || mode != QuantizeMode::int8))
    throw Error("calibration caches are of --mode int8 with activations", "leave the cache out");
  if (to_few_bits() && (equalizes || smooth || corrects_biases || weights_only || codes == Codes::asymmetric))
    throw Error(fmt::format("--mode {} quantises nothing", mode_text()),
                "leave --equalize, --smooth, --bias-correction, --weights-only and --asymmetric out");
  if (keeps_io && !to_few_bits())
    throw Error("--keep-io-types is for --mode fp16 and bf16",
                "in the other modes inputs and outputs stay as they are");
}

}  // namespace hone
