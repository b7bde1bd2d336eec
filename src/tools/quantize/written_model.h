// SPDX-License-Identifier: Apache-2.0
//
// The model's file as it is written, and how far what it computes is from the original.
#pragma once

#include <vector>

#include "base/log.h"
#include "quantize/few_bits_file.h"
#include "quantize/quantize_file.h"
#include "tools/model/tensor_errors.h"
#include "tools/quantize/quantized_model.h"

namespace hone {

/// Writes the model, and the cache and the keep-list where they are wanted.
FileQuantization write_quantized(const QuantizeRequest& request, const QuantizedModel& model, const Logger& log);

/// The model in FP16 or BF16: seen on the samples, where there are any, converted and written.
FewBitsModel write_few_bits(const QuantizeRequest& request, const KeepsFloats& keeps_floats, const hone_model& model,
                            const Logger& log);

/// What the quantised layers make; of a model that nothing was quantised of, all convolutions and matmuls.
std::set<std::string> quantized_results(const QuantizedModel& model);
std::set<std::string> product_results(const Graph& graph);
/// Those that the written model has, too, against what they are in `exact`; the worst first by the request's metric.
std::vector<TensorError> verified(const QuantizeRequest& request, const hone_model& exact,
                                  const std::set<std::string>& results, const Logger& log);
/// Whether the worst is worse than the threshold allows.
bool fails(const std::vector<TensorError>& errors, const QuantizeRequest& request);

}  // namespace hone
