// SPDX-License-Identifier: Apache-2.0
//
// A network whose tensors can be read after each inference.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tools/common/plan_view.h"

namespace hone {

/// Shown a tensor's values after an inference. What it throws is noted with the tensor's name.
using Visit = std::function<void(const std::string& tensor, const Dims& dims, std::span<const float> values)>;

class ObservedNetwork {
 public:
  /// Builds the network for these shapes of its inputs, without timing anything. The tensors are f32, f16 or bf16; all are shown as f32.
  ObservedNetwork(const hone_model& model, const hone_device& device, const std::set<std::string>& tensors,
                  const std::map<std::string, Dims>& shapes);

  /// One inference on what `fill` writes to the inputs' memory.
  void run(const std::function<void(const NetworkTensor&, const Dims&, std::span<std::byte>)>& fill,
           const Visit& visit);

 private:
  void bind(const NetworkTensor& io);
  std::span<std::byte> memory_of(const std::string& name) { return {memory_.at(name).data(), sizes_.at(name)}; }

  Owned<hone_context> context_;
  std::vector<NetworkTensor> tensors_;
  std::vector<std::string> inputs_, computed_;
  std::map<std::string, AlignedBuffer> memory_;
  std::map<std::string, size_t> sizes_;
};

}  // namespace hone
