// SPDX-License-Identifier: Apache-2.0
#include "edit/shard/division.h"

#include <algorithm>

#include "base/text.h"
#include "edit/shard/cuts.h"

namespace hone::edit {
namespace {

/// The products with weights, tables and filters of a model, tried one after the other.
class Divider {
 public:
  Divider(const Facts& facts, int ranks, int64_t least) : facts_(facts), least_(least) { division_.ranks = ranks; }

  Division run() {
    for (size_t position = 0; position < facts_.graph().nodes.size(); ++position)
      if (is_product(position)) try_pair(position);
    for (size_t position = 0; position < facts_.graph().nodes.size(); ++position) {
      const Node& node = facts_.node(position);
      if (division_.columns.contains(position) || division_.rows.contains(position)) continue;
      if (is_product(position)) try_head(position);
      else if (node.op_type == "Gather" && reads_table(position)) try_table(position);
      else if (node.op_type == "Conv" && facts_.weight(node.inputs.at(1))) keep(position, 1, "filters are not divided");
    }
    return std::move(division_);
  }

 private:
  bool is_product(size_t position) const {
    const Node& node = facts_.node(position);
    if (node.op_type != "MatMul" && (node.op_type != "Gemm" || facts_.attribute(node, "transA", 0) != 0)) return false;
    const auto source = node.inputs.size() > 1 ? facts_.weight(node.inputs[1]) : std::nullopt;
    return source && source->weight->dims.size() == 2;
  }
  bool reads_table(size_t position) const {
    const Node& node = facts_.node(position);
    const auto source = facts_.weight(node.inputs.at(0));
    return source && source->weight->dims.size() == 2 && facts_.attribute(node, "axis", 0) == 0;
  }
  int64_t elements_of(size_t position, size_t operand) const {
    return element_count(*facts_.weight(facts_.node(position).inputs[operand])->weight);
  }
  void keep(size_t position, size_t operand, const std::string& reason) {
    division_.whole.push_back(
        {facts_.label(position), facts_.node(position).inputs[operand], reason, elements_of(position, operand)});
  }
  bool transposed(size_t position) const {
    const Node& node = facts_.node(position);
    return node.op_type == "Gemm" && facts_.attribute(node, "transB", 0) != 0;
  }

  /// The sum over the weights' rows is over ranks where the operand is cut along its last axis.
  bool cut_rows(size_t position, Division& trial, Cutter& cutter) const {
    const Node& node = facts_.node(position);
    const Shape* operand = facts_.shape(node.inputs[0]);
    if (operand == nullptr || operand->rank() == 0) return false;
    if (node.op_type == "Gemm" && facts_.real(node, "beta", 1) != 1) return false;
    trial.rows.insert(position);
    const Cut cut{operand->rank() - 1};
    return cutter.want_operand(position, 1, {transposed(position) ? size_t{1} : size_t{0}}) &&
           cutter.want_operand(position, 0, cut);
  }

  void try_pair(size_t position) {
    if (division_.columns.contains(position)) return;
    Division trial = division_;
    Cutter cutter(facts_, trial);
    if (!cut_rows(position, trial, cutter)) return note(position, cutter.reason());
    if (trial.columns.size() == division_.columns.size()) return note(position, "no product before it is cut by it");
    if (const std::string reader = reader_outside(trial, cutter.touched(), position); !reader.empty())
      return note(position, reader);
    ++trial.pairs;
    division_ = std::move(trial);
  }
  void note(size_t position, const std::string& reason) { reasons_.emplace(position, reason); }

