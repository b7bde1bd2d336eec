// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN with everything that ONNX lets them have. The input's part of all gates of all steps is one matmul. Then,
// where the directions go round, each worker runs all steps of its own by itself: they need nothing of each other, and the
// weights of one direction stay in its caches. Else comes one phase per step (two for a GRU that resets early), in which workers
// share the hidden units of both directions. The state has two places that change roles at every step, so that nobody reads
// what another one writes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/rnn/recurrent_layer.h"
#include "backends/cpu/support/region_reader.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kRowGroup = 8;                              // sequences of an item
constexpr int64_t kSmallStep = 16384, kSmallLayer = 1 << 20;  // multiplications that are not worth waking others for

std::string reason_against(const Node& node) {
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (x->type.shape.elements() == Dim(0)) return "its input is empty";
  for (const size_t i : {1, 2, 3, 7})
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "weights are not constant";
  if (node.input(4) != nullptr && node.input(4)->type.dtype != DType::i32) return "lengths are not i32";
  const auto sizes = [&](size_t i) { return node.input(i)->constant->dims(); };
  const int64_t d = node.attrs.text("direction") == "bidirectional" ? 2 : 1, h = sizes(2)[2], rows = sizes(2)[1];
  const bool fits =
      sizes(1).size() == 3 && sizes(2)[0] == d && sizes(1)[0] == d && sizes(1)[1] == rows && h > 0 && sizes(1)[2] > 0;
  const int64_t gates = node.is(ops::lstm) ? 4 : node.is(ops::gru) ? 3 : 1;
  if (!fits || rows != gates * h) return "its weights contradict each other";
  if (node.input(3) != nullptr && elements(sizes(3)) != d * 2 * gates * h) return "its biases have another size";
  if (node.input(7) != nullptr && elements(sizes(7)) != d * 3 * h) return "its peepholes have another size";
  return {};
}

enum class Direction { forward, reverse, bidirectional };
constexpr std::array<std::string_view, 3> field_names(Direction) { return {"forward", "reverse", "bidirectional"}; }

struct RecurrentCode {
  NodeCode node;  // without weights and biases, whose packed forms follow its constants
  Cell cell = Cell::lstm;
  Direction direction = Direction::forward;
  int64_t width = 1, hidden = 1;
  bool peepholes = false;
  std::vector<GateRule> rules;  // of each direction
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("cell", self.cell);
    visit("direction", self.direction);
    visit("width", self.width, 1, kMostSize);
    visit("hidden", self.hidden, 1, (1 << 24) - 1);
    visit("peepholes", self.peepholes);
    visit("rules", self.rules, 2);
  }
  RecurrentSizes sizes() const {
    return {
        .cell = cell, .directions = direction == Direction::bidirectional ? 2 : 1, .width = width, .hidden = hidden};
  }
};

RecurrentSizes read_sizes(const RecurrentCode& code, const BoundNode& node) {
  const Dims& x = node.operand(0).type.dims;
  node.require(x.size() == 3 && x[0] > 0 && x[0] < 1 << 24 && x[1] > 0 && x[2] == code.width);
  RecurrentSizes sizes = code.sizes();
  sizes.steps = x[0], sizes.batch = x[1];
  require_sizes(Dims{sizes.directions, sizes.steps, sizes.batch, sizes.blocks(), sizes.panel()});
  require_sizes(Dims{sizes.directions, sizes.steps, sizes.batch, sizes.padded(), sizes.gates(), sizes.hidden});
  return sizes;
}

