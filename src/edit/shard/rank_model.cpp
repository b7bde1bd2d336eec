// SPDX-License-Identifier: Apache-2.0
#include "edit/shard/rank_model.h"

#include <algorithm>
#include <cstring>

#include "edit/changes/clean.h"
#include "edit/parts.h"

namespace hone::edit {
namespace {

/// A share in a row of elements: so many pieces, a stride apart.
struct Pieces {
  int64_t begin, length, stride, count;
};

Pieces pieces_of(const std::vector<int64_t>& dims, const Cut& cut, int rank, int ranks) {
  const auto axis = dims.begin() + static_cast<std::ptrdiff_t>(cut.axis);
  const int64_t before = elements(Dims(dims.begin(), axis)), behind = elements(Dims(axis + 1, dims.end()));
  const int64_t part = *axis / cut.outer, block = part / ranks;
  return {
      .begin = rank * block * behind, .length = block * behind, .stride = part * behind, .count = before * cut.outer};
}

class Writer {
 public:
  Writer(const Model& model, const Facts& facts, const Division& division, int rank, CollectiveForm form)
      : facts_(facts), division_(division), rank_(rank), form_(form), model_(model), names_(tensor_names(model.graph)) {
    model_.graph = deep_copy(model.graph);
    before_.resize(model_.graph.nodes.size());
    behind_.resize(model_.graph.nodes.size());
  }

  Model write() {
    for (const auto& [operand, cut] : division_.constants) input(operand) = share_of_constant(input(operand), cut);
    for (const auto& [operand, sizes] : division_.sizes) say_sizes(operand, sizes);
    for (const auto& [operand, cut] : division_.shares) input(operand) = share_of_whole(operand, cut);
    for (const std::string& tensor : division_.gathered) gather(tensor);
    for (const size_t position : division_.rows) add_up(position);
    for (const auto& [tensor, cut] : division_.tensors) tell_whole_sizes(tensor, cut);
    for (std::vector<Value>* values : {&model_.graph.inputs, &model_.graph.outputs})
      for (Value& value : *values) declare_share(value);
    model_.graph.values.clear();
    put_together();
    clean(model_);
    return std::move(model_);
  }

 private:
  Node& node(size_t position) { return model_.graph.nodes[position]; }
  std::string& input(const Operand& operand) { return node(operand.first).inputs[operand.second]; }
  std::string fresh(const std::string& base) { return fresh_name(names_, base); }

  std::string constant(const std::string& base, const std::vector<int64_t>& numbers) {
    std::string name = fresh(base);
    model_.graph.weights.push_back(make_weight(
        model_, name, Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, std::span<const int64_t>(numbers))));
    return name;
  }
  Node make(const std::string& op, std::vector<std::string> inputs, const std::string& output,
            const std::vector<std::pair<std::string, AttributeValue>>& attributes = {},
            const std::string& domain = "") {
    Node made{.name = output + "/" + op,
              .op_type = op,
              .domain = domain,
              .inputs = std::move(inputs),
              .outputs = {output},
              .attributes = {},
              .rest = {}};
    for (const auto& [name, value] : attributes) made.attributes.push_back(make_attribute(model_, name, value));
    return made;
  }

  // ---- Constants ----

  std::string share_of_constant(const std::string& tensor, const Cut& cut) {
    const auto source = facts_.weight(tensor);
    const std::string& origin = source ? source->weight->name : tensor;
    const Cut own{source && source->transposed ? 1 - cut.axis : cut.axis, cut.outer};
    std::string& share = shares_[{origin, own}];
    if (share.empty()) {
      share = fresh(origin + ".share");
      model_.graph.weights.push_back(source ? share_of(*source->weight, own, share)
                                            : make_weight(model_, share, share_of(*facts_.constant(tensor), own)));
    }
    if (!source || !source->transposed) return share;
    std::string& turned = turned_[share];
    if (turned.empty()) {
      turned = fresh(share + ".turned");
      first_.push_back(make("Transpose", {share}, turned, {{"perm", std::vector<int64_t>{1, 0}}}));
    }
    return turned;
  }

