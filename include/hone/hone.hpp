// SPDX-License-Identifier: Apache-2.0
//
// Hone for C++20, over hone.h alone and in this header alone: objects that free themselves, spans, exceptions with the hint.
//
//   hone::Device device("cpu");
//   hone::Plan plan = hone::Plan::build(hone::Model::load("model.onnx"), device, {"--minShapes=x:1x4", ...});
//   hone::Context context(hone::Engine(plan, device));
//   context.set_shape("x", {8, 4});
//   context.bind("x", std::span(input));
//   context.bind("y", std::span(output));
//   context.run();
//
// Every function throws hone::Error where hone.h returns a status; what else it says of a function holds for the method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/hone.h"

namespace hone {

class Error : public std::runtime_error {
 public:
  Error(hone_status status, const std::string& message, std::string hint)
      : std::runtime_error(hint.empty() ? message : message + "\n  hint: " + hint),
        status_(status),
        message_(message),
        hint_(std::move(hint)) {}
  hone_status status() const noexcept { return status_; }
  /// Without the hint.
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  hone_status status_;
  std::string message_, hint_;
};

inline void check(hone_status status) {
  if (status != HONE_OK) throw Error(status, hone_last_error(), hone_last_hint());
}

namespace detail {

struct Destroy {
  void operator()(hone_device* object) const noexcept { hone_device_destroy(object); }
  void operator()(hone_options* object) const noexcept { hone_options_destroy(object); }
  void operator()(hone_model* object) const noexcept { hone_model_destroy(object); }
  void operator()(hone_plan* object) const noexcept { hone_plan_destroy(object); }
  void operator()(hone_engine* object) const noexcept { hone_engine_destroy(object); }
  void operator()(hone_context* object) const noexcept { hone_context_destroy(object); }
  void operator()(hone_buffer* object) const noexcept { hone_buffer_destroy(object); }
  void operator()(hone_stream* object) const noexcept { hone_stream_destroy(object); }
  void operator()(hone_event* object) const noexcept { hone_event_destroy(object); }
  void operator()(hone_value* object) const noexcept { hone_value_destroy(object); }
  void operator()(hone_timing_cache* object) const noexcept { hone_timing_cache_destroy(object); }
  void operator()(hone_network* object) const noexcept { hone_network_destroy(object); }
  void operator()(hone_diagnosis* object) const noexcept { hone_diagnosis_destroy(object); }
  void operator()(hone_reference* object) const noexcept { hone_reference_destroy(object); }
};

template <typename Handle>
class Object {
 public:
  /// The handle, for functions of hone.h; still this object's.
  Handle* get() const noexcept { return handle_.get(); }

 protected:
  template <typename Function, typename... Arguments>
  explicit Object(Function* function, const Arguments&... arguments) {
    Handle* made = nullptr;
    check(function(arguments..., &made));
    handle_.reset(made);
  }

 private:
  std::unique_ptr<Handle, Destroy> handle_;
};

template <typename T>
T sized() {
  T value{};
  value.size = sizeof value;
  return value;
}

}  // namespace detail

/// Element types of C++ as hone_dtype.
template <typename T>
constexpr hone_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return HONE_F32;
  else if constexpr (std::is_same_v<T, double>) return HONE_F64;
  else if constexpr (std::is_same_v<T, bool>) return HONE_BOOL;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) return std::is_signed_v<T> ? HONE_I8 : HONE_U8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2) return std::is_signed_v<T> ? HONE_I16 : HONE_U16;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return std::is_signed_v<T> ? HONE_I32 : HONE_U32;
  else {
    static_assert(std::is_integral_v<T> && sizeof(T) == 8, "Hone has no such element type");
    return std::is_signed_v<T> ? HONE_I64 : HONE_U64;
  }
}