class Recurrent final : public CpuKernel {
 public:
  Recurrent(const RecurrentCode& code, const BoundNode& node, const CpuInfo& info)
      : kernels_(recurrent_kernels(info.isa)),
        s_(read_sizes(code, node)),
        x_(node.operand(0)),
        packed_(node_constants(code.node).size()),
        reverse_(code.direction == Direction::reverse),
        rules_(code.rules),
        peepholes_(code.peepholes) {
    node.require(static_cast<int64_t>(rules_.size()) == s_.directions);
    const ConcreteType state{DType::f32, {s_.directions, s_.batch, s_.hidden}, Layout::linear};
    const auto optional = [&](size_t i, const ConcreteType& type, std::optional<NodeOperand>& to) {
      if (node.has(i)) to = node.operand(i), node.require(to->type == type);
    };
    optional(4, {DType::i32, {s_.batch}, Layout::linear}, lengths_);
    optional(5, state, h0_);
    optional(6, state, c0_);
    const auto wanted = [&](size_t i, const ConcreteType& type, std::optional<NodeResult>& to) {
      if (node.wants(i)) to = node.result(i), node.require(to->type == type);
    };
    wanted(0, {DType::f32, {s_.steps, s_.directions, s_.batch, s_.hidden}, Layout::linear}, y_);
    wanted(1, state, h_);
    wanted(2, state, c_);
    node.require(x_.type.dtype == DType::f32);
    phases_per_step_ = s_.cell == Cell::gru_early ? 2 : 1;
    groups_ = (s_.batch + kRowGroup - 1) / kRowGroup;
    alone_ = s_.directions % info.workers == 0;
    const int64_t states = s_.directions * s_.batch * s_.padded();
    for (int64_t* place : {&state_[0], &state_[1], &cell_, &scaled_}) *place = std::exchange(room_, room_ + states);
    gates_ = std::exchange(room_, room_ + s_.directions * s_.batch * s_.blocks() * s_.panel());
    projected_ = std::exchange(room_, room_ + s_.directions * s_.steps * s_.batch * s_.blocks() * s_.panel());
    const int64_t step = s_.directions * s_.batch * s_.padded() * s_.gates() * s_.hidden;
    serial_ = step < kSmallStep && s_.steps * (step + step / s_.hidden * s_.width) < kSmallLayer;
  }

