// SPDX-License-Identifier: Apache-2.0
//
// What a family of generated CUDA kernels is: a name, a version and three functions, which family.h makes of a struct, in one
// explicit list that the source "cuda" walks.
//
// generate() writes source text, which the source turns into machine code for the GPU, and the code that load() needs besides
// KernelShapes. Everything that varies with shapes is an argument of the launch, except where all sizes are fixed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/run/kernel.h"
#include "backends/cuda/support/place.h"
#include "device/code.h"
#include "device/fields.h"
#include "device/tactic.h"

namespace hone::cuda {

struct Generated {
  Attrs attrs;
  std::string source;  // text, behind the prelude
  std::vector<Tensor> constants;
};

/// What load() works with.
struct LoadContext {
  const KernelShapes& shapes;
  std::vector<ConstantSpec> constants;  // those that the kernel was made with
  std::shared_ptr<const Module> module;
  int processors = 1;  // of the GPU
  /// An operand that has to be given; throws Error where the plan has none at this place.
  const Dims& dims_of(const Place& place) const;
  /// Whether every processor has enough of so many threads to hide what each waits for.
  bool fills(int64_t threads) const { return threads >= int64_t{1024} * processors; }
};

struct CudaTactic {
  std::string_view name;
  int version;
  /// Silent when the region is not about this family at all; refuses with a reason when it nearly is.
  void (*propose)(const Problem&, Candidates&);
  Generated (*generate)(const Problem&, const std::string& architecture, const Tactic&);
  std::shared_ptr<const CudaKernel> (*load)(const Attrs&, const KernelShapes&, std::shared_ptr<const Module>,
                                            int processors);
  std::vector<Field> (*fields)();  // of its code, with bounds
};

/// All families, in order of preference.
std::span<const CudaTactic* const> cuda_tactics();

namespace tactics {
#define FAMILY(name, file) extern const CudaTactic name;
#include "backends/cuda/families.def"
#undef FAMILY
}  // namespace tactics

}  // namespace hone::cuda