/// An input or output. Sizes that are not fixed are -1.
struct Tensor {
  std::string name;
  hone_dtype dtype = HONE_F32;
  bool is_input = false, by_value = false, ranked = true;
  std::vector<int64_t> dims;
  hone_dtype element = HONE_F32, key = HONE_I64;  // of containers

  explicit Tensor(const hone_tensor& from)
      : name(from.name == nullptr ? "" : from.name),
        dtype(from.dtype),
        is_input(from.is_input != 0),
        by_value(from.by_value != 0),
        ranked(from.rank >= 0),
        dims(from.dims, from.dims + (from.rank > 0 ? from.rank : 0)),
        element(from.element),
        key(from.key) {}
};

/// Receives log lines; those above the threshold are not made. What it throws ends the program: it is called from C.
class Log {
 public:
  using Write = std::function<void(hone_severity severity, std::string_view text)>;
  Log() = default;
  Log(hone_severity threshold, Write write) : threshold_(threshold), write_(std::move(write)) {}
  /// Valid as long as this object stays where it is.
  hone_log raw() const noexcept {
    hone_log log = detail::sized<hone_log>();
    log.threshold = threshold_;
    if (write_) log.write = pass_on;
    log.user = const_cast<Log*>(this);
    return log;
  }

 private:
  static void pass_on(void* user, hone_severity severity, const char* text) noexcept {
    static_cast<const Log*>(user)->write_(severity, text);
  }
  hone_severity threshold_ = HONE_LOG_WARNING;
  Write write_;
};

class Device : public detail::Object<hone_device> {
 public:
  explicit Device(const std::string& name = "cpu") : Object(hone_device_create, name.c_str(), nullptr) {}
  Device(const std::string& name, const hone_device_options& options)
      : Object(hone_device_create, name.c_str(), &options) {}
  /// Texts belong to this object.
  hone_device_info info() const {
    auto info = detail::sized<hone_device_info>();
    check(hone_device_describe(get(), &info));
    return info;
  }
  hone_ceilings measure() {
    auto ceilings = detail::sized<hone_ceilings>();
    check(hone_device_measure(get(), &ceilings));
    return ceilings;
  }
};

class Buffer : public detail::Object<hone_buffer> {
 public:
  Buffer(const Device& device, size_t bytes, hone_memory kind = HONE_MEMORY_DEVICE)
      : Object(hone_buffer_create, device.get(), kind, bytes), kind_(kind) {}
  void* data() const { return hone_buffer_data(get()); }
  size_t bytes() const { return hone_buffer_bytes(get()); }
  hone_memory kind() const noexcept { return kind_; }
  /// As elements; to be touched where the host reads such memory.
  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), bytes() / sizeof(T)};
  }

 private:
  hone_memory kind_;
};

class Event;

class Stream : public detail::Object<hone_stream> {
 public:
  explicit Stream(const Device& device) : Object(hone_stream_create, device.get()) {}
  /// A cudaStream_t of the caller's.
  Stream(const Device& device, void* native) : Object(hone_stream_create_from_native, device.get(), native) {}
  void copy(void* destination, const void* source, size_t bytes) {
    check(hone_stream_copy(get(), destination, source, bytes));
  }
  void wait(Event& event);
  void synchronize() { check(hone_stream_synchronize(get())); }
  /// Calls `done` on another thread behind the work so far; what it throws ends the program.
  void call(std::function<void(hone_status)> done) {
    auto kept = std::make_unique<std::function<void(hone_status)>>(std::move(done));
    const auto pass_on = [](void* user, hone_status status) noexcept {
      (*std::unique_ptr<std::function<void(hone_status)>>(static_cast<std::function<void(hone_status)>*>(user)))(
          status);
    };
    check(hone_stream_call(get(), pass_on, kept.get()));
    (void)kept.release();
  }
};

