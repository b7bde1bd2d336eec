// SPDX-License-Identifier: Apache-2.0
//
// Of each float tensor there may be two, one in either type. The one that the model's name stands for is in the small type where all
// around it allows that; the other has a suffix, and a cast or a second initialiser makes it where somebody reads it.
#include "quantize/few_bits_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "onnx/model_file.h"
#include "onnx/proto.h"
#include "onnx/raise_opset.h"
#include "onnx/tensor_data.h"
#include "quantize/few_bits_operators.h"

namespace hone {
namespace {

using onnx::FileNode;
using onnx::NodeProto;

/// The first version of the format whose initialisers need not be inputs, too.
constexpr int64_t kInitializersAlone = 4;

std::string_view name_of_type(DType type) { return type == DType::f16 ? "FP16" : "BF16"; }

Tensor in_few_bits(const Tensor& given, DType type) {
  TensorBuilder builder(type, given.dims());
  const auto fill = [&]<typename T>(std::span<T> to) {
    std::ranges::transform(given.data<float>(), to.begin(), [](float value) { return T(value); });
  };
  if (type == DType::f16) fill(builder.data<Half>());
  else fill(builder.data<BFloat>());
  return builder.finish();
}

void names_in(const onnx::GraphProto& body, std::set<std::string, std::less<>>& names) {
  for (const NodeProto& node : body.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.graph != nullptr) names_in(*attribute.graph, names);
  }
  for (const onnx::ValueProto& output : body.outputs) names.emplace(output.name);
}

/// What the tensors of a model are: their types, and the values of constants.
class Tensors {
 public:
  Tensors(const onnx::ModelProto& model, onnx::ModelData& data, const Graph& graph) : data_(data) {
    for (const onnx::ValueProto& input : model.graph->inputs)
      if (input.containers.empty()) note(input.name, onnx::dtype_of_onnx(input.elem_type));
    for (const onnx::TensorProto& initializer : model.graph->initializers) {
      note(initializer.name, onnx::dtype_of_onnx(initializer.data_type));
      constants_[std::string(initializer.name)] = &initializer;
    }
    for (const Node* node : graph.nodes())
      for (const Value* output : node->outputs) note(output->name, output->type.dtype);
    for (const NodeProto& node : model.graph->nodes) read(node);
  }

  std::optional<DType> type(std::string_view name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_float(std::string_view name) const { return type(name) == DType::f32; }
  bool is_constant(std::string_view name) const { return constants_.contains(name) || reals_.contains(name); }
  Tensor constant(std::string_view name) const {
    if (const auto found = reals_.find(name); found != reals_.end()) return found->second;
    return data_.tensor(*constants_.find(name)->second);
  }

 private:
  void note(std::string_view name, std::optional<DType> type) {
    if (type && !name.empty()) types_.try_emplace(std::string(name), *type);
  }

  /// Nodes that the graph needs none for: constants, and what does nothing or was evaluated.
  void read(const NodeProto& node) {
    if (node.outputs.empty()) return;
    const std::string name(node.outputs.front());
    if (node.op_type == "Constant" && !node.attributes.empty()) return read_constant(name, node.attributes.front());
    if (node.op_type == "Cast") {
      for (const onnx::AttributeProto& attribute : node.attributes)
        if (attribute.name == "to") note(name, onnx::dtype_of_onnx(attribute.integer));
      return;
    }
    const auto known = few_bits_operator(node.op_type);
    if (known && !known->answers && !node.inputs.empty()) note(name, type(node.inputs.front()));
  }
  void read_constant(const std::string& name, const onnx::AttributeProto& attribute) {
    if (attribute.tensor) {
      note(name, onnx::dtype_of_onnx(attribute.tensor->data_type));
      constants_[name] = &*attribute.tensor;
    } else if (attribute.name == "value_float") {
      note(name, DType::f32);
      reals_[name] = Tensor::scalar(static_cast<float>(attribute.real));
    } else if (attribute.name == "value_floats") {
      note(name, DType::f32);
      const std::vector<float> values(attribute.reals.begin(), attribute.reals.end());
      reals_[name] = Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
    } else if (attribute.name == "value_int" || attribute.name == "value_ints") {
      note(name, DType::i64);
    }
  }

  onnx::ModelData& data_;
  std::map<std::string, DType, std::less<>> types_;
  std::map<std::string, const onnx::TensorProto*, std::less<>> constants_;
  std::map<std::string, Tensor, std::less<>> reals_;
};

/// The two forms of a float tensor.
struct Forms {
  std::string few, full;
  bool has_few = false, has_full = false;  // so far
  bool few_read = false, full_read = false;
};

class Converter {
 public:
  Converter(onnx::ModelFile& file, const onnx::ModelProto& model, onnx::ModelData& data, const Graph& graph,
            const FewBitsRules& rules)
      : file_(file),
        model_(*model.graph),
        rules_(rules),
        tensors_(model, data, graph),
        most_(few_bits_range(rules.type)) {
    for (const NodeProto& node : model_.nodes)
      for (const onnx::AttributeProto& attribute : node.attributes)
        if (attribute.graph != nullptr) names_in(*attribute.graph, captured_);
    for (const onnx::NamedMessage& output : file.outputs) outputs_.insert(output.name);
  }

