// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/quantized_model.h"

#include <algorithm>

#include "quantize/fold_weights.h"
#include "quantize/quantize_graph.h"
#include "quantize/read_scales.h"
#include "tools/quantize/balancing.h"

namespace hone {
namespace {

/// Decides step by step, on one model.
class Quantizer {
 public:
  Quantizer(const QuantizeRequest& request, const KeepsFloats& keeps, Graph graph, const Logger& log)
      : request_(request), keeps_(keeps), log_(log), device_(open_device("cpu")) {
    result_.model = {std::move(graph), {}, {}};
  }

  QuantizedModel run() {
    if (is_quantized(graph()))
      throw Error(fmt::format("{} is quantised already", request_.model),
                  "give the model in floating point that it was made of");
    if (!request_.cache.empty()) known_ = read_scales(request_.cache, graph(), log_);
    fold_weights(result_.model.graph);
    result_.placement = place(graph());
    refuse_nothing();
    balance(
        request_, [this](const Node& node) { return !keeps_floats(keeps_, node); }, device_, result_);
    find_scales();
    if (request_.ranks) analyse();
    if (request_.corrects_biases)
      correct_biases(
          request_, device_, [this](const Graph& graph) { return place(graph); }, result_);
    return std::move(result_);
  }

 private:
  const Graph& graph() const { return result_.model.graph; }

  /// All that can be quantised, but for what is kept.
  Placement place(const Graph& graph) const { return place(graph, result_.kept); }
  Placement place(const Graph& graph, const NodeNames& kept) const {
    const bool needs_scales = !request_.cache.empty() || !result_.seen.empty();
    const PlacementRules rules{
        .keeps_floats =
            [&](const Node& node) {
              return keeps_floats(keeps_, node) || (!node.origin.empty() && kept.contains(node.origin.front()));
            },
        .has_scale =
            [&](const Value& value) {
              return !needs_scales || known_.contains(value.name) || result_.seen.contains(value.name);
            },
        .products_alone = request_.mode == QuantizeMode::fp8};
    if (request_.mode == QuantizeMode::int4) return place_weights(graph, rules);
    Placement placement = place_quantization(graph, rules);
    if (request_.weights_only) placement.tensors.clear();
    return placement;
  }

  void refuse_nothing() const {
    if (result_.placement.nodes > 0) return;
    const std::vector<UnquantizedNode>& left = result_.placement.left;
    throw Error(fmt::format("{} has no convolution or matmul that can be quantised", request_.model),
                left.empty() ? "it has none at all" : fmt::format("{}: {}", left[0].node->name, left[0].reason));
  }

  void find_scales() {
    if (request_.mode == QuantizeMode::int4) return fit_blocks();
    if (request_.weights_only) {
      result_.source = "the largest weight of each channel";
    } else if (!request_.cache.empty()) {
      result_.scales = united_scales(result_.placement, known_);
      result_.source = request_.cache;
    } else {
      calibrate();
    }
  }

  void fit_blocks() {
    result_.source = fmt::format("blocks of {}", request_.block);
    if (request_.data.empty() || !(request_.clips() || request_.feeds_back)) return;
    DataSet data(request_.data, graph());
    result_.moments = moments_over(result_.model, device_, result_.placement, request_.feeds_back, data);
    result_.source += fmt::format(", fitted to {} samples of {}", data.samples(), request_.data);
  }

  void calibrate() {
    if (request_.data.empty())
      throw Error("nothing says what values the tensors have",
                  "give samples with --data=samples.npz, or scales with --calib-cache=FILE");
    DataSet data(request_.data, graph());
    result_.seen = histograms_over(result_.model, device_, result_.placement, data);
    if (data.left_over() > 0)
      log_.warning("{} samples of {} fill no batch and were left out", data.left_over(), request_.data);
    result_.scales = scales_for(result_.placement);
    const bool whole = request_.mode == QuantizeMode::fp8 && request_.clipping.method == ClippingMethod::entropy;
    result_.source = fmt::format("{} samples of {}, {}", data.samples() - data.left_over(), request_.data,
                                 whole ? "minmax" : text_of(request_.clipping));
  }
  TensorScales scales_for(const Placement& placement) const {
    return scales_of(placement, result_.seen, request_.clipping, request_.codes);
  }

  /// Tries the layers one by one, and takes those out of the placement that the budget does not allow.
  void analyse() {
    const Quantise quantise = [&](const NodeNames& kept) {
      hone_model model{graph().clone(), {}, {}};
      const Placement placement = place(model.graph, kept);
      quantize_graph(model.graph, placement, scales_for(placement), request_.codes);
      return model;
    };
    std::set<std::string> outputs;
    for (const Value* output : graph().outputs())
      if (output->type.dtype == DType::f32) outputs.insert(output->name);
    DataSet data(request_.data, graph());
    ExactNetwork exact(result_.model, device_, outputs, data);
    const Sensitivity sensitivity(exact, quantise, quantised_nodes());
    result_.ranked = sensitivity.ranked();
    if (request_.budget) result_.kept = sensitivity.kept_for(*request_.budget);
    result_.error = sensitivity.error_without(result_.kept);
    result_.placement = place(graph());
    result_.scales = scales_for(result_.placement);
  }

  std::vector<std::string> quantised_nodes() const {
    std::vector<std::string> names;
    for (const PlacedWeights& weights : result_.placement.weights)
      for (const Use& use : weights.uses)
        if (!use.node->origin.empty() && std::ranges::find(names, use.node->origin.front()) == names.end())
          names.push_back(use.node->origin.front());
    return names;
  }

  const QuantizeRequest& request_;
  const KeepsFloats& keeps_;
  const Logger& log_;
  const hone_device device_;
  TensorScales known_;  // of a cache
  QuantizedModel result_;
};

}  // namespace

QuantizedModel quantized_model(const QuantizeRequest& request, const KeepsFloats& keeps_floats, Graph graph,
                               const Logger& log) {
  return Quantizer(request, keeps_floats, std::move(graph), log).run();
}

}  // namespace hone