class Event : public detail::Object<hone_event> {
 public:
  explicit Event(const Device& device) : Object(hone_event_create, device.get()) {}
  void record(Stream& stream) { check(hone_event_record(get(), stream.get())); }
  void synchronize() { check(hone_event_synchronize(get())); }
  bool passed() {
    int passed = 0;
    check(hone_event_query(get(), &passed));
    return passed != 0;
  }
  double milliseconds_since(Event& earlier) {
    double milliseconds = 0;
    check(hone_event_elapsed(earlier.get(), get(), &milliseconds));
    return milliseconds;
  }
};

inline void Stream::wait(Event& event) { check(hone_stream_wait(get(), event.get())); }

/// Times of tactics, so that none is measured twice.
class TimingCache : public detail::Object<hone_timing_cache> {
 public:
  TimingCache() : TimingCache(std::span<const std::byte>()) {}
  /// What bytes() gave.
  explicit TimingCache(std::span<const std::byte> bytes)
      : Object(hone_timing_cache_create, static_cast<const void*>(bytes.data()), bytes.size()) {}
  void merge(const TimingCache& other) { check(hone_timing_cache_merge(get(), other.get())); }
  size_t entries() const { return hone_timing_cache_entries(get()); }
  /// Of this object, until the next call.
  std::span<const std::byte> bytes() {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_timing_cache_bytes(get(), &bytes, &size));
    return {static_cast<const std::byte*>(bytes), size};
  }
};

/// The shapes of an input in a profile.
struct Range {
  std::string input;
  std::vector<int64_t> min, opt, max;
};

/// Flags as on trtexec's command line, and what is said beside them.
class Options : public detail::Object<hone_options> {
 public:
  explicit Options(const std::vector<std::string>& flags = {})
      : Object(hone_options_create, texts_of(flags).data(), flags.size()) {}
  Options(std::initializer_list<std::string> flags) : Options(std::vector<std::string>(flags)) {}
  /// One more profile; its number.
  int add_profile(const std::vector<Range>& ranges) {
    int profile = 0;
    check(hone_options_add_profile(get(), &profile));
    for (const Range& range : ranges) {
      if (range.min.size() != range.opt.size() || range.min.size() != range.max.size())
        throw Error(HONE_INVALID_ARGUMENT, "the shapes of " + range.input + " have several ranks", "give them one");
      check(hone_options_set_range(get(), profile, range.input.c_str(), range.min.data(), range.opt.data(),
                                   range.max.data(), static_cast<int>(range.min.size())));
    }
    return profile;
  }
  void set_layer_type(const std::string& node, const std::string& type) {
    check(hone_options_set_layer_type(get(), node.c_str(), type.c_str()));
  }
  /// Of an input or output: "fp16:hwc".
  void set_format(const std::string& tensor, const std::string& format) {
    check(hone_options_set_format(get(), tensor.c_str(), format.c_str()));
  }
  void set_timing_cache(TimingCache& cache) { check(hone_options_set_timing_cache(get(), cache.get())); }
  /// Copies the struct, not what its pointer `user` means.
  void set_progress(const hone_progress& progress) { check(hone_options_set_progress(get(), &progress)); }

 private:
  static std::vector<const char*> texts_of(const std::vector<std::string>& flags) {
    std::vector<const char*> texts;
    for (const std::string& flag : flags) texts.push_back(flag.c_str());
    return texts;
  }
};

