// SPDX-License-Identifier: Apache-2.0
//
// Operators that walk one axis, of any element type: ArgMax, ArgMin, CumSum, Hardmax and TopK. A tensor is outer x n x inner;
// a line is the n elements along the axis. Lines beside each other are done one after the other, so that the cache lines of
// one serve the next.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/support/node_code.h"
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

struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  /// Calls `body(line, count)` for lines beside each other, kStrip at the most: their elements at one place lie behind each other.
  static constexpr int64_t kStrip = 64;
  template <typename Body>
  void for_strips(int64_t begin, int64_t end, const Body& body) const {
    for (int64_t count = 0; begin < end; begin += count) {
      count = std::min({kStrip, end - begin, inner - begin % inner});
      body(begin, count);
    }
  }
  /// Where a line begins in a tensor with `length` elements along the axis.
  int64_t start(int64_t line, int64_t length) const { return line / inner * length * inner + line % inner; }
};

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
  Best(const AlongAxisCode& code, const BoundNode& node)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()),
        smallest_(code.rule == Rule::arg_min),
        last_(code.last) {
    node.require(y_.type.dtype == DType::i64 && elements(y_.type.dims) == lines_.count());
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      if (lines_.inner > 1)
        return lines_.for_strips(begin, end, [&](int64_t line, int64_t count) {
          const T* x = x_.as<T>(bindings) + lines_.start(line, lines_.n);
          int64_t* y = y_.as<int64_t>(bindings) + line;
          smallest_ ? find_strip(x, count, y, std::less<>()) : find_strip(x, count, y, std::greater<>());
        });
      for (int64_t line = begin; line < end; ++line) {
        const T* x = x_.as<T>(bindings) + lines_.start(line, lines_.n);
        y_.as<int64_t>(bindings)[line] = smallest_ ? find(x, std::less<>()) : find(x, std::greater<>());
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

  template <typename T, typename Better>
  int64_t find(const T* x, const Better& better) const {
    int64_t best = 0;
    auto top = comparable(x[0]);
    for (int64_t k = 1; k < lines_.n; ++k) {
      const auto value = comparable(x[k * lines_.inner]);
      if (better(value, top) || (last_ && value == top)) best = k, top = value;
    }
    return best;
  }

  Lines lines_;
  NodeOperand x_;
  NodeResult y_;
  bool smallest_, last_;
};

class RunningSum final : public ItemKernel {
 public:
  RunningSum(const AlongAxisCode& code, const BoundNode& node)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()),
        exclusive_(code.exclusive),
        reverse_(code.reverse) {
    node.require(x_.type == y_.type);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t step = reverse_ ? -lines_.inner : lines_.inner, first = reverse_ ? (lines_.n - 1) * lines_.inner : 0;
    visit(x_.type.dtype, [&]<typename T>() {
      using Sum = std::conditional_t<kIsFloat<T>, double, uint64_t>;  // unsigned: may wrap
      lines_.for_strips(begin, end, [&](int64_t line, int64_t count) {
        const int64_t start = lines_.start(line, lines_.n) + first;
        const T* x = x_.as<T>(bindings) + start;
        T* y = y_.as<T>(bindings) + start;
        Sum sums[Lines::kStrip] = {};
        for (int64_t k = 0; k < lines_.n; ++k, x += step, y += step)
          for (int64_t j = 0; j < count; ++j) {
            const Sum before = sums[j];
            sums[j] += static_cast<Sum>(widened(x[j]));
            y[j] = narrowed<T>(exclusive_ ? before : sums[j]);
          }
      });
    });
  }

  Lines lines_;
  NodeOperand x_;
  NodeResult y_;
  bool exclusive_, reverse_;
};

class Hardmax final : public ItemKernel {
 public:
  Hardmax(const AlongAxisCode& code, const BoundNode& node)
      : ItemKernel(lines_of(code, node).count(), elements(node.operand(0).type.dims)),
        lines_(lines_of(code, node)),
        x_(node.operand(0)),
        y_(node.result()) {
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
};

/// Positions are ranked in the workspace, one line of them per worker. Not-a-number counts as largest; equals stay in order.
class TopK final : public CpuKernel {
 public:
  TopK(const AlongAxisCode& code, const BoundNode& node, int workers)
      : lines_(lines_of(code, node)), workers_(workers), largest_(code.largest), x_(node.operand(0)) {
    node.require(node.wants(0) || node.wants(1));
    if (node.wants(0)) values_ = node.result(0);
    if (node.wants(1)) indices_ = node.result(1);
    const ConcreteType& type = node.wants(0) ? node.result(0).type : node.result(1).type;
    node.require(elements(type.dims) % lines_.count() == 0);
    k_ = elements(type.dims) / lines_.count();
    node.require(k_ <= lines_.n);
    if (values_) node.require(values_->type.dtype == x_.type.dtype);
    if (indices_) node.require(indices_->type.dtype == DType::i64 && indices_->type.dims == type.dims);
  }
  bool serial() const override { return lines_.count() < 2 || lines_.count() * lines_.n < 2048; }
  size_t workspace_bytes() const override { return static_cast<size_t>(lines_.n * workers_) * sizeof(int64_t); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    int64_t* order = static_cast<int64_t*>(bindings.workspace) + worker * lines_.n;
    const Share share = share_of(lines_.count(), worker, workers);
    visit(x_.type.dtype, [&]<typename T>() {
      for (int64_t line = share.begin; line < share.end; ++line)
        rank(line, x_.as<T>(bindings) + lines_.start(line, lines_.n), order, bindings);
    });
  }

 private:
  template <typename T>
  void rank(int64_t line, const T* x, int64_t* order, const Bindings& bindings) const {
    const auto below = [](auto a, auto b) {
      if constexpr (std::is_floating_point_v<decltype(a)>) return !std::isnan(a) && (std::isnan(b) || a < b);
      else return a < b;
    };
    std::iota(order, order + lines_.n, int64_t{0});
    std::partial_sort(order, order + k_, order + lines_.n, [&](int64_t i, int64_t j) {
      const auto a = comparable(x[i * lines_.inner]), b = comparable(x[j * lines_.inner]);
      if (below(a, b)) return !largest_;
      if (below(b, a)) return largest_;
      return i < j;
    });
    const int64_t start = lines_.start(line, k_);
    for (int64_t k = 0; k < k_; ++k) {
      if (values_) values_->as<T>(bindings)[start + k * lines_.inner] = x[order[k] * lines_.inner];
      if (indices_) indices_->as<int64_t>(bindings)[start + k * lines_.inner] = order[k];
    }
  }

  Lines lines_;
  int workers_;
  bool largest_;
  NodeOperand x_;
  std::optional<NodeResult> values_, indices_;
  int64_t k_ = 0;
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
      case Rule::arg_min: return std::make_shared<Best>(code, node);
      case Rule::cum_sum: return std::make_shared<RunningSum>(code, node);
      case Rule::hardmax: return std::make_shared<Hardmax>(code, node);
      case Rule::top_k: return std::make_shared<TopK>(code, node, info.workers);
    }
    return nullptr;
  }
};

}  // namespace

const CpuTactic tactics::along_axis = describe<AlongAxisFamily>();

}  // namespace hone::cpu