  FewBitsModel run() {
    for (const NodeProto& node : model_.nodes) few_.push_back(judge(node));
    note_readers();
    convert_edges();
    convert_constants();
    rewrite();
    file_.ir_version = std::max<int64_t>(file_.ir_version, kInitializersAlone);
    done_.bytes = file_.encode();
    return std::move(done_);
  }

 private:
  bool is_float(std::string_view name) const { return tensors_.is_float(name); }

  /// Whether the node becomes one in few bits.
  bool judge(const NodeProto& node) {
    if (node.op_type == "Constant" || node.op_type == "Cast") return false;
    const bool floats = std::ranges::any_of(node.inputs, [&](std::string_view each) { return is_float(each); }) ||
                        std::ranges::any_of(node.outputs, [&](std::string_view each) { return is_float(each); });
    const std::string label(node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name);
    if (!floats) return false;
    const std::string reason = obstacle(node, label);
    if (reason.empty()) ++done_.nodes;
    else done_.left.push_back({label, std::string(node.op_type), reason});
    return reason.empty();
  }

  std::string obstacle(const NodeProto& node, const std::string& label) {
    if (rules_.keeps_floats && rules_.keeps_floats(label, node.op_type)) return "it was asked to stay in FP32";
    const auto known = onnx::canonical_domain(node.domain).empty() ? few_bits_operator(node.op_type) : std::nullopt;
    if (!known || (rules_.type == DType::bf16 && !known->bf16_since))
      return fmt::format("{} is not computed in {}", node.op_type, name_of_type(rules_.type));
    const bool statistics = node.op_type == "LayerNormalization" || node.op_type == "BatchNormalization";
    if (statistics && node.outputs.size() > 1) return "its statistics are read";
    for (size_t i = 0; i < std::min(node.inputs.size(), known->operands); ++i) {
      const std::string_view name = node.inputs[i];
      if (!name.empty() && !tensors_.type(name)) return fmt::format("the type of tensor {} is not known", name);
      if (std::string reason = excess(name); !reason.empty()) return reason;
    }
    for (const std::string_view name : node.outputs)
      if (std::string reason = excess(name); !reason.empty()) return reason;
    return {};
  }

  /// Why a tensor cannot be in few bits; empty where it can.
  std::string excess(std::string_view name) {
    if (!is_float(name)) return {};
    const auto [known, is_new] = excess_.try_emplace(std::string(name));
    if (is_new) known->second = tensors_.is_constant(name) ? excess_of_constant(name) : excess_seen(name);
    return known->second;
  }
  std::string excess_seen(std::string_view name) const {
    const auto seen = rules_.reach.find(name);
    if (seen == rules_.reach.end() || seen->second <= most_) return {};
    return fmt::format("tensor {} reaches {:.6g}, beyond the {:.6g} of {}", name, seen->second, most_,
                       name_of_type(rules_.type));
  }
  std::string excess_of_constant(std::string_view name) const {
    const Tensor tensor = tensors_.constant(name);
    const std::span<const float> values = tensor.data<float>();
    for (const float value : values)
      if (std::isfinite(value) && std::fabs(value) > most_)
        return fmt::format("constant {} holds {:.6g}, beyond the {:.6g} of {}", name, value, most_,
                           name_of_type(rules_.type));
    const bool vanishes = values.size() == 1 && values[0] != 0 && in_few_bits(tensor, rules_.type).real(0) == 0;
    return vanishes
               ? fmt::format("constant {} is {:.3g}, which {} has as 0", name, values[0], name_of_type(rules_.type))
               : std::string();
  }

