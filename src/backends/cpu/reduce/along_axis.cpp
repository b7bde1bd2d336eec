// SPDX-License-Identifier: Apache-2.0
//
// Operators that walk one axis, of any element type: ArgMax, ArgMin, CumSum, Hardmax and TopK. A tensor is outer x n x inner;
// a line is the n elements along the axis. Lines beside each other are done one after the other, so that the cache lines of
// one serve the next.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/reduce/row_folds.h"
#include "backends/cpu/reduce/top_k.h"
#include "backends/cpu/support/number.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

const OpDef* const kOperators[] = {&ops::arg_max, &ops::arg_min, &ops::cum_sum, &ops::hardmax, &ops::top_k};

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  if (node.input(0)->type.shape.rank() == 0) return "its input is a scalar";
  if (problem.region.nodes()[0]->input(0)->type.shape.elements() == Dim(0)) return "empty input";
  const Value* axis = node.is(ops::cum_sum) ? node.input(1) : nullptr;
  if (axis != nullptr && !axis->is_constant() && axis->symbolic == nullptr) return "its axis is not known";
  return {};
}

enum class Rule { arg_max, arg_min, cum_sum, hardmax, top_k };  // in the order of kOperators
constexpr std::array<std::string_view, 5> field_names(Rule) {
  return {"arg_max", "arg_min", "cum_sum", "hardmax", "top_k"};
}

struct AlongAxisCode {
  NodeCode node;
  Rule rule = Rule::arg_max;
  int64_t axis = 0;                         // of a sum it is an operand
  bool last = false;                        // of equals, for ArgMax and ArgMin
  bool exclusive = false, reverse = false;  // of a sum
  bool largest = true;                      // of TopK
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("rule", self.rule);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("last", self.last);
    visit("exclusive", self.exclusive);
    visit("reverse", self.reverse);
    visit("largest", self.largest);
  }
};

AlongAxisCode read_code(const Node& node) {
  AlongAxisCode code;
  const auto found =
      std::find_if(std::begin(kOperators), std::end(kOperators), [&](const OpDef* op) { return node.is(*op); });
  code.rule = static_cast<Rule>(found - std::begin(kOperators));
  if (code.rule != Rule::cum_sum) code.axis = node.attrs.integer("axis");
  switch (code.rule) {
    case Rule::arg_max:
    case Rule::arg_min: code.last = node.attrs.integer("select_last_index") != 0; break;
    case Rule::cum_sum:
      code.exclusive = node.attrs.integer("exclusive") != 0, code.reverse = node.attrs.integer("reverse") != 0;
      break;
    case Rule::hardmax: break;
    case Rule::top_k: code.largest = node.attrs.integer("largest") != 0; break;
  }
  return code;
}

Lines lines_of(const AlongAxisCode& code, const BoundNode& node) {
  const Dims& dims = node.operand(0).type.dims;
  const int64_t given =
      code.rule == Rule::cum_sum ? (node.require(!node.integers(1).empty()), node.integers(1)[0]) : code.axis;
  const size_t axis = normalize_axis(given, dims.size());
  Lines lines{elements(std::span(dims).first(axis)), dims[axis], elements(std::span(dims).subspan(axis + 1))};
  node.require(lines.n > 0);
  return lines;
}

/// The element that no other one along the line beats; the first of equals, or the last.
class Best final : public ItemKernel {
 public:
  Best(const AlongAxisCode& code, const BoundNode& node, const CpuInfo& info)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()),
        smallest_(code.rule == Rule::arg_min),
        last_(code.last),
        places_(extreme_places(info.isa)) {
    node.require(y_.type.dtype == DType::i64 && elements(y_.type.dims) == lines_.count());
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      if (lines_.inner > 1)
        return lines_.for_strips(begin, end, [&](int64_t line, int64_t count) {
          const T* x = x_.as<T>(bindings) + lines_.start(line, lines_.n);
          int64_t* y = y_.as<int64_t>(bindings) + line;
          if constexpr (std::is_same_v<T, float>)
            if (lines_.n <= std::numeric_limits<int32_t>::max())
              return (smallest_ ? places_.smallest_of_columns : places_.largest_of_columns)(x, lines_.n, lines_.inner,
                                                                                            count, last_, y);
          smallest_ ? find_strip(x, count, y, std::less<>()) : find_strip(x, count, y, std::greater<>());
        });
      for (int64_t line = begin; line < end; ++line) {
        const T* x = x_.as<T>(bindings) + lines_.start(line, lines_.n);
        int64_t& place = y_.as<int64_t>(bindings)[line];
        if constexpr (std::is_same_v<T, float>)
          place = (smallest_ ? places_.smallest : places_.largest)(x, lines_.n, last_);
        else place = smallest_ ? find(x, std::less<>()) : find(x, std::greater<>());
      }
    });
  }

  template <typename T, typename Better>
  void find_strip(const T* x, int64_t count, int64_t* y, const Better& better) const {
    using Number = decltype(comparable(x[0]));
    Number top[Lines::kStrip];
    int64_t best[Lines::kStrip] = {};
    for (int64_t j = 0; j < count; ++j) top[j] = comparable(x[j]);
    for (int64_t k = 1; k < lines_.n; ++k) {
      x += lines_.inner;
      for (int64_t j = 0; j < count; ++j) {
        const Number value = comparable(x[j]);
        const bool found = better(value, top[j]) | (last_ & (value == top[j]));
        best[j] = found ? k : best[j], top[j] = found ? value : top[j];
      }
    }
    std::copy(best, best + count, y);
  }

  /// The best number first, several side by side in vectors; then where it stands.
  template <typename T, typename Better>
  int64_t find(const T* x, const Better& better) const {
    constexpr int64_t kTogether = 16;
    using Number = decltype(comparable(x[0]));
    Number tops[kTogether];
    std::fill_n(tops, kTogether, comparable(x[0]));
    int64_t k = 0;
    for (; k + kTogether <= lines_.n; k += kTogether)
      for (int64_t j = 0; j < kTogether; ++j) {
        const Number value = comparable(x[k + j]);
        tops[j] = better(value, tops[j]) ? value : tops[j];
      }
    Number top = tops[0];
    for (const Number value : tops) top = better(value, top) ? value : top;
    for (; k < lines_.n; ++k) top = better(comparable(x[k]), top) ? comparable(x[k]) : top;
    const T* found = x + lines_.n;
    if (last_)
      while (found != x && comparable(found[-1]) != top) --found;
    else found = std::find_if(x, found, [top](const T& value) { return comparable(value) == top; }) + 1;
    return found == x || found > x + lines_.n ? 0 : found - 1 - x;  // a first element that is no number is never beaten
  }

  Lines lines_;
  NodeOperand x_;
  NodeResult y_;
  bool smallest_, last_;
  Places places_;
};

