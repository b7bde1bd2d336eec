// SPDX-License-Identifier: Apache-2.0
//
// Pointwise operators between quantised tensors of one scale each, as a table that is looked up: a silu takes as long as a
// copy, and gives the reference's bytes.
#include "regions/byte_table.h"
#include "backends/cpu/family.h"
#include "backends/cpu/quant/quantize_loops.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPiece = 16384;

class ByteTable final : public ItemKernel {
 public:
  ByteTable(int64_t count, Isa isa)
      : ItemKernel((count + kPiece - 1) / kPiece, count / 4), count_(count), look_up_(quantize_loops(isa).look_up) {}

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, count_);
    look_up_(static_cast<const uint8_t*>(bindings.inputs[0]) + first,
             static_cast<uint8_t*>(bindings.outputs[0]) + first, last - first,
             static_cast<const uint8_t*>(bindings.constants[0]));
  }

  int64_t count_;
  void (*look_up_)(const uint8_t*, uint8_t*, int64_t, const uint8_t*);
};

struct ByteTableFamily {
  static constexpr std::string_view kName = "byte_table";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 0.25};
  using Params = NoParams;
  using Code = NoParams;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    if (is_byte_table(problem.region)) offer_layouts(problem, "cpu", kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    return {{}, {byte_table(problem.region)}};
  }
  static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&) {
    return {{DType::u8, {256}}};
  }
  static std::shared_ptr<const CpuKernel> load(const Code&, const KernelShapes& shapes, const CpuInfo& info) {
    const auto is_byte = [](const ConcreteType& type) { return type.dtype == DType::u8 || type.dtype == DType::i8; };
    const bool valid = shapes.inputs.size() == 1 && shapes.outputs.size() == 1 && is_byte(shapes.inputs[0]) &&
                       is_byte(shapes.outputs[0]) && shapes.inputs[0].dims == shapes.outputs[0].dims &&
                       shapes.inputs[0].bytes() == shapes.outputs[0].bytes() &&
                       shared_layout(shapes.inputs[0], shapes.outputs[0]);
    HONE_CHECK(valid, "a table of bytes in the plan does not fit its tensors");
    return std::make_shared<ByteTable>(shapes.inputs[0].bytes(), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::byte_table = describe<ByteTableFamily>();

}  // namespace hone::cpu
