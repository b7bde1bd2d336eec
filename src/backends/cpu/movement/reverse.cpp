// SPDX-License-Identifier: Apache-2.0
//
// ReverseSequence: the first steps of each sequence in reverse, elements of any type. The tensor is outer x near x between x
// far x run, where near and far are the axes of time and of the sequences in either order; runs are copied whole. A length
// beyond the steps is brought inside, so that bad data cannot make the kernel read elsewhere.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement/indices.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kShortRun = 64;  // bytes; below, copies of one element each are faster than memcpy

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  if (!is_index_type(node.input(1)->type.dtype))
    return fmt::format("lengths are {}", name_of(node.input(1)->type.dtype));
  return {};
}

struct ReverseCode {
  NodeCode node;
  int64_t time_axis = 0, batch_axis = 1;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("time_axis", self.time_axis, -kMostAxes, kMostAxes - 1);
    visit("batch_axis", self.batch_axis, -kMostAxes, kMostAxes - 1);
  }
};

struct Sizes {
  int64_t outer = 1, near = 1, between = 1, far = 1, run = 1;
  bool time_is_far = false;
};

Sizes sizes_of(const ReverseCode& code, const BoundNode& node) {
  const Dims& dims = node.operand(0).type.dims;
  const size_t time = normalize_axis(code.time_axis, dims.size()), batch = normalize_axis(code.batch_axis, dims.size());
  node.require(time != batch);
  const size_t first = std::min(time, batch), second = std::max(time, batch);
  const std::span<const int64_t> all(dims);
  return {elements(all.first(first)),
          dims[first],
          elements(all.subspan(first + 1, second - first - 1)),
          dims[second],
          elements(all.subspan(second + 1)),
          time == second};
}

/// An item is all of the far axis.
class Reverse final : public ItemKernel {
 public:
  Reverse(const ReverseCode& code, const BoundNode& node)
      : ItemKernel(items_of(sizes_of(code, node)), node.operand(0).type.bytes() / 4),
        sizes_(sizes_of(code, node)),
        x_(node.operand(0)),
        lengths_(node.operand(1)),
        y_(node.result()) {
    node.require(x_.type.dtype == y_.type.dtype && x_.type.dims == y_.type.dims && is_index_type(lengths_.type.dtype) &&
                 elements(lengths_.type.dims) == (sizes_.time_is_far ? sizes_.near : sizes_.far));
  }

 private:
  static int64_t items_of(const Sizes& sizes) {
    return sizes.far * sizes.run == 0 ? 0 : sizes.outer * sizes.near * sizes.between;
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const auto bytes = static_cast<int64_t>(size_of(x_.type.dtype));
    if (sizes_.run * bytes >= kShortRun)
      run_as<std::byte>(begin, end, bindings, sizes_.run * bytes,
                        [run = static_cast<size_t>(sizes_.run * bytes)](const std::byte* from, std::byte* to) {
                          std::memcpy(to, from, run);
                        });
    else
      visit_bits(size_of(x_.type.dtype), [&]<typename T>() {
        run_as<T>(begin, end, bindings, sizes_.run, [run = sizes_.run](const T* from, T* to) {
          for (int64_t i = 0; i < run; ++i) to[i] = from[i];
        });
      });
  }

  /// `run` is in elements of T.
  template <typename T, typename Copy>
  void run_as(int64_t begin, int64_t end, const Bindings& bindings, int64_t run, const Copy& copy) const {
    const auto& [outer, near, between, far, unused, time_is_far] = sizes_;
    const IndexReader lengths(lengths_, bindings);
    const T* x = x_.as<T>(bindings);
    T* y = y_.as<T>(bindings);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t place = item / between % near;
      T* to = y + item * far * run;
      if (time_is_far) {
        const T* from = x + item * far * run;
        const int64_t length = std::clamp<int64_t>(lengths[place], 0, far);
        for (int64_t step = 0; step < length; ++step) copy(from + (length - 1 - step) * run, to + step * run);
        std::copy(from + length * run, from + far * run, to + length * run);
      } else {
        for (int64_t sequence = 0; sequence < far; ++sequence) {
          const int64_t length = std::clamp<int64_t>(lengths[sequence], 0, near);
          const int64_t step = place < length ? length - 1 - place : place;
          copy(x + ((item + (step - place) * between) * far + sequence) * run, to + sequence * run);
        }
      }
    }
  }

  Sizes sizes_;
  NodeOperand x_, lengths_;
  NodeResult y_;
};

struct ReverseFamily : NodeFamily<ReverseCode> {
  static constexpr std::string_view kName = "reverse";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::reverse_sequence)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<ReverseCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Attrs& attrs = single_node(problem)->attrs;
    Built<ReverseCode> built;
    built.code = {describe_node(problem, built.constants), attrs.integer("time_axis"), attrs.integer("batch_axis")};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const ReverseCode& code, const KernelShapes& shapes, const CpuInfo&) {
    return std::make_shared<Reverse>(code, BoundNode(code.node, shapes, kName));
  }
};

}  // namespace

const CpuTactic tactics::reverse = describe<ReverseFamily>();

}  // namespace hone::cpu