class RunningSum final : public ItemKernel {
 public:
  RunningSum(const AlongAxisCode& code, const BoundNode& node, const CpuInfo& info)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()),
        exclusive_(code.exclusive),
        reverse_(code.reverse),
        rows_(running_rows(info.isa)) {
    node.require(x_.type == y_.type);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      const auto sum = [&](int64_t line, int64_t count) {
        exclusive_ ? sum_strip<T, true>(line, count, bindings) : sum_strip<T, false>(line, count, bindings);
      };
      lines_.for_strips(begin, end, sum, kWide);
    });
  }

  static constexpr int64_t kWide =
      2048;  // lines of a strip: many, for a step along the axis is often another page; in L1

  static constexpr int64_t kVectors = 16;  // lines that are worth a call

  template <typename T, bool kExclusive>
  void sum_strip(int64_t line, int64_t count, const Bindings& bindings) const {
    using Sum = std::conditional_t<kIsFloat<T>, double, uint64_t>;  // unsigned: may wrap
    const int64_t step = reverse_ ? -lines_.inner : lines_.inner, first = reverse_ ? (lines_.n - 1) * lines_.inner : 0;
    const int64_t start = lines_.start(line, lines_.n) + first;
    const T* x = x_.as<T>(bindings) + start;
    T* y = y_.as<T>(bindings) + start;
    Sum sums[kWide];
    std::fill_n(sums, count, Sum{0});
    for (int64_t k = 0; k < lines_.n; ++k, x += step, y += step) {
      if constexpr (std::is_same_v<T, float>)
        if (count >= kVectors) {
          (kExclusive ? rows_.before : rows_.behind)(x, count, sums, y);
          continue;
        }
      for (int64_t j = 0; j < count; ++j) {
        const Sum before = sums[j];
        sums[j] += static_cast<Sum>(widened(x[j]));
        y[j] = narrowed<T>(kExclusive ? before : sums[j]);
      }
    }
  }

  Lines lines_;
  NodeOperand x_;
  NodeResult y_;
  bool exclusive_, reverse_;
  RunningRows rows_;
};

class Hardmax final : public ItemKernel {
 public:
  Hardmax(const AlongAxisCode& code, const BoundNode& node, const CpuInfo& info)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()),
        largest_(extreme_places(info.isa).largest) {
    node.require(x_.type == y_.type);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = lines_.start(line, lines_.n);
        const T* x = x_.as<T>(bindings) + start;
        T* y = y_.as<T>(bindings) + start;
        int64_t best = 0;
        if constexpr (std::is_same_v<T, float>)
          if (lines_.inner == 1) {
            std::memset(y, 0, static_cast<size_t>(lines_.n) * sizeof(float));
            y[largest_(x, lines_.n, false)] = 1;
            continue;
          }
        for (int64_t k = 0; k < lines_.n; ++k) {
          if (comparable(x[k * lines_.inner]) > comparable(x[best * lines_.inner])) best = k;
          y[k * lines_.inner] = narrowed<T>(0);
        }
        y[best * lines_.inner] = narrowed<T>(1);
      }
    });
  }

  Lines lines_;
  NodeOperand x_;
  NodeResult y_;
  decltype(Places::largest) largest_;
};

struct AlongAxisFamily : NodeFamily<AlongAxisCode> {
  static constexpr std::string_view kName = "along_axis";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr ||
        std::none_of(std::begin(kOperators), std::end(kOperators), [&](const OpDef* op) { return node->is(*op); }))
      return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<AlongAxisCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<AlongAxisCode> built{read_code(*single_node(problem))};
    built.code.node = describe_node(problem, built.constants);
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const AlongAxisCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    node.require(elements(node.operand(0).type.dims) > 0);
    switch (code.rule) {
      case Rule::arg_max:
      case Rule::arg_min: return std::make_shared<Best>(code, node, info);
      case Rule::cum_sum: return std::make_shared<RunningSum>(code, node, info);
      case Rule::hardmax: return std::make_shared<Hardmax>(code, node, info);
      case Rule::top_k: return top_k(lines_of(code, node), code.largest, node, info);
    }
    return nullptr;
  }
};

}  // namespace

const CpuTactic tactics::along_axis = describe<AlongAxisFamily>();

}  // namespace hone::cpu