  int phases() const override { return alone_ ? 2 : 1 + static_cast<int>(s_.steps) * phases_per_step_; }
  bool serial() const override { return serial_; }
  size_t workspace_bytes() const override { return static_cast<size_t>(room_) * sizeof(float); }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase == 0) {
      start_states(worker, workers, bindings);
      return project(worker, workers, bindings);
    }
    const int64_t items = s_.blocks() * groups_;  // of a direction
    if (!alone_) return run_items(phase - 1, share_of(s_.directions * items, worker, workers), bindings);
    const Share own = share_of(s_.directions, worker, workers);
    for (int64_t d = own.begin; d < own.end; ++d)
      for (int64_t pass = 0; pass < s_.steps * phases_per_step_; ++pass)
        run_items(pass, {d * items, (d + 1) * items}, bindings);
  }

 private:
  /// Some sequences, one block of hidden units, one direction, one step.
  struct Part {
    int64_t d, block, step, first, rows;
  };

  /// By direction, block of hidden units, and group of sequences.
  void run_items(int64_t pass, const Share& share, const Bindings& b) const {
    const int64_t step = pass / phases_per_step_;
    const bool reset = phases_per_step_ == 2 && pass % 2 == 0;
    for (int64_t i = share.begin; i < share.end; ++i) {
      // To and fro: what a step read last lies in the caches when the next one begins.
      const int64_t item = step % 2 == 0 ? i : share.begin + share.end - 1 - i;
      const int64_t first = item % groups_ * kRowGroup, rows = std::min(kRowGroup, s_.batch - first);
      const Part part{item / groups_ / s_.blocks(), item / groups_ % s_.blocks(), step, first, rows};
      if (lengths_) run_by_length(part, reset, b);
      else run_part(part, backwards(part.d) ? s_.steps - 1 - step : step, reset, b);
    }
  }

  bool backwards(int64_t d) const { return d == 1 || reverse_; }
  const float* constant(size_t i, const Bindings& b) const {
    return static_cast<const float*>(b.constants[packed_ + i]);
  }
  static float* room(const Bindings& b, int64_t place) { return static_cast<float*>(b.workspace) + place; }
  int64_t state_at(int64_t d, int64_t n) const { return (d * s_.batch + n) * s_.padded(); }
  float* gates_at(const Bindings& b, const Part& p) const {
    return room(b, gates_) + ((p.d * s_.blocks() + p.block) * s_.batch + p.first) * s_.panel();
  }
  float* projected_at(const Bindings& b, int64_t d, int64_t block, int64_t row) const {
    return room(b, projected_) + ((d * s_.blocks() + block) * s_.steps * s_.batch + row) * s_.panel();
  }

  void start_states(int worker, int workers, const Bindings& b) const {
    const Share share = share_of(s_.directions * s_.batch, worker, workers);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const auto start = [&](const std::optional<NodeOperand>& given, int64_t place) {
        float* to = room(b, place) + row * s_.padded();
        std::fill_n(to, s_.padded(), 0.0f);
        if (given) std::copy_n(given->as<float>(b) + row * s_.hidden, s_.hidden, to);
      };
      start(h0_, state_[0]);
      start(std::nullopt, state_[1]);
      start(c0_, cell_);
      start(std::nullopt, scaled_);
    }
  }

  /// The input's part of the gates: [direction][block][step * batch][gate][unit].
  void project(int worker, int workers, const Bindings& b) const {
    constexpr int64_t kRows = 32;
    const int64_t rows = s_.steps * s_.batch, groups = (rows + kRows - 1) / kRows;
    const Share share = share_of(s_.directions * s_.blocks() * groups, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t panel = item / groups, first = item % groups * kRows;
      kernels_.panel({x_.as<float>(b) + first * s_.width, constant(0, b) + panel * s_.width * s_.panel(),
                      constant(2, b) + panel * s_.panel(), room(b, projected_) + (panel * rows + first) * s_.panel(),
                      std::min(kRows, rows - first), s_.width, s_.panel(), s_.width, s_.panel(), 0, s_.panel()});
    }
  }

  /// Sequences of their own lengths run one by one: a shorter one begins backwards at its own end, and rests behind it.
  void run_by_length(const Part& part, bool reset, const Bindings& b) const {
    for (int64_t n = part.first; n < part.first + part.rows; ++n) {
      const Part one{part.d, part.block, part.step, n, 1};
      const int64_t length = std::clamp<int64_t>(lengths_->as<int32_t>(b)[n], 0, s_.steps);
      if (part.step < length) {
        run_part(one, backwards(part.d) ? length - 1 - part.step : part.step, reset, b);
      } else if (!reset) {
        const int64_t at = state_at(part.d, n) + part.block * kUnits;
        std::copy_n(room(b, state_[part.step % 2]) + at, kUnits, room(b, state_[(part.step + 1) % 2]) + at);
        const int64_t units = std::min(kUnits, s_.hidden - part.block * kUnits);
        if (y_)
          std::fill_n(y_->as<float>(b) + ((part.step * s_.directions + part.d) * s_.batch + n) * s_.hidden +
                          part.block * kUnits,
                      units, 0.0f);
        finish(one, b);
      }
    }
  }

  /// The matmul of `rows` states with the panel's gates from `gate` on, added to `init`.
  void multiply(const Part& p, const float* state, int64_t gate, int64_t count, const float* init, float* to,
                const Bindings& b) const {
    const float* panel = constant(1, b) + (p.d * s_.blocks() + p.block) * s_.hidden * s_.panel() + gate * kUnits;
    kernels_.panel(
        {state, panel, init, to, p.rows, s_.hidden, count * kUnits, s_.padded(), s_.panel(), s_.panel(), s_.panel()});
  }

  void run_part(const Part& p, int64_t time, bool reset, const Bindings& b) const {
    const GateRule& rule = rules_[static_cast<size_t>(p.d)];
    const int64_t at = state_at(p.d, p.first), block = p.block * kUnits;
    const float *input = projected_at(b, p.d, p.block, time * s_.batch + p.first),
                *state = room(b, state_[p.step % 2]) + at;
    float *gates = gates_at(b, p), *next = room(b, state_[(p.step + 1) % 2]) + at, *scaled = room(b, scaled_) + at;
    const auto for_rows = [&](const auto& cell) {
      for (int64_t r = 0; r < p.rows; ++r)
        cell(gates + r * s_.panel(), r * s_.padded() + block, input + r * s_.panel());
    };
    switch (s_.cell) {
      case Cell::lstm: {
        multiply(p, state, 0, 4, input, gates, b);
        const float* peep = peepholes_ ? constant(3, b) + p.d * 3 * s_.padded() + block : nullptr;
        float* cells = room(b, cell_) + at;
        for_rows([&](const float* g, int64_t own, const float*) {
          kernels_.lstm(rule, {g, peep, peepholes_ ? peep + s_.padded() : nullptr,
                               peepholes_ ? peep + 2 * s_.padded() : nullptr, cells + own, next + own});
        });
        break;
      }
      case Cell::rnn:
        multiply(p, state, 0, 1, input, gates, b);
        for_rows([&](const float* g, int64_t own, const float*) { kernels_.rnn(rule, g, next + own); });
        break;
      case Cell::gru_late:
        for_rows([&](float* g, int64_t, const float* in) {
          std::copy_n(in, 2 * kUnits, g);
          std::copy_n(constant(3, b) + p.d * s_.padded() + block, kUnits, g + 2 * kUnits);
        });
        multiply(p, state, 0, 3, gates, gates, b);
        for_rows([&](const float* g, int64_t own, const float* in) {
          kernels_.gru_late(rule, {in + 2 * kUnits, g, g + 2 * kUnits, state + own, next + own});
        });
        break;
      case Cell::gru_early:
        if (reset) {
          multiply(p, state, 0, 2, input, gates, b);
          return for_rows([&](const float* g, int64_t own, const float*) {
            kernels_.gru_reset(rule, {g, state + own, scaled + own});
          });
        }
        multiply(p, scaled, 2, 1, input + 2 * kUnits, gates + 2 * kUnits, b);
        for_rows([&](const float* g, int64_t own, const float*) {
          kernels_.gru_early(rule, {nullptr, g, g + 2 * kUnits, state + own, next + own});
        });
    }
    if (y_) store(p, next, y_->as<float>(b) + ((time * s_.directions + p.d) * s_.batch + p.first) * s_.hidden);
    finish(p, b);
  }

  /// This block's units of some rows, without the padding.
  void store(const Part& p, const float* from, float* to) const {
    const int64_t first = p.block * kUnits, units = std::min(kUnits, s_.hidden - first);
    for (int64_t r = 0; r < p.rows; ++r) std::copy_n(from + r * s_.padded() + first, units, to + r * s_.hidden + first);
  }

  /// The last states, behind the last step.
  void finish(const Part& p, const Bindings& b) const {
    if (p.step + 1 != s_.steps) return;
    const int64_t from = state_at(p.d, p.first), to = (p.d * s_.batch + p.first) * s_.hidden;
    if (h_) store(p, room(b, state_[s_.steps % 2]) + from, h_->as<float>(b) + to);
    if (c_) store(p, room(b, cell_) + from, c_->as<float>(b) + to);
  }

  const RecurrentKernels kernels_;
  const RecurrentSizes s_;
  NodeOperand x_;
  std::optional<NodeOperand> lengths_, h0_, c0_;
  std::optional<NodeResult> y_, h_, c_;
  size_t packed_;  // first of the packed constants
  bool reverse_;
  std::vector<GateRule> rules_;  // of each direction
  bool peepholes_, serial_ = false;
  bool alone_ = false;  // a worker runs its directions without meeting others
  int phases_per_step_ = 1;
  int64_t groups_ = 1;  // of rows
  // The workspace, in floats.
  int64_t state_[2] = {}, cell_ = 0, scaled_ = 0, gates_ = 0, projected_ = 0, room_ = 0;
};