class Model : public detail::Object<hone_model> {
 public:
  static Model load(const std::string& onnx_path, const Log& log = {}) {
    const hone_log raw = log.raw();
    return Model(hone_model_create_from_file, onnx_path.c_str(), &raw);
  }
  /// External data lie in `folder`.
  static Model parse(std::span<const std::byte> bytes, const std::string& folder = {}, const Log& log = {}) {
    const hone_log raw = log.raw();
    return Model(hone_model_create_from_memory, static_cast<const void*>(bytes.data()), bytes.size(),
                 folder.empty() ? nullptr : folder.c_str(), &raw);
  }
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> result;
    for (size_t i = 0; i < hone_model_tensors(get()); ++i) {
      auto tensor = detail::sized<hone_tensor>();
      check(hone_model_tensor(get(), i, &tensor));
      result.emplace_back(tensor);
    }
    return result;
  }
  /// What set_weight() can exchange.
  std::vector<Tensor> weights() const {
    std::vector<Tensor> result;
    for (size_t i = 0; i < hone_model_weights(get()); ++i) {
      auto tensor = detail::sized<hone_tensor>();
      check(hone_model_weight(get(), i, &tensor));
      result.emplace_back(tensor);
    }
    return result;
  }
  void set_weight(const std::string& name, std::span<const std::byte> contents) {
    check(hone_model_set_weight(get(), name.c_str(), contents.data(), contents.size()));
  }
  /// How many weights its plan came without.
  size_t missing_weights() const { return hone_model_missing_weights(get()); }
  /// What a refit asks of the weights, which it names in the order of weights(). Texts are this object's.
  std::vector<hone_weight> weight_details() const {
    std::vector<hone_weight> result;
    for (size_t i = 0; i < hone_model_weights(get()); ++i) {
      result.push_back(detail::sized<hone_weight>());
      check(hone_model_weight_details(get(), i, &result.back()));
    }
    return result;
  }

 private:
  friend class Network;  // of network.hpp
  friend class Plan;
  static Model of_plan(const hone_plan* plan) { return Model(hone_model_create_from_plan, plan); }
  static Model of_network(const hone_network* network, const Log& log) {
    const hone_log raw = log.raw();
    return Model(hone_model_create_from_network, network, &raw);
  }
  using Object::Object;
};

class Plan : public detail::Object<hone_plan> {
 public:
  static Plan build(const Model& model, const Device& device, const Options& options = Options(), const Log& log = {}) {
    const hone_log raw = log.raw();
    return Plan(hone_plan_create_from_model, model.get(), device.get(), options.get(), &raw);
  }
  static Plan load(const std::string& path) { return Plan(hone_plan_create_from_file, path.c_str()); }
  /// The bytes have to stay while the plan or an engine of it lives.
  static Plan parse(std::span<const std::byte> bytes) {
    return Plan(hone_plan_create_from_memory, static_cast<const void*>(bytes.data()), bytes.size());
  }
  Plan refit(const Model& model, const Device& device, const Log& log = {}) const {
    const hone_log raw = log.raw();
    return Plan(hone_plan_create_from_refit, get(), model.get(), device.get(), &raw);
  }
  /// The network that the plan keeps, for other weights.
  Model network() const { return Model::of_plan(get()); }
  void save(const std::string& path) const { check(hone_plan_save(get(), path.c_str())); }
  /// Of this object.
  std::span<const std::byte> bytes() const {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_plan_bytes(get(), &bytes, &size));
    return {static_cast<const std::byte*>(bytes), size};
  }
  std::string_view json() const {
    const char* json = nullptr;
    check(hone_plan_json(get(), &json));
    return json;
  }
  /// Texts of it and of its layers are this object's.
  hone_plan_info info() const {
    auto info = detail::sized<hone_plan_info>();
    check(hone_plan_describe(get(), &info));
    return info;
  }
  std::vector<hone_layer> layers(int profile = 0) const {
    std::vector<hone_layer> layers;
    for (size_t i = 0; i < hone_plan_layers(get(), profile); ++i) {
      layers.push_back(detail::sized<hone_layer>());
      check(hone_plan_layer(get(), profile, i, &layers.back()));
    }
    return layers;
  }

 private:
  using Object::Object;
};