  Tensor share_of(const Tensor& whole, const Cut& cut) const {
    Dims dims = whole.dims();
    const Pieces pieces = pieces_of(dims, cut, rank_, division_.ranks);
    dims[cut.axis] /= division_.ranks;
    TensorBuilder builder(whole.dtype(), dims);
    const std::span<const std::byte> bytes = whole.bytes();
    const size_t each = whole.size() == 0 ? 0 : bytes.size() / static_cast<size_t>(whole.size());
    std::byte* to = builder.bytes();
    for (int64_t i = 0; i < pieces.count; ++i) {
      const auto from = static_cast<size_t>(pieces.begin + i * pieces.stride) * each,
                 size = static_cast<size_t>(pieces.length) * each;
      to = std::ranges::copy(bytes.subspan(from, size), to).out;
    }
    return builder.finish();
  }

  /// What lies in another file stays there until the model is written.
  Weight share_of(const Weight& whole, const Cut& cut, const std::string& name) {
    if (!whole.file) return make_weight(model_, name, share_of(tensor_of(model_, whole), cut));
    const Pieces pieces = pieces_of(whole.dims, cut, rank_, division_.ranks);
    std::vector<int64_t> dims = whole.dims;
    dims[cut.axis] /= division_.ranks;
    Weight share = make_weight(model_, name, whole.type, dims, "");
    constexpr int64_t kByte = 8;
    const int64_t bits = element_bytes(whole) * kByte / std::max<int64_t>(element_count(whole), 1);
    HONE_CHECK(
        pieces.begin * bits % kByte == 0 && pieces.length * bits % kByte == 0 && pieces.stride * bits % kByte == 0,
        "the share of '{}' begins within a byte", whole.name);
    share.file = FileRange{.location = whole.file->location,
                           .offset = whole.file->offset + pieces.begin * bits / kByte,
                           .length = pieces.count * pieces.length * bits / kByte,
                           .pieces = pieces.count,
                           .stride = pieces.stride * bits / kByte};
    return share;
  }

  // ---- Nodes ----

  void say_sizes(const Operand& operand, const std::vector<int64_t>& sizes) {
    Node& reader = node(operand.first);
    input(operand) = constant(reader.outputs[0] + ".sizes", sizes);
    if (reader.attribute("allowzero") != nullptr) set_attribute(model_, reader, "allowzero", int64_t{0});
  }

  std::string share_of_whole(const Operand& operand, const Cut& cut) {
    const std::string whole = input(operand);
    std::string& share = shares_[{whole, cut}];
    if (!share.empty()) return share;
    share = fresh(whole + ".share");
    const int64_t block = (*facts_.shape(whole))[cut.axis].value() / division_.ranks;
    before_[operand.first].push_back(
        make("Slice",
             {whole, constant(share + ".starts", {rank_ * block}), constant(share + ".ends", {(rank_ + 1) * block}),
              constant(share + ".axes", {static_cast<int64_t>(cut.axis)})},
             share));
    return share;
  }

  /// What a node makes is a part from now on; its name goes to what is made of all parts.
  std::string rename_result(size_t position, const std::string& result) {
    std::string part = fresh(result + ".part");
    std::ranges::replace(node(position).outputs, result, part);
    return part;
  }

  void gather(const std::string& tensor) {
    const size_t producer = facts_.index().producer.at(tensor);
    const std::string part = rename_result(producer, tensor);
    const auto cut = division_.tensors.find(tensor);
    const Shape& shape = *facts_.shape(tensor);
    const size_t axis = cut == division_.tensors.end() ? shape.rank() - 1 : cut->second.axis;
    if (const auto readers = facts_.index().consumers.find(tensor);
        cut != division_.tensors.end() && readers != facts_.index().consumers.end())
      for (const size_t reader : readers->second)
        if (node(reader).op_type != "Shape") std::ranges::replace(node(reader).inputs, tensor, part);
    std::vector<Node>& behind = behind_[producer];
    if (form_ == CollectiveForm::microsoft) {
      behind.push_back(make("AllGather", {part}, tensor,
                            {{"axis", static_cast<int64_t>(axis)}, {"group_size", int64_t{division_.ranks}}},
                            "com.microsoft"));
      return;
    }
    if (axis == 0) {
      behind.push_back(collective("all_gather", part, tensor));
      return;
    }
    const std::string apart = fresh(part + ".apart"), all = fresh(part + ".all"), turned = fresh(part + ".turned");
    behind.push_back(make("Unsqueeze", {part, constant(apart + ".axes", {0})}, apart));
    behind.push_back(collective("all_gather", apart, all));
    std::vector<int64_t> perm, sizes;
    for (size_t i = 0; i < shape.rank(); ++i) {
      if (i == axis) perm.push_back(0);
      perm.push_back(static_cast<int64_t>(i) + 1);
      sizes.push_back(i < axis ? 0 : shape[i].is_constant() ? shape[i].value() : -1);
    }
    behind.push_back(make("Transpose", {all}, turned, {{"perm", perm}}));
    behind.push_back(make("Reshape", {turned, constant(tensor + ".sizes", sizes)}, tensor));
  }

