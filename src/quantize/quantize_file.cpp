// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "onnx/raise_opset.h"
#include "quantize/block_weights.h"

namespace hone {
namespace {

/// The first operator set whose QuantizeLinear takes a scale for each channel.
constexpr int64_t kPerChannelOpset = 13;
/// The first one with floats of 8 bits.
constexpr int64_t kFloat8Opset = 19;
/// The first one with scales for blocks.
constexpr int64_t kBlocksOpset = 21;

class FileQuantizer {
 public:
  FileQuantizer(onnx::ModelFile& file, Codes codes) : file_(file), codes_(codes), before_(file.nodes.size()) {
    for (size_t i = 0; i < file.nodes.size(); ++i)
      if (!file.nodes[i].outputs.empty()) producers_[file.nodes[i].outputs.front()] = i;
  }

  void quantize(const PlacedTensor& tensor, const TensorScale& scale) {
    const std::string& name = tensor.value->name;
    const std::vector<Place> places = find(tensor.uses, name);
    if (places.empty()) return done_.not_in_file.push_back(name);
    const std::string step = add(name + "_scale", Tensor::scalar(scale.scale)),
                      zero = add(name + "_zero_point", zero_point(codes_, scale.zero)),
                      quantized = file_.unique_tensor_name(name + "_QuantizeLinear_Output");
    insert(places, "QuantizeLinear", name, {name, step, zero}, quantized, {});
    read_instead(places, dequantize(places, name, {quantized, step, zero}, {}));
    ++done_.pairs;
  }

  void quantize(const PlacedWeights& weights) {
    const std::string& name = weights.value->name;
    const std::vector<Place> places = find(weights.uses, name);
    if (places.empty()) return done_.not_in_file.push_back(name);
    const ChannelWeights integers =
        with_note([&] { return "quantising the weights " + name; },
                  [&] { return quantize_weights(*weights.value->constant, weights.axis, codes_); });
    const std::string codes = add(name + "_quantized", integers.codes), steps = add(name + "_scale", integers.scales);
    read_instead(places, dequantize(places, name, {codes, steps}, {{"axis", weights.axis}}));
    ++done_.weights;
  }

  void quantize(const PlacedWeights& weights, const BlockRules& rules) {
    const std::string& name = weights.value->name;
    const std::vector<Place> places = find(weights.uses, name);
    if (places.empty()) return done_.not_in_file.push_back(name);
    const BlockWeights integers =
        with_note([&] { return "quantising the weights " + name; },
                  [&] { return quantize_blocks(*weights.value->constant, weights.axis, rules); });
    std::vector<std::string> operands{add(name + "_quantized", integers.codes), add(name + "_scale", integers.scales)};
    if (integers.zeros) operands.push_back(add(name + "_zero_point", *integers.zeros));
    read_instead(places,
                 dequantize(places, name, std::move(operands), {{"axis", weights.axis}, {"block_size", rules.block}}));
    ++done_.weights;
  }

  /// The new nodes take their places; weights that nobody reads any more are left out.
  FileQuantization finish() {
    std::vector<onnx::FileNode> given = std::move(file_.nodes);
    file_.nodes.clear();
    for (size_t i = 0; i < given.size(); ++i) {
      for (onnx::FileNode& node : before_[i]) file_.nodes.push_back(std::move(node));
      file_.nodes.push_back(std::move(given[i]));
    }
    remove_unread();
    return std::move(done_);
  }

 private:
  /// An operand of a node of the file.
  struct Place {
    size_t node, operand;
  };

  std::vector<Place> find(const std::vector<Use>& uses, const std::string& name) const {
    std::vector<Place> places;
    for (const Use& use : uses) {
      const auto found = producers_.find(use.node->output()->name);
      if (found == producers_.end()) continue;
      const std::vector<std::string>& inputs = file_.nodes[found->second].inputs;
      if (use.index < inputs.size() && inputs[use.index] == name) places.push_back({found->second, use.index});
    }
    return places;
  }

  std::string add(const std::string& base, const Tensor& tensor) {
    std::string name = file_.unique_tensor_name(base);
    file_.add_initializer(name, tensor);
    return name;
  }

  void insert(const std::vector<Place>& places, const std::string& op_type, const std::string& tensor,
              std::vector<std::string> inputs, const std::string& output,
              const std::vector<std::pair<std::string, int64_t>>& attributes) {
    const size_t first = std::ranges::min_element(places, {}, &Place::node)->node;
    before_[first].push_back(make_node(file_, file_.unique_node_name(tensor + "_" + op_type), op_type,
                                       std::move(inputs), {output}, attributes));
  }

