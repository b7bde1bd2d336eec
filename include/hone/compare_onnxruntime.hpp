// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime on the processor as a run beside those of compare.hpp. Its library is opened when it is asked for.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "hone/compare.hpp"
#include "hone/onnxruntime.hpp"

namespace hone::compare {

namespace detail {

inline ort::Table open_onnxruntime(const std::string& path) {
  const char* set = std::getenv("HONE_ONNXRUNTIME_LIB");
  const std::vector<std::string> places = !path.empty() ? std::vector{path}
                                          : set != nullptr
                                              ? std::vector<std::string>{set}
                                              : std::vector<std::string>{"libonnxruntime.so.1", "libonnxruntime.so"};
  for (const std::string& place : places)
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      if (ort::Table table(dlsym(library, "OrtGetApiBase")); !table.empty()) return table;
  throw std::runtime_error("ONNX Runtime's library was not found, or is older than 1.11; searched: " + places.front() +
                           " (HONE_ONNXRUNTIME_LIB names it)");
}

class OnnxRuntimeSession {
 public:
  using Object = ort::Object;
  using Slot = ort::Slot;

  OnnxRuntimeSession(const Model& model, const std::string& library, int optimization)
      : table_(open_onnxruntime(library)) {
    constexpr int kErrors = 3, kArena = 1, kDefaultMemory = 0;
    call(Slot::create_env, kErrors, "hone", &env_);
    Object* options = nullptr;
    call(Slot::create_options, &options);
    call(Slot::set_optimization, options, optimization);
    call(Slot::set_log_severity, options, kErrors);
    if (model.is_as_it_stands()) {
      call(Slot::create_session, env_, model.path.c_str(), options, &session_);
    } else {
      Graph graph = model.edited();
      const std::span<const std::byte> bytes = graph.bytes();
      call(Slot::add_config_entry, options, "session.model_external_initializers_file_folder_path",
           model.data_folder().c_str());
      call(Slot::create_session_from_array, env_, static_cast<const void*>(bytes.data()), bytes.size(), options,
           &session_);
    }
    table_.release(Slot::release_options, options);
    call(Slot::cpu_memory, kArena, kDefaultMemory, &memory_);
    inputs_ = names(Slot::input_count, Slot::input_name);
    outputs_ = names(Slot::output_count, Slot::output_name);
  }
  OnnxRuntimeSession(const OnnxRuntimeSession&) = delete;
  OnnxRuntimeSession& operator=(const OnnxRuntimeSession&) = delete;
  ~OnnxRuntimeSession() {
    table_.release(Slot::release_session, session_);
    table_.release(Slot::release_memory_info, memory_);
    table_.release(Slot::release_env, env_);
  }

  Feed operator()(const Feed& feed) const {
    std::vector<Object*> given, found(outputs_.size(), nullptr);
    std::vector<const char*> input_names, output_names;
    for (const std::string& name : inputs_) {
      given.push_back(value_of(input_of(feed, name)));
      input_names.push_back(name.c_str());
    }
    for (const std::string& name : outputs_) output_names.push_back(name.c_str());
    call(Slot::run, session_, static_cast<Object*>(nullptr), input_names.data(), given.data(), given.size(),
         output_names.data(), output_names.size(), found.data());
    Feed outputs;
    for (size_t i = 0; i < found.size(); ++i) outputs.emplace(outputs_[i], array_of(outputs_[i], found[i]));
    for (const std::vector<Object*>* list : {&given, &found})
      for (Object* value : *list) table_.release(Slot::release_value, value);
    return outputs;
  }

 private:
  template <typename... Arguments>
  void call(Slot slot, Arguments... arguments) const {
    if (const std::string wrong = table_.attempt(slot, arguments...); !wrong.empty())
      throw std::runtime_error("ONNX Runtime: " + wrong);
  }

  std::vector<std::string> names(Slot count_slot, Slot name_slot) const {
    size_t count = 0;
    call(count_slot, session_, &count);
    Object* allocator = nullptr;
    call(Slot::default_allocator, &allocator);
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      call(name_slot, session_, i, allocator, &name);
      result.emplace_back(name);
      call(Slot::free_memory, allocator, static_cast<void*>(name));
    }
    return result;
  }

  Object* value_of(const Array& array) const {
    Object* value = nullptr;
    const auto* known = std::ranges::find(ort::kElements, array.dtype, &std::pair<hone_dtype, int>::first);
    if (known == std::end(ort::kElements)) throw std::runtime_error("an input's type is not handed to ONNX Runtime");
    call(Slot::create_tensor, memory_, static_cast<void*>(const_cast<std::byte*>(array.bytes.data())),
         array.bytes.size(), array.sizes.data(), array.sizes.size(), known->second, &value);
    return value;
  }

  Array array_of(const std::string& name, Object* value) const {
    int kind = 0, element = 0;
    size_t rank = 0;
    call(Slot::value_type, value, &kind);
    if (kind != 1) throw std::runtime_error("output " + name + " is no tensor");
    Object* info = nullptr;
    call(Slot::type_and_shape, value, &info);
    call(Slot::element_type, info, &element);
    call(Slot::dimension_count, info, &rank);
    std::vector<int64_t> sizes(rank);
    call(Slot::dimensions, info, sizes.data(), rank);
    table_.release(Slot::release_type_and_shape, info);
    const auto* known = std::ranges::find(ort::kElements, element, &std::pair<hone_dtype, int>::second);
    if (known == std::end(ort::kElements)) throw std::runtime_error("output " + name + " has a type that is not read");
    void* data = nullptr;
    call(Slot::tensor_data, value, &data);
    Array array{known->first, sizes};
    const auto* from = static_cast<const std::byte*>(data);
    array.bytes.assign(from, from + count_of(sizes) * bytes_of(array.dtype));
    return array;
  }

  ort::Table table_;
  Object *env_ = nullptr, *session_ = nullptr, *memory_ = nullptr;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace detail

/// `library`: where libonnxruntime.so is; else $HONE_ONNXRUNTIME_LIB or the loader says. `optimization`: of its graph, 0 to 99.
inline Run onnx_runtime(const Model& model, const std::string& library = {}, int optimization = 99) {
  const auto session = std::make_shared<detail::OnnxRuntimeSession>(model, library, optimization);
  return [session](const Feed& feed) { return (*session)(feed); };
}

}  // namespace hone::compare
