// SPDX-License-Identifier: Apache-2.0
//
// The part of the source "cudnn" that is about attention: the library's flash attention in 16 bits.
#pragma once

#include <memory>

#include "backends/cuda/run/kernel.h"
#include "device/code.h"
#include "device/tactic.h"

namespace hone::cuda {

inline constexpr std::string_view kAttention = "attention";
/// Goes up with every change of what a plan keeps of an attention.
inline constexpr int kAttentionVersion = 1;

bool is_attention(const Problem& problem);
/// The library is there.
void propose_attention(const Problem& problem, Candidates& out);
Compiled compile_attention(const Problem& problem, const Tactic& tactic);
std::shared_ptr<const CudaKernel> load_attention(const KernelCode& code, const KernelShapes& shapes);

}  // namespace hone::cuda