  /// Who reads a share without being cut itself; "" where there is nobody. Outputs of the model are put together, or stay shares where
  /// they go on with an input that is one.
  std::string reader_outside(Division& trial, const std::set<std::string>& touched, size_t end) const {
    const bool caches =
        std::ranges::any_of(touched, [&](const std::string& name) { return facts_.index().inputs.contains(name); });
    for (const std::string& tensor : touched) {
      if (facts_.index().outputs.contains(tensor) && !caches) trial.gathered.insert(tensor);
      const auto consumers = facts_.index().consumers.find(tensor);
      if (consumers == facts_.index().consumers.end()) continue;
      for (const size_t consumer : consumers->second) {
        const Node& node = facts_.node(consumer);
        const bool cut =
            std::ranges::any_of(node.outputs, [&](const std::string& name) { return trial.tensors.contains(name); });
        const bool bodies = std::ranges::any_of(node.attributes, [](const Attribute& a) { return !a.bodies.empty(); });
        if (bodies || (!cut && consumer != end && node.op_type != "Shape"))
          return fmt::format("{} reads {}, which would be cut", facts_.label(consumer), tensor);
      }
    }
    return {};
  }

  /// Too large to stay whole, alone all the same: columns are put together again, or rows are added up.
  void try_head(size_t position) {
    const Node& node = facts_.node(position);
    const auto noted = reasons_.find(position);
    const std::string reason = noted == reasons_.end() ? "it is no part of a pair" : noted->second;
    if (elements_of(position, 1) < least_) return keep(position, 1, reason);
    const Shape* result = facts_.shape(node.outputs[0]);
    if (result == nullptr) return keep(position, 1, "its sizes are not known");
    Division trial = division_;
    Cutter columns(facts_, trial);
    if (columns.want_operand(position, 1, {transposed(position) ? size_t{0} : size_t{1}}) &&
        cut_bias(position, columns)) {
      trial.columns.insert(position);
      trial.gathered.insert(node.outputs[0]);
    } else {
      trial = division_;
      Cutter rows(facts_, trial);
      const Shape* operand = facts_.shape(node.inputs[0]);
      if (operand == nullptr || (node.op_type == "Gemm" && facts_.real(node, "beta", 1) != 1) ||
          !rows.want_operand(position, 1, {transposed(position) ? size_t{1} : size_t{0}}))
        return keep(position, 1, reason);
      trial.rows.insert(position);
      trial.shares.emplace(Operand{position, 0}, Cut{operand->rank() - 1});
    }
    ++trial.heads;
    division_ = std::move(trial);
  }
  bool cut_bias(size_t position, Cutter& cutter) const {
    const Node& node = facts_.node(position);
    if (node.op_type != "Gemm" || node.inputs.size() < 3 || node.inputs[2].empty()) return true;
    const Shape* bias = facts_.shape(node.inputs[2]);
    if (bias == nullptr || bias->rank() == 0) return false;
    return (*bias)[bias->rank() - 1] == Dim(1) || cutter.want_operand(position, 2, {bias->rank() - 1});
  }

  /// Of a table each rank has some columns.
  void try_table(size_t position) {
    if (elements_of(position, 0) < least_) return keep(position, 0, "it is small");
    Division trial = division_;
    Cutter cutter(facts_, trial);
    if (!cutter.want_operand(position, 0, {1})) return keep(position, 0, cutter.reason());
    trial.gathered.insert(facts_.node(position).outputs[0]);
    ++trial.tables;
    division_ = std::move(trial);
  }

  const Facts& facts_;
  const int64_t least_;
  Division division_;
  std::map<size_t, std::string> reasons_;
};

}  // namespace

Division divide(const Facts& facts, int ranks, int64_t least) {
  HONE_CHECK(ranks >= 2, "a model is divided over two ranks or more, not {}", ranks);
  Division division = Divider(facts, ranks, least).run();
  if (division.pairs + division.heads + division.tables > 0) return division;
  constexpr size_t kMostReasons = 4;
  std::vector<std::string> reasons;
  for (const Whole& each : division.whole)
    if (reasons.size() < kMostReasons) reasons.push_back(fmt::format("{}: {}", each.node, each.reason));
  throw Error(fmt::format("nothing of the model can be divided over {} ranks", ranks),
              reasons.empty() ? "it has no products with weights" : join(reasons, "; "));
}

}  // namespace hone::edit