  size_t few_operands(size_t node) const {
    return few_[node] ? few_bits_operator(model_.nodes[node].op_type)->operands : 0;
  }

  Forms& forms(std::string_view name) { return forms_[std::string(name)]; }

  void note_readers() {
    for (size_t i = 0; i < model_.nodes.size(); ++i)
      for (size_t k = 0; k < model_.nodes[i].inputs.size(); ++k)
        if (const std::string_view name = model_.nodes[i].inputs[k]; is_float(name))
          (k < few_operands(i) ? forms(name).few_read : forms(name).full_read) = true;
    for (const std::string& name : captured_)
      if (is_float(name)) forms(name).full_read = true;
    for (size_t i = 0; i < model_.nodes.size(); ++i)
      for (const std::string_view name : model_.nodes[i].outputs)
        if (is_float(name) && !tensors_.is_constant(name)) give_names(name, few_[i]);
    for (const onnx::ValueProto& input : model_.inputs)
      if (is_float(input.name) && !tensors_.is_constant(input.name)) give_names(input.name, false);
  }

  /// The model's name goes to the form that is made here, to that of the network's edge, or to the one that a body reads.
  void give_names(std::string_view tensor, bool made_in_few) {
    const std::string name(tensor);
    const bool at_edge = outputs_.contains(name) || is_input(name);
    const bool few = !captured_.contains(name) && (at_edge ? converts_edge(name) : made_in_few);
    Forms& both = forms(name);
    const std::string suffix = few ? "fp32" : rules_.type == DType::f16 ? "fp16" : "bf16";
    const std::string other = file_.unique_tensor_name(name + "_" + suffix);
    both.few = few ? name : other;
    both.full = few ? other : name;
  }
  bool is_input(const std::string& name) const {
    return std::ranges::any_of(file_.inputs, [&](const onnx::NamedMessage& each) { return each.name == name; });
  }
  bool converts_edge(const std::string& name) {
    return !rules_.keeps_io && !captured_.contains(name) && excess(name).empty();
  }

  void convert_edges() {
    for (onnx::NamedMessage& input : file_.inputs) {
      if (!is_float(input.name) || tensors_.is_constant(input.name)) continue;
      const bool few = converts_edge(input.name);
      (few ? forms(input.name).has_few : forms(input.name).has_full) = true;
      if (few) retype(input);
    }
    for (onnx::NamedMessage& output : file_.outputs)
      if (is_float(output.name) && !tensors_.is_constant(output.name) && converts_edge(output.name)) retype(output);
    for (onnx::NamedMessage& value : file_.value_types)
      if (const auto found = forms_.find(value.name); found != forms_.end() && found->second.few == value.name)
        retype(value);
  }
  void retype(onnx::NamedMessage& value) {
    value.bytes = file_.keep(onnx::with_element_type(value.bytes, rules_.type));
  }