class Engine : public detail::Object<hone_engine> {
 public:
  Engine(const Plan& plan, const Device& device, const Log& log = {}) : Engine(plan, device, log.raw()) {}
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> result;
    for (size_t i = 0; i < hone_engine_tensors(get()); ++i) {
      auto tensor = detail::sized<hone_tensor>();
      check(hone_engine_tensor(get(), i, &tensor));
      result.emplace_back(tensor);
    }
    return result;
  }
  size_t profiles() const { return hone_engine_profiles(get()); }
  int64_t memory_bytes(int profile = 0) const {
    int64_t bytes = 0;
    check(hone_engine_memory_bytes(get(), profile, &bytes));
    return bytes;
  }

 private:
  Engine(const Plan& plan, const Device& device, const hone_log& log)
      : Object(hone_engine_create, plan.get(), device.get(), &log) {}
};

class Context;

/// A tensor, a sequence, an optional or a map that stands for itself.
class Value : public detail::Object<hone_value> {
 public:
  template <typename T>
  static Value tensor(std::span<const int64_t> dims, std::span<const T> elements) {
    size_t count = 1;
    for (const int64_t size : dims) count *= static_cast<size_t>(size);
    if (count != elements.size())
      throw Error(HONE_INVALID_ARGUMENT,
                  "the sizes say " + std::to_string(count) + " elements, there are " + std::to_string(elements.size()),
                  "give as many as the sizes say");
    return Value(hone_value_create_tensor, dtype_of<T>(), dims.data(), static_cast<int>(dims.size()),
                 static_cast<const void*>(elements.data()));
  }
  template <typename T>
  static Value tensor(std::initializer_list<int64_t> dims, std::span<const T> elements) {
    return tensor(std::span(dims.begin(), dims.size()), elements);
  }
  Value item(size_t index) const { return Value(hone_value_create_from_item, get(), index); }
  Tensor describe() const {
    auto tensor = detail::sized<hone_tensor>();
    check(hone_value_describe(get(), &tensor));
    return Tensor(tensor);
  }
  /// Of this object.
  template <typename T>
  std::span<const T> elements() const {
    const Tensor tensor = describe();
    if (tensor.dtype != dtype_of<T>())
      throw Error(HONE_INVALID_ARGUMENT, "the value has other elements", "ask describe()");
    size_t count = 1;
    for (const int64_t size : tensor.dims) count *= static_cast<size_t>(size);
    return {static_cast<const T*>(hone_value_data(get())), count};
  }
  std::string string(size_t index) const {
    const char* text = nullptr;
    size_t length = 0;
    check(hone_value_string(get(), index, &text, &length));
    return std::string(text, length);
  }

 private:
  friend class Context;
  friend class Reference;  // of reference.hpp
  using Object::Object;
};

class Context : public detail::Object<hone_context> {
 public:
  explicit Context(const Engine& engine, int profile = 0) : Object(hone_context_create, engine.get(), profile) {}

