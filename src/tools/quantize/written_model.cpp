// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/written_model.h"
#include "tools/model/read.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "ops/ops.h"
#include "quantize/calibration_cache.h"

namespace hone {
namespace {

bool is_product(const Node& node) { return node.is(ops::conv) || node.is(ops::gemm) || node.is(ops::mat_mul); }

/// The larger, the worse.
double badness(const TensorError& error, std::string_view metric) {
  const double value = metric == "relative_error" ? error.relative
                       : metric == "max_error"    ? error.largest
                                                  : 1 - error.cosine;
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

std::set<std::string> float_results(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs)
      if (output->type.dtype == DType::f32 && !output->name.empty()) names.insert(output->name);
  return names;
}

/// The largest finite magnitude of each tensor: infinities, of masks, few bits have, too.
std::map<std::string, float, std::less<>> reach_over(const hone_model& model, const std::string& path) {
  const hone_device device{open_device("cpu")};
  DataSet data(path, model.graph);
  std::map<std::string, float, std::less<>> reach;
  std::set<std::string> tensors = float_results(model.graph);
  for (const Value* input : model.graph.inputs())
    if (input->type.dtype == DType::f32) tensors.insert(input->name);
  observe(model, device, tensors, data, [&](const std::string& tensor, const Dims&, std::span<const float> values) {
    float& most = reach[tensor];
    for (size_t i = 0; i < values.size(); ++i) {
      HONE_CHECK(!std::isnan(values[i]), "value {} is no number", i);
      if (std::isfinite(values[i])) most = std::max(most, std::fabs(values[i]));
    }
  });
  return reach;
}

}  // namespace

FileQuantization write_quantized(const QuantizeRequest& request, const QuantizedModel& given, const Logger& log) {
  onnx::ModelFile file(Blob::copy(read_file(request.model)));
  apply(given.edits, file);
  const Graph& graph = given.model.graph;
  FileQuantization done =
      request.mode == QuantizeMode::int4
          ? quantize_weights_in_file(file, graph, given.placement,
                                     {request.block, request.codes, request.clips(), request.feeds_back}, given.moments)
          : quantize_file(file, graph, given.placement, given.scales, request.codes);
  for (const std::string& tensor : done.not_in_file)
    log.warning("{} is inside of a function of the model and stays in floating point", tensor);
  write_file(request.out, file.encode());
  if (!request.keep_list.empty()) write_file(request.keep_list, keep_list_text(given.kept));
  if (!request.new_cache.empty())
    write_file(request.new_cache, format_calibration_cache(cache_of(given.scales, request.clipping)));
  return done;
}

FewBitsModel write_few_bits(const QuantizeRequest& request, const KeepsFloats& keeps_floats, const hone_model& model,
                            const Logger&) {
  FewBitsRules rules{request.mode == QuantizeMode::fp16 ? DType::f16 : DType::bf16, request.keeps_io, {}, {}};
  rules.keeps_floats = [&](const std::string& name, std::string_view op_type) {
    return keeps_floats({&name, 1}, op_type);
  };
  if (!request.data.empty()) rules.reach = reach_over(model, request.data);
  const std::string directory = std::filesystem::path(request.model).parent_path().string();
  FewBitsModel done = convert_to_few_bits(Blob::copy(read_file(request.model)), directory.empty() ? "." : directory,
                                          model.graph, rules);
  if (done.nodes == 0)
    throw Error(fmt::format("nothing of {} can be computed in {}", request.model, request.mode_text()),
                done.left.empty() ? "it has no nodes on floats" : done.left[0].node + ": " + done.left[0].reason);
  write_file(request.out, done.bytes);
  return done;
}

std::set<std::string> quantized_results(const QuantizedModel& model) {
  std::set<std::string> names;
  for (const PlacedWeights& weights : model.placement.weights)
    for (const Use& use : weights.uses) names.insert(use.node->output()->name);
  return names;
}

std::set<std::string> product_results(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    if (is_product(*node) && node->output()->type.dtype == DType::f32) names.insert(node->output()->name);
  return names;
}

std::vector<TensorError> verified(const QuantizeRequest& request, const hone_model& exact,
                                  const std::set<std::string>& results, const Logger& log) {
  const hone_model written{read_model(request.out, log).graph, {}, {}};
  std::set<std::string> tensors;
  for (const Node* node : written.graph.nodes())
    for (const Value* output : node->outputs)
      if (is_float(output->type.dtype) && results.contains(output->name)) tensors.insert(output->name);
  DataSet data(request.data, exact.graph);
  const hone_device device{open_device("cpu")};
  std::vector<TensorError> errors = ExactNetwork(exact, device, tensors, data).errors_of(written, data.batches());
  std::ranges::stable_sort(errors, std::greater(),
                           [&](const TensorError& error) { return badness(error, request.metric); });
  return errors;
}

bool fails(const std::vector<TensorError>& errors, const QuantizeRequest& request) {
  if (!request.threshold || errors.empty()) return false;
  const double allowed = request.metric == "cosine_similarity" ? 1 - *request.threshold : *request.threshold;
  return badness(errors.front(), request.metric) > allowed;
}

}  // namespace hone
