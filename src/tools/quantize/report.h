// SPDX-License-Identifier: Apache-2.0
//
// What `hone quantize` prints: a summary as JSON, and the page made of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quantize/few_bits_file.h"
#include "quantize/quantize_file.h"
#include "tools/model/tensor_errors.h"
#include "tools/quantize/quantized_model.h"

namespace hone {

using Json = nlohmann::ordered_json;

Json summary_of(const QuantizedModel& model, const FileQuantization& written, const QuantizeRequest& request);
Json summary_of(const FewBitsModel& model, const QuantizeRequest& request);
Json errors_json(const std::vector<TensorError>& errors);

/// `model` is the name of what was read.
void print_summary(const Json& summary, const std::string& model);

}  // namespace hone
