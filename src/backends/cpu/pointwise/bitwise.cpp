// SPDX-License-Identifier: Apache-2.0
//
// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift over broadcast operands of any integer type.
#include <algorithm>

#include "backends/cpu/pointwise/bit_rows.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/row_walk.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr std::string_view kNames[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"};
enum class Kind { both, either, one, invert, left, right };
constexpr std::array<std::string_view, 6> field_names(Kind) {
  return {"both", "either", "one", "invert", "left", "right"};
}

std::optional<Kind> kind_of(std::string_view op, const Attrs& attrs) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), op);
  if (found == std::end(kNames)) return std::nullopt;
  const Kind kind = static_cast<Kind>(found - std::begin(kNames));
  return kind == Kind::left && attrs.text("direction") == "RIGHT" ? Kind::right : kind;
}

struct BitwiseCode {
  NodeCode node;
  Kind kind = Kind::both;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("kind", self.kind);
  }
};

RowWalk walk_of(const BoundNode& node) {
  const Dims& result = node.result().type.dims;
  if (elements(result) == 0) return RowWalk({0}, {{1}, {1}, {1}});
  const Dims a = node.strides_along(result, 0);
  return RowWalk(result, {strides_of(result), a, node.has(1) ? node.strides_along(result, 1) : a});
}

template <Kind kind, typename T>
T combined(T a, T b) {
  using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
  constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  if constexpr (kind == Kind::both) return static_cast<T>(a & b);
  if constexpr (kind == Kind::either) return static_cast<T>(a | b);
  if constexpr (kind == Kind::one) return static_cast<T>(a ^ b);
  if constexpr (kind == Kind::invert) return static_cast<T>(static_cast<Unsigned>(a) ^ static_cast<Unsigned>(-1));
  const bool beyond = static_cast<int64_t>(b) < 0 || static_cast<int64_t>(b) >= kBits;
  if constexpr (kind == Kind::left)
    return beyond ? T(0) : static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) << static_cast<int>(b)));
  if (std::is_signed_v<T>)
    return static_cast<T>(static_cast<int64_t>(a) >> (beyond ? kBits - 1 : static_cast<int>(b)));  // keeps the sign
  return beyond ? T(0) : static_cast<T>(static_cast<Unsigned>(a) >> static_cast<int>(b));
}

constexpr int64_t kPart = 8192;  // elements of a row that are an item
int64_t parts_of(const RowWalk& walk) { return (walk.length() + kPart - 1) / kPart; }

class Bitwise final : public ItemKernel {
 public:
  Bitwise(const BitwiseCode& code, const BoundNode& node, const CpuInfo& info)
      : ItemKernel(elements(node.result().type.dims) == 0 ? 0 : walk_of(node).rows() * parts_of(walk_of(node)),
                   elements(node.result().type.dims)),
        a_(node.operand(0)),
        b_(node.operand(node.has(1) ? 1 : 0)),
        y_(node.result()),
        walk_(walk_of(node)),
        parts_(parts_of(walk_)),
        kind_(code.kind),
        rows_(bit_rows(info.isa)) {
    node.require(!is_float(y_.type.dtype) && a_.type.dtype == y_.type.dtype && b_.type.dtype == y_.type.dtype);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(y_.type.dtype, [&]<typename T>() {
      if constexpr (!kIsFloat<T>) {
        switch (kind_) {
          case Kind::both: return run_rows<Kind::both, T>(begin, end, bindings);
          case Kind::either: return run_rows<Kind::either, T>(begin, end, bindings);
          case Kind::one: return run_rows<Kind::one, T>(begin, end, bindings);
          case Kind::invert: return run_rows<Kind::invert, T>(begin, end, bindings);
          case Kind::left: return run_rows<Kind::left, T>(begin, end, bindings);
          case Kind::right: return run_rows<Kind::right, T>(begin, end, bindings);
        }
      }
    });
  }

  /// Long rows whose elements lie behind each other are cut, so that the workers share them.
  template <Kind kind, typename T>
  void run_rows(int64_t begin, int64_t end, const Bindings& bindings) const {
    const bool even = walk_.stride(0) == 1 && walk_.stride(1) == 1 && walk_.stride(2) == 1;
    for (int64_t item = begin; item < end; ++item) {
      int64_t offsets[3];
      walk_.seek(item / parts_, offsets);
      const int64_t first = item % parts_ * kPart, count = std::min(kPart, walk_.length() - first);
      T* y = y_.as<T>(bindings) + offsets[0] + first * walk_.stride(0);
      const T *a = a_.as<T>(bindings) + offsets[1] + first * walk_.stride(1),
              *b = b_.as<T>(bindings) + offsets[2] + first * walk_.stride(2);
      if (even) run_row<kind>(a, b, y, count);
      else
        for (int64_t j = 0; j < count; ++j)
          y[j * walk_.stride(0)] = combined<kind>(a[j * walk_.stride(1)], b[j * walk_.stride(2)]);
    }
  }

  template <Kind kind, typename T>
  void run_row(const T* a, const T* b, T* y, int64_t count) const {
    constexpr BitRow BitRows::*kRow = kind == Kind::both     ? &BitRows::both
                                      : kind == Kind::either ? &BitRows::either
                                      : kind == Kind::one    ? &BitRows::one
                                      : kind == Kind::invert ? &BitRows::invert
                                                             : nullptr;
    if constexpr (kRow != nullptr && !std::is_same_v<T, bool>)
      (rows_.*kRow)(reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(b),
                    reinterpret_cast<uint8_t*>(y), count * static_cast<int64_t>(sizeof(T)));
    else
      for (int64_t j = 0; j < count; ++j) y[j] = combined<kind>(a[j], b[j]);
  }

  NodeOperand a_, b_;
  NodeResult y_;
  RowWalk walk_;
  int64_t parts_;  // of a row
  Kind kind_;
  BitRows rows_;
};

struct BitwiseFamily : NodeFamily<BitwiseCode> {
  static constexpr std::string_view kName = "bitwise";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !kind_of(node->op_name(), node->attrs)) return;
    for (const Value* value : node->inputs)
      if (value->type.dtype != node->output()->type.dtype) return out.refuse(kName, "operands of different types");
    offer_linear(problem, kName, out);
  }
  static Built<BitwiseCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<BitwiseCode> built;
    built.code = {describe_node(problem, built.constants), *kind_of(node.op_name(), node.attrs)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const BitwiseCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Bitwise>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::bitwise = describe<BitwiseFamily>();

}  // namespace hone::cpu
