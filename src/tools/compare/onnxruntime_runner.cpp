// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime on the processor as a runner.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"
#include "tools/compare/onnxruntime_api.h"
#include "tools/compare/runner.h"

namespace hone {
namespace {

using ort::Object;
using ort::Slot;

int number_of(DType type, const std::string& tensor) {
  for (const auto& [known, number] : ort::kElements)
    if (static_cast<DType>(known) == type) return number;
  throw Error(fmt::format("{} holds {}, which is not handed to ONNX Runtime", tensor, name_of(type)));
}

DType type_of(int number, const std::string& tensor) {
  for (const auto& [type, known] : ort::kElements)
    if (known == number) return static_cast<DType>(type);
  throw Error(fmt::format("output {} has a type that only ONNX Runtime knows ({})", tensor, number),
              "leave it out: --onnx-exclude-outputs");
}

std::string lower(std::string text) {
  for (char& each : text) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return text;
}

class OnnxRuntimeRunner final : public Runner {
 public:
  OnnxRuntimeRunner(std::string name, const ModelFace& face, OnnxRuntimeRequest request, const Narrator& narrator)
      : Runner(std::move(name), "fp32"),
        face_(face),
        request_(std::move(request)),
        narrator_(narrator),
        library_(request_.library) {}
  OnnxRuntimeRunner(const OnnxRuntimeRunner&) = delete;
  OnnxRuntimeRunner& operator=(const OnnxRuntimeRunner&) = delete;
  ~OnnxRuntimeRunner() override {
    library_.release(Slot::release_session, session_);
    library_.release(Slot::release_memory_info, memory_);
    library_.release(Slot::release_env, env_);
  }

  void prepare(const std::vector<TensorList>& /*iterations*/) override {
    check_providers();
    constexpr int kErrors = 3;
    library_.call(Slot::create_env, kErrors, "hone", &env_);
    Object* options = nullptr;
    library_.call(Slot::create_options, &options);
    try {
      library_.call(Slot::set_optimization, options, request_.optimization);
      library_.call(Slot::set_log_severity, options, kErrors);
      if (face_.marked)
        library_.call(Slot::add_config_entry, options, "session.model_external_initializers_file_folder_path",
                      face_.folder.c_str());
      narrator_.info(
          "Creating ONNX-Runtime Inference Session with providers: ['CPUExecutionProvider'] (ONNX Runtime {})",
          library_.version());
      const std::span<const std::byte> bytes = face_.bytes.bytes();
      if (face_.marked)
        library_.call(Slot::create_session_from_array, env_, static_cast<const void*>(bytes.data()), bytes.size(),
                      options, &session_);
      else library_.call(Slot::create_session, env_, face_.path.c_str(), options, &session_);
    } catch (...) {
      library_.release(Slot::release_options, options);
      throw;
    }
    library_.release(Slot::release_options, options);
    constexpr int kArena = 1, kDefaultMemory = 0;
    library_.call(Slot::cpu_memory, kArena, kDefaultMemory, &memory_);
    inputs_ = names(Slot::input_count, Slot::input_name);
    outputs_ = names(Slot::output_count, Slot::output_name);
  }

  TensorList infer(const TensorList& inputs) override {
    std::vector<Object*> given, found(outputs_.size(), nullptr);
    std::vector<const char*> input_names, output_names;
    for (const std::string& name : outputs_) output_names.push_back(name.c_str());
    TensorList outputs;
    try {
      for (const std::string& name : inputs_) {
        given.push_back(value_of(name, input_for(inputs, name)));
        input_names.push_back(name.c_str());
      }
      library_.call(Slot::run, session_, static_cast<Object*>(nullptr), input_names.data(), given.data(), given.size(),
                    output_names.data(), output_names.size(), found.data());
      for (size_t i = 0; i < found.size(); ++i) outputs.push_back({outputs_[i], tensor_of(outputs_[i], found[i])});
    } catch (...) {
      release(given, found);
      throw;
    }
    release(given, found);
    return outputs;
  }

  std::string kernel_of(const std::string& /*tensor*/) const override { return "onnxruntime"; }

 private:
  void release(const std::vector<Object*>& a, const std::vector<Object*>& b) const {
    for (const std::vector<Object*>* list : {&a, &b})
      for (Object* value : *list) library_.release(Slot::release_value, value);
  }

  /// Only its processor is used: other providers are refused rather than left out.
  void check_providers() const {
    for (const std::string& provider : request_.providers)
      if (lower("CPUExecutionProvider").find(lower(provider)) == std::string::npos)
        throw StatusError(ExitStatus::no_backend,
                          fmt::format("ONNX Runtime's provider {} is not used by hone", provider), "--providers cpu");
  }

  std::vector<std::string> names(Slot count_slot, Slot name_slot) const {
    size_t count = 0;
    library_.call(count_slot, session_, &count);
    Object* allocator = nullptr;
    library_.call(Slot::default_allocator, &allocator);
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      library_.call(name_slot, session_, i, allocator, &name);
      result.emplace_back(name);
      library_.call(Slot::free_memory, allocator, static_cast<void*>(name));
    }
    return result;
  }

  Object* value_of(const std::string& name, const Tensor& tensor) const {
    Object* value = nullptr;
    auto* data = const_cast<std::byte*>(tensor.bytes().data());
    library_.call(Slot::create_tensor, memory_, static_cast<void*>(data), tensor.bytes().size(), tensor.dims().data(),
                  tensor.dims().size(), number_of(tensor.dtype(), name), &value);
    return value;
  }

  Tensor tensor_of(const std::string& name, Object* value) const {
    int kind = 0;
    library_.call(Slot::value_type, value, &kind);
    if (kind != 1) throw Error(fmt::format("output {} is no tensor", name), "leave it out: --onnx-exclude-outputs");
    Object* info = nullptr;
    library_.call(Slot::type_and_shape, value, &info);
    int element = 0;
    size_t rank = 0;
    Dims dims;
    try {
      library_.call(Slot::element_type, info, &element);
      library_.call(Slot::dimension_count, info, &rank);
      dims.resize(rank);
      library_.call(Slot::dimensions, info, dims.data(), rank);
    } catch (...) {
      library_.release(Slot::release_type_and_shape, info);
      throw;
    }
    library_.release(Slot::release_type_and_shape, info);
    const DType type = type_of(element, name);
    void* data = nullptr;
    library_.call(Slot::tensor_data, value, &data);
    const auto bytes = static_cast<size_t>(elements(dims)) * size_of(type);
    return Tensor(type, dims, Blob::copy(std::span(static_cast<const std::byte*>(data), bytes)));
  }

  const ModelFace& face_;
  const OnnxRuntimeRequest request_;
  const Narrator& narrator_;
  const ort::Library library_;
  Object *env_ = nullptr, *session_ = nullptr, *memory_ = nullptr;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace

std::unique_ptr<Runner> make_onnxruntime_runner(std::string name, const ModelFace& face, OnnxRuntimeRequest request,
                                                const Narrator& narrator) {
  return std::make_unique<OnnxRuntimeRunner>(std::move(name), face, std::move(request), narrator);
}

}  // namespace hone
