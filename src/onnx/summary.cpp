// SPDX-License-Identifier: Apache-2.0
#include "onnx/summary.h"

#include "base/utf8.h"

namespace hone::onnx {

OnnxSummary summarize(const ModelProto& model) {
  return {.ir_version = model.ir_version,
          .opset = model.opsets.contains("") ? model.opsets.at("") : 0,
          .producer_name = valid_utf8(model.producer_name),
          .producer_version = valid_utf8(model.producer_version),
          .domain = valid_utf8(model.domain),
          .doc_string = valid_utf8(model.doc_string),
          .model_version = model.model_version};
}

/// The block that every run of the parser begins with; values stand in column 19.
void print_summary(const std::string& name, const OnnxSummary& summary, const Logger& log) {
  const std::string rule(64, '-');
  log.info("{}", rule);
  log.info("Input filename:   {}", name);
  log.info("ONNX IR version:  0.0.{}", summary.ir_version);
  log.info("Opset version:    {}", summary.opset);
  log.info("Producer name:    {}", summary.producer_name);
  log.info("Producer version: {}", summary.producer_version);
  log.info("Domain:           {}", summary.domain);
  log.info("Model version:    {}", summary.model_version);
  log.info("Doc string:       {}", summary.doc_string);
  log.info("{}", rule);
}

}  // namespace hone::onnx