struct RecurrentFamily : NodeFamily<RecurrentCode> {
  static constexpr std::string_view kName = "recurrent";
  static constexpr Cost kCost = {.operands = 25, .weights = 25};

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !cell_of(node->op_name(), node->attrs)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<RecurrentCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    const Tensor &w = *node.input(1)->constant, &r = *node.input(2)->constant;
    const std::string& direction = node.attrs.text("direction");
    Built<RecurrentCode> built;
    RecurrentCode& code = built.code;
    code.node = describe_node(problem, built.constants, {1, 2, 3, 7});
    code.cell = *cell_of(node.op_name(), node.attrs);
    code.direction = direction == "bidirectional" ? Direction::bidirectional
                     : direction == "reverse"     ? Direction::reverse
                                                  : Direction::forward;
    code.width = w.dims()[2], code.hidden = r.dims()[2];
    code.peepholes = node.input(7) != nullptr;
    const RecurrentSizes sizes = code.sizes();
    for (int64_t d = 0; d < sizes.directions; ++d) code.rules.push_back(gate_rule(node.attrs, code.cell, d));
    const Tensor* bias = node.input(3) == nullptr ? nullptr : &*node.input(3)->constant;
    built.constants.push_back(pack_panels(w, sizes.gates()));
    built.constants.push_back(pack_panels(r, sizes.gates()));
    built.constants.push_back(pack_bias(bias, sizes));
    if (code.cell == Cell::gru_late) built.constants.push_back(pack_late_bias(bias, sizes));
    if (code.peepholes) built.constants.push_back(pack_peepholes(*node.input(7)->constant, sizes));
    return built;
  }
  static std::vector<ConstantSpec> constants(const RecurrentCode& code, const KernelShapes&, const CpuInfo&) {
    const RecurrentSizes s = code.sizes();
    std::vector<ConstantSpec> specs = node_constants(code.node);
    specs.push_back({DType::f32, {s.directions, s.blocks(), s.width, s.panel()}});
    specs.push_back({DType::f32, {s.directions, s.blocks(), s.hidden, s.panel()}});
    specs.push_back({DType::f32, {s.directions, s.blocks(), s.panel()}});
    if (s.cell == Cell::gru_late) specs.push_back({DType::f32, {s.directions, s.padded()}});
    if (code.peepholes) specs.push_back({DType::f32, {s.directions, 3, s.padded()}});
    return specs;
  }
  static std::shared_ptr<const CpuKernel> load(const RecurrentCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Recurrent>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::recurrent = describe<RecurrentFamily>();

}  // namespace hone::cpu
