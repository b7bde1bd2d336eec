// SPDX-License-Identifier: Apache-2.0
//
// Einsum: every label of the equation is a loop; those of the result are the outer ones. "..." stands for labels of its
// own, upper axes first, as many as the operand with the most of them has.
#include <algorithm>
#include <map>

#include "ops/einsum.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

std::string without_blanks(std::string_view text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result), [](char c) { return c != ' '; });
  return result;
}

/// "a...b" for a tensor of rank 4 is "a10b".
std::string written_out(std::string_view term, size_t ellipsis_rank) {
  const size_t at = term.find("...");
  if (at == std::string_view::npos) return std::string(term);
  std::string labels;
  for (size_t i = ellipsis_rank; i-- > 0;) labels += static_cast<char>('0' + i);
  return std::string(term.substr(0, at)) + labels + std::string(term.substr(at + 3));
}

/// Without "->": the ellipsis, then the labels that occur once, in the order of the alphabet.
std::string implied_result(const std::vector<std::string>& operands, size_t ellipsis_rank) {
  std::map<char, int> count;
  for (const std::string& operand : operands)
    for (const char label : operand) ++count[label];
  std::string result = written_out("...", ellipsis_rank);
  for (const auto& [label, times] : count)
    if (times == 1 && std::isalpha(static_cast<unsigned char>(label)) != 0) result += label;
  return result;
}

}  // namespace

EinsumEquation parse_einsum(std::string_view text, const std::vector<size_t>& ranks) {
  const std::string equation = without_blanks(text);
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms{""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  HONE_CHECK(terms.size() == ranks.size(), "Einsum '{}' names {} operands, {} are given", equation, terms.size(),
             ranks.size());
  size_t widest = 0;
  EinsumEquation result;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool open = terms[i].find("...") != std::string::npos;
    const size_t named = terms[i].size() - (open ? 3 : 0);
    HONE_CHECK(open ? ranks[i] >= named && ranks[i] - named < 10 : ranks[i] == named,
               "operand {} of Einsum '{}' has rank {}", i, equation, ranks[i]);
    widest = std::max(widest, ranks[i] - named);
    result.operands.push_back(written_out(terms[i], ranks[i] - named));
  }
  result.result = arrow == std::string::npos ? implied_result(result.operands, widest)
                                             : written_out(equation.substr(arrow + 2), widest);
  for (const char label : result.result)
    HONE_CHECK(std::any_of(result.operands.begin(), result.operands.end(),
                           [&](const std::string& operand) { return operand.find(label) != std::string::npos; }),
               "the result of Einsum '{}' uses a label that no operand has", equation);
  return result;
}

namespace {

void infer_einsum(InferContext& context) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < context.inputs(); ++i) ranks.push_back(context.rank(i));
  const EinsumEquation equation = parse_einsum(context.attrs().text("equation"), ranks);
  std::map<char, Shape> sizes;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      Shape& size = sizes.try_emplace(equation.operands[i][axis], Shape{Dim(1)}).first->second;
      size = broadcast(size, Shape{context.shape(i)[axis]});
    }
  }
  Shape result;
  for (const char label : equation.result) result.push_back(sizes.at(label)[0]);
  context.set(0, context.dtype(0), std::move(result));
}

/// Calls `visit(offset of every operand)` for all values of the labels from `first` on.
class Loops {
 public:
  Loops(const std::string& labels, const std::map<char, int64_t>& sizes, const EinsumEquation& equation,
        const std::vector<Dims>& dims) {
    for (const char label : labels) {
      sizes_.push_back(sizes.at(label));
      Dims strides(dims.size(), 0);
      for (size_t k = 0; k < dims.size(); ++k) {
        const Dims own = strides_of(dims[k]);
        for (size_t axis = 0; axis < own.size(); ++axis)
          if (equation.operands[k][axis] == label && dims[k][axis] != 1) strides[k] += own[axis];
      }
      strides_.push_back(std::move(strides));
    }
  }
  template <typename Visit>
  void run(Dims& offsets, const Visit& visit_one, size_t level = 0) const {
    if (level == sizes_.size()) return visit_one();
    for (int64_t i = 0; i < sizes_[level]; ++i) {
      run(offsets, visit_one, level + 1);
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += strides_[level][k];
    }
    for (size_t k = 0; k < offsets.size(); ++k) offsets[k] -= strides_[level][k] * sizes_[level];
  }

 private:
  Dims sizes_;
  std::vector<Dims> strides_;
};

void eval_einsum(EvalContext& context) {
  std::vector<size_t> ranks;
  std::vector<Dims> dims;
  std::vector<std::vector<double>> data;
  for (size_t i = 0; i < context.inputs(); ++i) {
    dims.push_back(context.input(i).dims());
    ranks.push_back(dims.back().size());
    data.push_back(read_doubles(context.input(i)));
  }
  const EinsumEquation equation = parse_einsum(context.attrs().text("equation"), ranks);
  std::map<char, int64_t> sizes;
  std::string summed;
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const char label = equation.operands[i][axis];
      int64_t& size = sizes.try_emplace(label, 1).first->second;
      HONE_CHECK(size == 1 || dims[i][axis] == 1 || size == dims[i][axis],
                 "sizes {} and {} of label '{}' of Einsum differ", size, dims[i][axis], label);
      if (dims[i][axis] != 1) size = dims[i][axis];
      if (equation.result.find(label) == std::string::npos && summed.find(label) == std::string::npos) summed += label;
    }
  }
  const Loops outer(equation.result, sizes, equation, dims), inner(summed, sizes, equation, dims);
  Dims offsets(dims.size(), 0), result_dims;
  for (const char label : equation.result) result_dims.push_back(sizes.at(label));
  std::vector<double> result;
  outer.run(offsets, [&] {
    double sum = 0;
    inner.run(offsets, [&] {
      double product = 1;
      for (size_t k = 0; k < data.size(); ++k) product *= data[k][static_cast<size_t>(offsets[k])];
      sum += product;
    });
    result.push_back(sum);
  });
  context.set(0, write_doubles(context.input(0).dtype(), std::move(result_dims), result));
}

}  // namespace

const OpDef ops::einsum{.name = "Einsum",
                        .attrs = {required_attr("equation", AttrKind::text)},
                        .min_inputs = 1,
                        .max_inputs = 0xffff,
                        .infer = infer_einsum,
                        .eval = eval_einsum,
                        .onnx = {{"Einsum", 12}}};

}  // namespace hone