  /// Initialisers and the results of Constant: in the small type, or in both.
  void convert_constants() {
    for (auto& [name, both] : forms_) {
      if (!tensors_.is_constant(name)) continue;
      const bool in_both = both.full_read || outputs_.contains(name);
      both.full = name;
      both.has_full = true;
      if (!both.few_read) continue;
      both.has_few = true;
      both.few = in_both ? file_.unique_tensor_name(name + (rules_.type == DType::f16 ? "_fp16" : "_bf16")) : name;
      const Tensor tensor = in_few_bits(tensors_.constant(name), rules_.type);
      if (!in_both) replaced_.insert(name);
      replace(name, both.few, tensor);
    }
    std::erase_if(file_.nodes, [&](const FileNode& node) { return is_replaced(node); });
  }
  bool is_replaced(const FileNode& node) const {
    return node.op_type == "Constant" && !node.outputs.empty() && replaced_.contains(node.outputs.front());
  }
  void replace(const std::string& name, const std::string& as, const Tensor& tensor) {
    const auto found = std::ranges::find(file_.initializers, name, &onnx::NamedMessage::name);
    if (name != as || found == file_.initializers.end()) return file_.add_initializer(as, tensor);
    found->bytes = file_.keep(onnx::encode_tensor(name, tensor));
    for (onnx::NamedMessage& input : file_.inputs)
      if (input.name == name) retype(input);
  }

  void rewrite() {
    std::vector<FileNode> given = std::move(file_.nodes);
    file_.nodes.clear();
    size_t at = 0;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      if (model_.nodes[i].op_type == "Constant" && replaced_.contains(model_.nodes[i].outputs.front())) continue;
      FileNode node = std::move(given[at++]);
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (is_float(node.inputs[k])) node.inputs[k] = form_of(node.inputs[k], k < few_operands(i));
      std::vector<std::pair<std::string, bool>> wanted;
      for (std::string& output : node.outputs)
        if (is_float(output) && !tensors_.is_constant(output)) rename_result(output, few_[i], wanted);
      file_.nodes.push_back(std::move(node));
      for (const auto& [name, few] : wanted) (void)form_of(name, few);
    }
  }

  /// The form in which a node makes a tensor, and the other one where the network's edge or a body reads it.
  void rename_result(std::string& output, bool few, std::vector<std::pair<std::string, bool>>& wanted) {
    Forms& both = forms(output);
    (few ? both.has_few : both.has_full) = true;
    const std::string& made = few ? both.few : both.full;
    if (made != output && (outputs_.contains(output) || captured_.contains(output))) wanted.emplace_back(output, !few);
    output = made;
  }

  /// The name of a form; a cast makes it where it is not there.
  std::string form_of(const std::string& tensor, bool few) {
    Forms& both = forms(tensor);
    bool& there = few ? both.has_few : both.has_full;
    const std::string &from = few ? both.full : both.few, &to = few ? both.few : both.full;
    if (there) return to;
    there = true;
    ++done_.casts;
    const int64_t type = onnx::onnx_type_of(few ? rules_.type : DType::f32);
    file_.nodes.push_back(
        make_node(file_, file_.unique_node_name(tensor + "_Cast"), "Cast", {from}, {to}, {{"to", type}}));
    return to;
  }

  onnx::ModelFile& file_;
  const onnx::GraphProto& model_;
  const FewBitsRules& rules_;
  Tensors tensors_;
  float most_;
  std::set<std::string, std::less<>> captured_, outputs_, replaced_;  // read by bodies; of the network; constants
  std::map<std::string, std::string, std::less<>> excess_;
  std::map<std::string, Forms, std::less<>> forms_;
  std::vector<bool> few_;  // of each node of the model
  FewBitsModel done_;
};

}  // namespace

float few_bits_range(DType type) { return type == DType::f16 ? half_to_float(0x7bff) : bfloat_to_float(0x7f7f); }

FewBitsModel convert_to_few_bits(const Blob& model, const std::string& directory, const Graph& graph,
                                 const FewBitsRules& rules) {
  Blob bytes = model;
  if (rules.type == DType::bf16) {
    onnx::ModelFile older(model);
    raise_opset(older, kBf16Opset, graph);
    bytes = Blob::copy(older.encode());
  }
  onnx::ModelFile file(bytes);
  const onnx::ModelProto proto = onnx::parse_model(bytes.bytes());
  onnx::ModelData data(std::make_shared<Blob>(bytes), directory);
  for (size_t i = 0; i < file.initializers.size(); ++i)
    if (onnx::NamedMessage& each = file.initializers[i]; is_external(each))
      each.bytes = file.keep(onnx::encode_tensor(each.name, data.tensor(proto.graph->initializers[i])));
  return Converter(file, proto, data, graph, rules).run();
}

}  // namespace hone
