// SPDX-License-Identifier: Apache-2.0
//
// What families share whose groups of four warps multiply (Hopper's wgmma) in blocks that stay: how a block's tile is divided, how its sums
// are finished, the text that stands before warp_groups.cuh, and how many blocks there are.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/conv/gemm_region.h"
#include "backends/cuda/run/kernel.h"

namespace hone::cuda {

inline constexpr int64_t kGroupSharedBytes = 227 << 10, kAlignmentAndBarriers = 1024 + 512;
inline constexpr int64_t kGroupThreads = 384, kFinishers = 8;  // threads, and the warps of them that finish sums
/// Tiles for which what is added is fetched ahead, at most.
inline constexpr int64_t kMostKept = 4;

/// What a block computes at a time: by two groups of four warps the same tile, or by each its own, of `parts` times 64 rows for a group.
struct Blocking {
  int64_t groups, parts, columns;
  int64_t rows() const { return groups * parts * 64; }
};

/// Of each element that is stored and that is added.
int64_t result_bytes(const Anchors& anchors);
int64_t added_bytes(const Anchors& anchors);
/// Whether 16 bytes of a row lie together in what is stored, and in what is added, too.
bool stores_whole_rows(const Anchors& anchors);
bool has_whole_rows(const Anchors& anchors);
/// Bytes through which the results of each finishing warp pass, where its rows are pixels.
int64_t bytes_through(const Anchors& anchors);
/// Why no tile is finished so; empty where one is.
std::string reason_against_ends(const Anchors& anchors);

/// Whether groups of four warps multiply on all of the problem's GPUs.
bool has_warp_groups(const Problem& problem);
/// An instruction that adds products of 64 rows by so many columns: a function of the sums, the matrices' places and, of sparse weights,
/// which of four they are.
std::string instruction_text(std::string_view function, int64_t columns, const Anchors& anchors,
                             std::string_view places);

/// Constants of a region (constants_for()) with weights that are laid out already: where all that is added up counts the steps of a result in
/// codes, what follows them does, too. And the text of such ends, with the steps of the epilogue.
void finish_in_steps(const Anchors& anchors, std::vector<Tensor>& constants);
std::string ends_text(const Anchors& anchors, const GemmCode& code);

/// As many blocks as run at once, in clusters, but no more than there are tiles; `launch` says how large they are.
int64_t blocks_that_stay(const GridLaunch& launch, int64_t cluster, int64_t tiles, const LoadContext& context);

}  // namespace hone::cuda
