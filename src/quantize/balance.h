// SPDX-License-Identifier: Apache-2.0
//
// Three ways to choose the factors that channel_edits.h moves between layers, so that less is lost when they are quantised. None
// changes what the network computes in floating point.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "quantize/block_weights.h"
#include "quantize/channel_edits.h"
#include "quantize/quantize_file.h"

namespace hone {

/// Whether a product is quantised at all. Empty: all are.
using TakesPart = std::function<bool(const Node&)>;

struct Balanced {
  ModelEdits edits;
  size_t tensors = 0;  // whose channels have other ranges now
};

/// Ranges of weights are brought together across products that follow each other (data-free quantisation: Nagel et al., 2019): a
/// convolution's results and what reads them, depthwise ones, too. The factors are powers of two: the network computes the same bits.
Balanced equalized(const Graph& graph, const TakesPart& takes_part);

/// Tensors that smoothed() and scaled_for_blocks() look at: those that matmuls alone read and that a normalisation or product makes.
std::vector<ReadChannels> balanced_tensors(const Graph& graph, const TakesPart& takes_part);

/// The largest magnitude of each channel, by tensor.
using ChannelRanges = std::map<std::string, Factors, std::less<>>;

/// Large channels of activations are made smaller and their weights larger (SmoothQuant: Xiao et al., 2022): the factor is
/// activation^share / weights^(1 - share), rounded to a power of two.
Balanced smoothed(const Graph& graph, const TakesPart& takes_part, const ChannelRanges& seen, double share);

/// Weights that meet large activations are made larger before they are rounded to few bits (AWQ: Lin et al., 2023). The share with the least
/// error of the products is taken, none where none lessens it.
Balanced scaled_for_blocks(const Graph& graph, const TakesPart& takes_part, const Moments& moments, int64_t block,
                           Codes codes);

}  // namespace hone