  Node collective(const std::string& operation, const std::string& from, const std::string& to) {
    if (form_ == CollectiveForm::microsoft) return make("AllReduce", {from}, to, {}, "com.microsoft");
    return make("DistCollective", {from}, to,
                {{"collective_operation", operation},
                 {"reduce_op", std::string("sum")},
                 {"root", int64_t{0}},
                 {"group_size", int64_t{division_.ranks}}});
  }

  /// A bias is added once, behind the sum.
  void add_up(size_t position) {
    const std::string result = node(position).outputs[0];
    const std::string part = rename_result(position, result);
    Node& product = node(position);
    std::string bias;
    if (product.op_type == "Gemm" && product.inputs.size() > 2) {
      bias = product.inputs[2];
      product.inputs.resize(2);
    }
    const std::string sum = bias.empty() ? result : fresh(result + ".sum");
    behind_[position].push_back(collective("all_reduce", part, sum));
    if (!bias.empty()) behind_[position].push_back(make("Add", {sum, bias}, result));
  }

  /// Who asks for sizes is told those of the whole: all arithmetic of sizes stays what it is.
  void tell_whole_sizes(const std::string& tensor, const Cut& cut) {
    const auto readers = facts_.index().consumers.find(tensor);
    if (division_.gathered.contains(tensor) || readers == facts_.index().consumers.end()) return;
    const auto rank = static_cast<int64_t>(facts_.shape(tensor)->rank());
    for (const size_t reader : readers->second) {
      if (facts_.node(reader).op_type != "Shape") continue;
      const auto place = [&](const char* name, int64_t fallback) {
        const int64_t given = facts_.attribute(facts_.node(reader), name, fallback);
        return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
      };
      const int64_t start = place("start", 0), end = place("end", rank);
      std::vector<int64_t> factors;
      for (int64_t axis = start; axis < end; ++axis)
        factors.push_back(axis == static_cast<int64_t>(cut.axis) ? division_.ranks : 1);
      const std::string result = node(reader).outputs[0];
      const std::string part = rename_result(reader, result);
      behind_[reader].push_back(make("Mul", {part, constant(part + ".ranks", factors)}, result));
    }
  }

  void declare_share(Value& value) {
    const auto cut = division_.tensors.find(value.name);
    if (cut == division_.tensors.end() || division_.gathered.contains(value.name)) return;
    ValueType type = type_of(value);
    if (!type.sizes || cut->second.axis >= type.sizes->size()) return;
    Size& size = (*type.sizes)[cut->second.axis];
    if (size.number) *size.number /= division_.ranks;
    value = with_type(model_, value, type);
  }

  void put_together() {
    std::vector<Node> nodes = std::move(first_);
    for (size_t position = 0; position < model_.graph.nodes.size(); ++position) {
      std::ranges::move(before_[position], std::back_inserter(nodes));
      nodes.push_back(std::move(model_.graph.nodes[position]));
      std::ranges::move(behind_[position], std::back_inserter(nodes));
    }
    model_.graph.nodes = std::move(nodes);
    const auto is_microsoft = [](const Opset& opset) { return opset.domain == "com.microsoft"; };
    if (form_ == CollectiveForm::microsoft && std::ranges::none_of(model_.opsets, is_microsoft))
      model_.opsets.push_back({.domain = "com.microsoft", .version = 1, .rest = {}});
  }

  const Facts& facts_;
  const Division& division_;
  const int rank_;
  const CollectiveForm form_;
  Model model_;
  std::unordered_set<std::string> names_;
  std::vector<std::vector<Node>> before_, behind_;  // by position
  std::vector<Node> first_;
  std::map<std::pair<std::string, Cut>, std::string> shares_;
  std::map<std::string, std::string> turned_;  // of shares
};

}  // namespace

Model rank_model(const Model& model, const Facts& facts, const Division& division, int rank, CollectiveForm form) {
  constexpr int64_t kLeastOpset = 13;
  if (model.opset() < kLeastOpset)
    throw Error(
        fmt::format("the model is written in operator set {}; {} and newer can be divided", model.opset(), kLeastOpset),
        "convert it with onnx.version_converter");
  return Writer(model, facts, division, rank, form).write();
}

}  // namespace hone::edit
