// SPDX-License-Identifier: Apache-2.0
//
// What changed between operator sets 7 and 22, as tables: attributes that became operands, attributes that went, values that were
// renamed. Softmax and Split alone need more than that.
#include "onnx/raise_opset.h"

#include <algorithm>
#include <array>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"

namespace hone::onnx {
namespace {

constexpr int64_t kOldest = 7, kNewest = 22;

/// An attribute that is operand `operand` since operator set `since`.
struct BecameOperand {
  std::string_view op_type;
  int since;
  std::string_view attribute;
  size_t operand;
};
constexpr BecameOperand kBecameOperand[] = {{"Slice", 10, "starts", 1},
                                            {"Slice", 10, "ends", 2},
                                            {"Slice", 10, "axes", 3},
                                            {"TopK", 10, "k", 1},
                                            {"Clip", 11, "min", 1},
                                            {"Clip", 11, "max", 2},
                                            {"Pad", 11, "pads", 1},
                                            {"Pad", 11, "value", 2},
                                            {"Dropout", 12, "ratio", 1},
                                            {"Squeeze", 13, "axes", 1},
                                            {"Unsqueeze", 13, "axes", 1},
                                            {"ReduceSum", 13, "axes", 1},
                                            {"Split", 13, "split", 1},
                                            {"ReduceMean", 18, "axes", 1},
                                            {"ReduceMax", 18, "axes", 1},
                                            {"ReduceMin", 18, "axes", 1},
                                            {"ReduceProd", 18, "axes", 1},
                                            {"ReduceL1", 18, "axes", 1},
                                            {"ReduceL2", 18, "axes", 1},
                                            {"ReduceLogSum", 18, "axes", 1},
                                            {"ReduceLogSumExp", 18, "axes", 1},
                                            {"ReduceSumSquare", 18, "axes", 1}};

/// Operators whose older form has no counterpart here: those before `until` are refused.
struct Changed {
  std::string_view op_type;
  int until;
  std::string_view why;
};
constexpr Changed kChanged[] = {{"Upsample", 10, "is gone since operator set 10"},
                                {"Resize", 11, "computes other coordinates since operator set 11"},
                                {"Scatter", 11, "is gone since operator set 11"},
                                {"RoiAlign", 16, "samples half a pixel away since operator set 16"},
                                {"GridSample", 20, "names its modes otherwise since operator set 20"},
                                {"GroupNormalization", 21, "takes a scale per channel since operator set 21"}};

const NamedMessage* attribute_of(const FileNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &NamedMessage::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

/// What an attribute holds, as an operand: integers as a list, but a lone one or a float as they are.
Tensor operand_of(const NamedMessage& attribute) {
  std::vector<int64_t> integers;
  std::optional<float> real;
  protozero::pbf_reader message(attribute.bytes.data(), attribute.bytes.size());
  while (message.next()) {
    const auto wire = message.wire_type();
    if (message.tag() == 2 && wire == protozero::pbf_wire_type::fixed32) real = message.get_float();
    else if ((message.tag() == 3 || message.tag() == 8) && wire == protozero::pbf_wire_type::varint)
      integers.push_back(message.get_int64());
    else if (message.tag() == 8 && wire == protozero::pbf_wire_type::length_delimited)
      for (const int64_t value : message.get_packed_int64()) integers.push_back(value);
    else message.skip();
  }
  if (real) return Tensor::scalar(*real);
  return Tensor::of<int64_t>({static_cast<int64_t>(integers.size())}, integers);
}

class Raise {
 public:
  Raise(ModelFile& file, int64_t from, int64_t to, const Graph& graph) : file_(file), from_(from), to_(to) {
    for (const Value* input : graph.inputs()) note_rank(*input);
    for (const Node* node : graph.nodes())
      for (const Value* output : node->outputs) note_rank(*output);
  }

  void run() {
    std::vector<FileNode> given = std::move(file_.nodes);
    file_.nodes.clear();
    for (FileNode& node : given) {
      if (node.domain.empty() || node.domain == "ai.onnx")
        with_note(
            [&] {
              return fmt::format("bringing node {} ({}) from operator set {} to {}", node.name, node.op_type, from_,
                                 to_);
            },
            [&] { raise(node); });
      file_.nodes.push_back(std::move(node));
    }
    file_.opsets[""] = to_;
    file_.ir_version = std::max<int64_t>(file_.ir_version, to_ > 20 ? 10 : 7);
  }

 private:
  bool crosses(int since) const { return from_ < since && since <= to_; }
  void note_rank(const Value& value) {
    if (value.type.ranked) ranks_.emplace(value.name, value.type.shape.rank());
  }

  void raise(FileNode& node) {
    require_same_bodies(node);
    for (const Changed& change : kChanged)
      if (change.op_type == node.op_type && crosses(change.until))
        throw Error(fmt::format("{} {}", node.op_type, change.why),
                    fmt::format("export the model with operator set {} or newer", change.until));
    if (is_changed_softmax(node)) raise_softmax(node);
    const bool counts_parts = must_count_parts(node);
    for (const BecameOperand& change : kBecameOperand)
      if (is_changed(node, change)) move_attribute(node, change);
    if (counts_parts)
      node.attributes.push_back(
          {"num_outputs", file_.keep(encode_attribute("num_outputs", static_cast<int64_t>(node.outputs.size())))});
  }

  bool is_changed(const FileNode& node, const BecameOperand& change) const {
    return change.op_type == node.op_type && crosses(change.since) && attribute_of(node, change.attribute) != nullptr;
  }
  bool is_changed_softmax(const FileNode& node) const {
    return crosses(13) && (node.op_type == "Softmax" || node.op_type == "LogSoftmax" || node.op_type == "Hardmax");
  }
  /// A Split into equal parts says into how many since operator set 18.
  bool must_count_parts(const FileNode& node) const {
    return node.op_type == "Split" && crosses(18) && attribute_of(node, "split") == nullptr && node.inputs.size() < 2;
  }

  /// Bodies stay as they are: none of their nodes may mean something else now.
  void require_same_bodies(const FileNode& node) const {
    for (const FileNode& inner : nodes_in_bodies(node)) {
      const bool changed =
          is_changed_softmax(inner) || must_count_parts(inner) ||
          std::ranges::any_of(
              kChanged, [&](const Changed& each) { return each.op_type == inner.op_type && crosses(each.until); }) ||
          std::ranges::any_of(kBecameOperand, [&](const BecameOperand& each) { return is_changed(inner, each); });
      if (changed && (inner.domain.empty() || inner.domain == "ai.onnx"))
        throw Error(fmt::format("in its body {} ({}) means something else there", inner.name, inner.op_type),
                    fmt::format("export the model with operator set {} or newer", to_));
      require_same_bodies(inner);
    }
  }

  void move_attribute(FileNode& node, const BecameOperand& change) {
    const NamedMessage* attribute = attribute_of(node, change.attribute);
    const std::string name = file_.unique_tensor_name(fmt::format("{}_{}", node.outputs.front(), change.attribute));
    file_.add_initializer(name, operand_of(*attribute));
    node.inputs.resize(std::max(node.inputs.size(), change.operand + 1));
    node.inputs[change.operand] = name;
    std::erase_if(node.attributes, [&](const NamedMessage& each) { return each.name == change.attribute; });
  }

  /// Before operator set 13 all axes from `axis` (1 by default) on are one.
  void raise_softmax(FileNode& node) {
    const auto rank = ranks_.find(node.outputs.front());
    if (rank == ranks_.end()) throw Error("its rank is not known, and older forms of it depend on that");
    const NamedMessage* attribute = attribute_of(node, "axis");
    const int64_t given = attribute == nullptr ? 1 : operand_of(*attribute).integer(0),
                  last = static_cast<int64_t>(rank->second) - 1, axis = given < 0 ? given + last + 1 : given;
    if (axis != last)
      throw Error(fmt::format("it takes axes {} to {} together, as it did before operator set 13", axis, last),
                  "export the model with operator set 13 or newer");
    std::erase_if(node.attributes, [](const NamedMessage& each) { return each.name == "axis"; });
    node.attributes.push_back({"axis", file_.keep(encode_attribute("axis", -1))});
  }

  ModelFile& file_;
  int64_t from_, to_;
  std::map<std::string, size_t> ranks_;
};

}  // namespace

void raise_opset(ModelFile& file, int64_t wanted, const Graph& graph) {
  const int64_t present = file.opsets[""];
  if (present >= wanted) return;
  HONE_ASSERT(wanted <= kNewest, "operator set {} is not known here", wanted);
  if (present < kOldest)
    throw Error(fmt::format("the model uses operator set {}; {} is needed, and {} the oldest that can be brought there",
                            present, wanted, kOldest),
                "export the model with a newer operator set");
  if (file.has_functions())
    throw Error(fmt::format("the model has functions and uses operator set {}; {} is needed", present, wanted),
                "export it with a newer operator set");
  Raise(file, present, wanted, graph).run();
}

}  // namespace hone::onnx
