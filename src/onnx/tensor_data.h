// SPDX-License-Identifier: Apache-2.0
//
// From TensorProto to Tensor. Raw data stay where they are (in the mapped model or external file) when they are aligned
// for their type; typed fields are decoded. External files are opened only below the model's directory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "onnx/importer.h"
#include "onnx/proto.h"
#include "tensor/tensor.h"

namespace hone::onnx {

/// Where a model's bytes come from.
class ModelData {
 public:
  /// `directory` empty: no external data. `file`: that the model's bytes are mapped from, where they are.
  ModelData(std::shared_ptr<const void> owner, std::string directory, WeightPlaces places = WeightPlaces::aligned,
            std::shared_ptr<const MappedFile> file = nullptr)
      : owner_(std::move(owner)), directory_(std::move(directory)), places_(places), file_(std::move(file)) {}

  /// Throws Error naming the tensor.
  Tensor tensor(const TensorProto& proto);

 private:
  std::pair<Bytes, std::shared_ptr<const MappedFile>> external(const TensorProto& proto);

  std::shared_ptr<const void> owner_;
  std::string directory_;
  WeightPlaces places_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace hone::onnx
