// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/debug_tensors.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "report/tensors.h"
#include "report/text.h"
#include "tools/common/inference.h"
#include "tools/files/npy.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSummaryFile = "tensor_summary.json";

std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// What numpy has no type for is stored as the nearest that it has; `ending` says so.
struct NumpyForm {
  DType dtype;
  std::string_view ending;
};
NumpyForm numpy_form(DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return {DType::f32, "_to_float.npy"};
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: return {DType::i8, "_to_int8.npy"};
    default: return {dtype, ".npy"};
  }
}

std::string numpy_file(const Tensor& tensor, DType as) {
  if (as == tensor.dtype()) return npy_text(as, tensor.dims(), tensor.bytes());
  TensorBuilder converted(as, tensor.dims());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (as == DType::f32) converted.data<float>()[static_cast<size_t>(i)] = static_cast<float>(tensor.real(i));
    else converted.data<int8_t>()[static_cast<size_t>(i)] = static_cast<int8_t>(tensor.integer(i));
  }
  return npy_text(as, tensor.dims(), converted.finish().bytes());
}

/// One line per row of the innermost axis.
std::string text_file(const Tensor& tensor) {
  const int64_t row = tensor.dims().empty() ? 1 : std::max<int64_t>(tensor.dims().back(), 1);
  std::string text;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    text += is_float(tensor.dtype()) ? general(tensor.real(i)) : std::to_string(tensor.integer(i));
    text += (i + 1) % row == 0 ? '\n' : ' ';
  }
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// Statistics over the finite values; how many are not is counted.
Json summary_of(const std::string& name, const Tensor& tensor) {
  int64_t finite = 0, nans = 0, infinities = 0, zeros = 0;
  double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.real(i);
    nans += std::isnan(value);
    infinities += std::isinf(value);
    zeros += value == 0;
    if (!std::isfinite(value)) continue;
    ++finite;
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / static_cast<double>(finite);
  const double variance = std::max(squares / static_cast<double>(finite) - mean * mean, 0.0);
  return {{"name", name},
          {"type", type_word(tensor.dtype())},
          {"shape", tensor.dims()},
          {"count", tensor.size()},
          {"min", number(low)},
          {"max", number(high)},
          {"mean", number(mean)},
          {"std", number(std::sqrt(variance))},
          {"zeros", zeros},
          {"nans", nans},
          {"infinities", infinities}};
}

std::vector<std::string> debug_tensors_of(const hone_context* context) {
  std::vector<std::string> names;
  for (size_t i = 0; i < hone_context_debug_tensors(context); ++i)
    names.emplace_back(hone_context_debug_tensor(context, i));
  return names;
}

Owned<hone_value> value_of(hone_context* context, const std::string& name) {
  return make<hone_value>(hone_value_create_from_debug_tensor, context, name.c_str());
}

void save(const std::string& path, const std::string& tensor, const std::string& text, const Logger& log) {
  export_text(path, text);
  log.info("Saved debug tensor {} to {}", tensor, path);
}

void save_all(hone_context* context, const std::vector<std::string>& formats, const Logger& log) {
  const auto wanted = [&](std::string_view format) { return std::ranges::find(formats, format) != formats.end(); };
  FileNames names;
  Json summaries = Json::array();
  for (const std::string& name : debug_tensors_of(context)) {
    const auto value = value_of(context, name);
    const Tensor tensor = tensor_of(value.get());
    if (is_object(tensor.dtype())) {
      log.warning("Debug tensor {} holds {}: it is not written", name, tensor.type().text());
      continue;
    }
    const NumpyForm numpy = numpy_form(tensor.dtype());
    if (wanted("raw")) save(names.take(name, ".raw"), name, text_of(tensor.bytes()), log);
    if (wanted("string")) save(names.take(name, ".str"), name, text_file(tensor), log);
    if (wanted("numpy")) save(names.take(name, numpy.ending), name, numpy_file(tensor, numpy.dtype), log);
    if (wanted("summary")) summaries.push_back(summary_of(name, tensor));
  }
  if (!wanted("summary")) return;
  const Json summary{{"tensors", std::move(summaries)}};
  export_text(std::string(kSummaryFile), summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  log.info("Saved the summary of the debug tensors to {}", kSummaryFile);
}

}  // namespace

void check_debug_requests(hone_context* context, const ToolOptions& options, const Logger& log) {
  const std::vector<std::string> known = debug_tensors_of(context);
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto& [tensor, file] : options.save_debug_tensors)
    if (std::ranges::find(known, tensor) == known.end())
      throw Error(fmt::format("--saveDebugTensors: {} is no debug tensor of the engine", tensor),
                  known.empty() ? "build the engine with --markDebug=" + tensor
                                : fmt::format("the nearest name is {}", nearest(tensor, names)));
  if (known.empty() && !options.debug_formats.empty())
    log.warning("--saveAllDebugTensors: the engine has no debug tensors; build it with --markDebug=<tensors>");
}

void save_debug_tensors(hone_context* context, const ToolOptions& options, const Logger& log) {
  for (const auto& [tensor, file] : options.save_debug_tensors)
    save(file, tensor, text_of(tensor_of(value_of(context, tensor).get()).bytes()), log);
  if (!options.debug_formats.empty()) save_all(context, options.debug_formats, log);
}

}  // namespace hone
