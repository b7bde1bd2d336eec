// SPDX-License-Identifier: Apache-2.0
//
// What runs a model: Hone's engines, its reference, ONNX Runtime. All take the same inputs by name and give outputs by name.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hone/hone.h"
#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"

namespace hone {

class Runner {
 public:
  virtual ~Runner() = default;
  /// Loads what it needs. `iterations` are all the inputs that will come: engines are built for their shapes.
  virtual void prepare(const std::vector<TensorList>& iterations) = 0;
  /// Outputs in the model's order.
  virtual TensorList infer(const TensorList& inputs) = 0;

  const std::string& name() const { return name_; }
  /// "fp16", "int8", ...: the least precise type that it may compute in.
  const std::string& precision() const { return precision_; }
  /// Which kernels compute a tensor; "" where it is not known.
  virtual std::string kernel_of(const std::string& /*tensor*/) const { return ""; }

 protected:
  Runner(std::string name, std::string precision) : name_(std::move(name)), precision_(std::move(precision)) {}

 private:
  std::string name_, precision_;
};

/// A profile of shapes as --trt-min-shapes and the like give it.
struct ShapeTriple {
  std::map<std::string, Dims> min, opt, max;
};

/// How own engines are built.
struct EngineRequest {
  std::string device = "cpu";
  std::vector<std::string> flags;  // of trtexec
  std::vector<ShapeTriple> profiles;
  int profile = 0;
  std::string precision = "fp32";
  std::string load_cache, save_cache, save_engine, save_onnx, save_tactics, load_tactics;
  hone_timing_cache* cache = nullptr;  // of the caller, instead of load_cache: times to use and to add to
};

std::unique_ptr<Runner> make_engine_runner(std::string name, const ModelFace& face, EngineRequest request,
                                           const Narrator& narrator);
/// Of a plan's file.
std::unique_ptr<Runner> make_plan_runner(std::string name, std::string path, std::string device, int profile,
                                         const Narrator& narrator);
/// Hone's operators by their plain meaning, node by node.
std::unique_ptr<Runner> make_reference_runner(std::string name, const ModelFace& face, const Narrator& narrator);

struct OnnxRuntimeRequest {
  std::string library;  // --onnxrt-lib
  std::vector<std::string> providers;
  int optimization = 99;  // of its graph: 0, 1, 2, 99
};
std::unique_ptr<Runner> make_onnxruntime_runner(std::string name, const ModelFace& face, OnnxRuntimeRequest request,
                                                const Narrator& narrator);

/// Inputs by name; throws UsageError for those that are missing or too many, naming the nearest.
const Tensor& input_for(const TensorList& inputs, const std::string& name);

}  // namespace hone