  void set_profile(int profile) { check(hone_context_set_profile(get(), profile)); }
  void set_shape(const std::string& input, std::span<const int64_t> dims) {
    check(hone_context_set_shape(get(), input.c_str(), dims.empty() ? kNone : dims.data(),
                                 static_cast<int>(dims.size())));
  }
  void set_shape(const std::string& input, std::initializer_list<int64_t> dims) {
    set_shape(input, std::span(dims.begin(), dims.size()));
  }
  std::vector<int64_t> shape(const std::string& tensor) {
    int64_t dims[HONE_MAX_RANK];
    int rank = 0;
    check(hone_context_shape(get(), tensor.c_str(), dims, &rank));
    return {dims, dims + rank};
  }
  int64_t bytes(const std::string& tensor) {
    int64_t bytes = 0;
    check(hone_context_bytes(get(), tensor.c_str(), &bytes));
    return bytes;
  }
  void bind(const std::string& tensor, void* memory, hone_memory kind) {
    check(hone_context_bind(get(), tensor.c_str(), memory, kind));
  }
  void bind(const std::string& tensor, const Buffer& buffer) {
    require_room(tensor, buffer.bytes());
    bind(tensor, buffer.data(), buffer.kind());
  }
  /// Host memory. Throws where it is smaller than the tensor at the present shapes.
  template <typename T>
  void bind(const std::string& tensor, std::span<T> memory) {
    require_room(tensor, memory.size_bytes());
    bind(tensor, const_cast<std::remove_const_t<T>*>(memory.data()), HONE_MEMORY_HOST);
  }
  void set_value(const std::string& input, const Value& value) {
    check(hone_context_set_value(get(), input.c_str(), value.get()));
  }
  int64_t memory_bytes() {
    int64_t bytes = 0;
    check(hone_context_memory_bytes(get(), &bytes));
    return bytes;
  }
  void set_memory(void* memory, int64_t bytes) { check(hone_context_set_memory(get(), memory, bytes)); }
  /// Memory for the output at sizes, so many bytes of it, in every run; nothing: bound memory again.
  using Place = std::function<void*(std::span<const int64_t> dims, int64_t bytes)>;
  void set_output_function(const std::string& output, Place place) {
    const auto pass_on = [](void* user, const char*, const int64_t* dims, int rank, int64_t bytes) noexcept {
      return (*static_cast<Place*>(user))({dims, static_cast<size_t>(rank)}, bytes);
    };
    auto kept = place ? std::make_shared<Place>(std::move(place)) : nullptr;
    check(hone_context_set_output_function(get(), output.c_str(), kept ? +pass_on : nullptr, kept.get()));
    functions_.push_back(std::move(kept));  // as long as the context: the one before may be at work
  }
  /// Hears what debug tensors hold behind each run; nothing: no more.
  using Debug = std::function<void(std::string_view tensor, const hone_value* value)>;
  void set_debug_function(Debug debug) {
    const auto pass_on = [](void* user, const char* tensor, const hone_value* value) noexcept {
      (*static_cast<Debug*>(user))(tensor, value);
    };
    auto kept = debug ? std::make_shared<Debug>(std::move(debug)) : nullptr;
    check(hone_context_set_debug_function(get(), kept ? +pass_on : nullptr, kept.get()));
    functions_.push_back(std::move(kept));
  }
  void prepare() { check(hone_context_prepare(get())); }
  void run() { check(hone_context_run(get())); }
  void enqueue(Stream& stream) { check(hone_context_enqueue(get(), stream.get())); }
  void wait() { check(hone_context_wait(get())); }
  void cancel() { check(hone_context_cancel(get())); }
  Value output(const std::string& name) { return Value(hone_value_create_from_output, get(), name.c_str()); }
  Value debug_value(const std::string& name) { return Value(hone_value_create_from_debug_tensor, get(), name.c_str()); }
  std::vector<std::string> debug_tensors() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < hone_context_debug_tensors(get()); ++i)
      names.emplace_back(hone_context_debug_tensor(get(), i));
    return names;
  }
  /// One inference, each layer timed by itself.
  std::vector<std::pair<std::string, double>> profile() {
    std::vector<std::pair<std::string, double>> layers;
    check(hone_context_set_layer_function(
        get(),
        [](void* user, const char* layer, double milliseconds) {
          static_cast<decltype(layers)*>(user)->emplace_back(layer, milliseconds);
        },
        &layers));
    const hone_status status = hone_context_run(get());
    const Error failure(status, hone_last_error(), hone_last_hint());
    check(hone_context_set_layer_function(get(), nullptr, nullptr));
    if (status != HONE_OK) throw failure;
    return layers;
  }

 private:
  std::vector<std::shared_ptr<void>> functions_;  // that the context calls
  static constexpr int64_t kNone[1] = {0};
  void require_room(const std::string& tensor, size_t bytes) {
    const auto needed = static_cast<size_t>(this->bytes(tensor));
    if (bytes < needed)
      throw Error(HONE_INVALID_ARGUMENT,
                  tensor + " needs " + std::to_string(needed) + " bytes, the memory has " + std::to_string(bytes),
                  "set shapes first, then give Context::bytes() of memory");
  }
};

}  // namespace hone
