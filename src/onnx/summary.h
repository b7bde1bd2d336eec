// SPDX-License-Identifier: Apache-2.0
//
// What a model says of itself, and the lines that say it in the log of an import.
#pragma once

#include <string>

#include "onnx/importer.h"
#include "onnx/proto.h"

namespace hone::onnx {

OnnxSummary summarize(const ModelProto& model);
void print_summary(const std::string& name, const OnnxSummary& summary, const Logger& log);

}  // namespace hone::onnx