  std::string dequantize(const std::vector<Place>& places, const std::string& tensor, std::vector<std::string> inputs,
                         const std::vector<std::pair<std::string, int64_t>>& attributes) {
    std::string output = file_.unique_tensor_name(tensor + "_DequantizeLinear_Output");
    insert(places, "DequantizeLinear", tensor, std::move(inputs), output, attributes);
    return output;
  }

  void read_instead(const std::vector<Place>& places, const std::string& tensor) {
    for (const Place& place : places) {
      std::string& operand = file_.nodes[place.node].inputs[place.operand];
      replaced_.push_back(operand);
      operand = tensor;
    }
  }

  /// Of what was replaced: initialisers, and nodes that made weights of them.
  void remove_unread() {
    std::set<std::string> candidates(replaced_.begin(), replaced_.end());
    for (bool removed = true; removed;) {
      const auto read = read_names();
      if (!read) return;
      const auto unread = [&](const std::string& name) { return candidates.contains(name) && !read->contains(name); };
      std::vector<std::string> operands;
      const size_t count = std::erase_if(file_.nodes, [&](const onnx::FileNode& node) {
        const bool unused = !node.outputs.empty() && std::ranges::all_of(node.outputs, unread);
        if (unused) operands.insert(operands.end(), node.inputs.begin(), node.inputs.end());
        return unused;
      });
      for (const std::string& name : candidates)
        if (!read->contains(name)) file_.remove_initializer(name);
      candidates.insert(operands.begin(), operands.end());
      removed = count > 0;
    }
  }

  /// What nodes and the graph's outputs read; nothing where a body may read anything.
  std::optional<std::set<std::string>> read_names() const {
    std::set<std::string> names;
    for (const onnx::FileNode& node : file_.nodes) {
      if (std::ranges::any_of(node.attributes, onnx::is_graph)) return std::nullopt;
      names.insert(node.inputs.begin(), node.inputs.end());
    }
    for (const onnx::NamedMessage& output : file_.outputs) names.insert(output.name);
    return names;
  }

  onnx::ModelFile& file_;
  Codes codes_;
  std::map<std::string, size_t> producers_;          // of each node's first result
  std::vector<std::vector<onnx::FileNode>> before_;  // new nodes before the node with that index
  std::vector<std::string> replaced_;
  FileQuantization done_;
};

/// Tensors of other files, which the model may be moved away from.
void bring_in(onnx::ModelFile& file, const Graph& graph) {
  std::map<std::string_view, const Tensor*> constants;
  for (const Node* node : graph.nodes())
    for (const Value* input : node->inputs)
      if (input != nullptr && input->is_constant()) constants.emplace(input->name, &*input->constant);
  for (onnx::NamedMessage& initializer : file.initializers) {
    const auto found = constants.find(initializer.name);
    if (is_external(initializer) && found != constants.end())
      initializer.bytes = file.keep(onnx::encode_tensor(initializer.name, *found->second));
  }
}

}  // namespace

FileQuantization quantize_file(onnx::ModelFile& file, const Graph& graph, const Placement& placement,
                               const TensorScales& scales, Codes codes) {
  raise_opset(file, codes == Codes::f8e4m3 ? kFloat8Opset : kPerChannelOpset, graph);
  FileQuantizer quantizer(file, codes);
  for (const PlacedTensor& tensor : placement.tensors) quantizer.quantize(tensor, scales.at(tensor.value->name));
  for (const PlacedWeights& weights : placement.weights) quantizer.quantize(weights);
  FileQuantization done = quantizer.finish();
  bring_in(file, graph);
  return done;
}

FileQuantization quantize_weights_in_file(onnx::ModelFile& file, const Graph& graph, const Placement& placement,
                                          const WeightRules& rules, const Moments& moments) {
  raise_opset(file, kBlocksOpset, graph);
  FileQuantizer quantizer(file, rules.codes);
  std::map<std::string, std::vector<float>, std::less<>> feedback;  // of each activation, once
  for (const PlacedWeights& weights : placement.weights) {
    const std::string& activation = weights.uses.front().node->input(0)->name;
    const auto seen = moments.find(activation);
    if (seen == moments.end()) {
      quantizer.quantize(weights, {.block = rules.block, .codes = rules.codes});
      continue;
    }
    const std::vector<float> squares = rules.clips ? seen->second.mean_squares() : std::vector<float>();
    std::vector<float>& shares = feedback[activation];
    if (rules.feeds_back && shares.empty()) shares = seen->second.feedback();
    quantizer.quantize(weights, {rules.block, rules.codes, squares, shares});
  }
  FileQuantization done = quantizer.finish();
  bring_in(file, graph);
  return done;
}

}  // namespace hone
