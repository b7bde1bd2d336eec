// SPDX-License-Identifier: Apache-2.0
#include "tools/model/read.h"

#include "capi/operators/operators.h"

namespace hone {

ImportedModel read_model(const std::string& path, const Logger& log) {
  return import_onnx(path, log, capi::program_operators());
}

}  // namespace hone
