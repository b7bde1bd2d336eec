// SPDX-License-Identifier: Apache-2.0
//
// Every function of hone.h and tools.h with one wrong argument: a status and a message, never a crash. The calls themselves come from the header
// (scripts/capi_calls.py); here stands what a right argument is.
#include <climits>
#include <cstdint>
#include <functional>

#include "base/file.h"
#include "base/folder_testing.h"
#include "capi/testing.h"
#include "hone/ranks.h"

namespace hone::capi {
namespace {

/// What all calls share: nothing of it is changed by them.
struct Shared {
  TestFolder folder;
  Blob model_bytes = perceptron();
  Owned<hone_device> device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  Owned<hone_options> options = make<hone_options>(hone_options_create, nullptr, size_t{0});
  Owned<hone_model> model =
      make<hone_model>(hone_model_create_from_memory, model_bytes.data(), model_bytes.size(), nullptr, nullptr);
  Owned<hone_plan> plan = plan_of(model_bytes, device.get());
  Owned<hone_engine> engine = make<hone_engine>(hone_engine_create, plan.get(), device.get(), nullptr);
  Owned<hone_context> context = make<hone_context>(hone_context_create, engine.get(), 0);
  Owned<hone_buffer> buffer = make<hone_buffer>(hone_buffer_create, device.get(), HONE_MEMORY_HOST, size_t{64});
  Owned<hone_stream> stream = make<hone_stream>(hone_stream_create, device.get());
  Owned<hone_event> event = make<hone_event>(hone_event_create, device.get());
  Owned<hone_value> value = make<hone_value>(hone_value_create_optional, nullptr);
  Owned<hone_timing_cache> cache = make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0});
  Owned<hone_network> network = make<hone_network>(hone_network_create, 17);
  Owned<hone_benchmark> benchmark = make<hone_benchmark>(hone_benchmark_create, engine.get(), 0, 1, 1);
  Owned<hone_check> check = make<hone_check>(hone_check_create, engine.get(), 0);
  Owned<hone_diagnosis> diagnosis =
      make<hone_diagnosis>(hone_diagnosis_create_from_memory, model_bytes.data(), model_bytes.size(), nullptr);
  Owned<hone_reference> reference = make<hone_reference>(hone_reference_create, model.get());
  Owned<hone_graph> graph = make<hone_graph>(hone_graph_create, int64_t{17});
  std::string model_path = folder.file("m.onnx"), plan_path = folder.file("m.plan"), written = folder.file("w.plan"),
              model_written = folder.file("w.onnx");

  Shared() {
    write_file(model_path, std::string(reinterpret_cast<const char*>(model_bytes.data()), model_bytes.size()));
    must(hone_plan_save(plan.get(), plan_path.c_str()));
    set_rows(hone_benchmark_context(benchmark.get(), 0), 3);
    must(hone_benchmark_allocate(benchmark.get(), 0));
    const float rows[4] = {1, 2, 3, 4};
    const int64_t dims[2] = {1, 4};
    const auto x = make<hone_value>(hone_value_create_tensor, HONE_F32, dims, 2, static_cast<const void*>(rows));
    must(hone_reference_set_input(reference.get(), "x", x.get()));
    must(hone_reference_run(reference.get()));
  }
};
Shared* shared = nullptr;

class Calls : public testing::Test {
 protected:
  static void SetUpTestSuite() { shared = new Shared; }
  static void TearDownTestSuite() { delete std::exchange(shared, nullptr); }
};

struct Wrong {
  enum class Sort { null, foreign, state, number } sort;
  std::string what;
  void* pointer = nullptr;
  int64_t number = 0;
  std::shared_ptr<void> owner = {};

  template <typename T>
  T as() const {
    if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) return nullptr;
    else if constexpr (std::is_pointer_v<T>) return static_cast<T>(pointer);
    else return static_cast<T>(number);
  }
};

template <typename T>
constexpr bool kIsHandle =
    std::is_same_v<T, hone_device> || std::is_same_v<T, hone_options> || std::is_same_v<T, hone_model> ||
    std::is_same_v<T, hone_plan> || std::is_same_v<T, hone_engine> || std::is_same_v<T, hone_context> ||
    std::is_same_v<T, hone_buffer> || std::is_same_v<T, hone_stream> || std::is_same_v<T, hone_event> ||
    std::is_same_v<T, hone_value> || std::is_same_v<T, hone_timing_cache> || std::is_same_v<T, hone_network> ||
    std::is_same_v<T, hone_benchmark> || std::is_same_v<T, hone_check> || std::is_same_v<T, hone_diagnosis> ||
    std::is_same_v<T, hone_graph> || std::is_same_v<T, hone_reference>;
template <typename T>
constexpr bool kIsStruct =
    std::is_same_v<T, hone_device_options> || std::is_same_v<T, hone_device_info> || std::is_same_v<T, hone_ceilings> ||
    std::is_same_v<T, hone_tensor> || std::is_same_v<T, hone_log> || std::is_same_v<T, hone_progress> ||
    std::is_same_v<T, hone_plan_info> || std::is_same_v<T, hone_layer> || std::is_same_v<T, hone_candidate> ||
    std::is_same_v<T, hone_node> || std::is_same_v<T, hone_tensor_details> || std::is_same_v<T, hone_profile> ||
    std::is_same_v<T, hone_range> || std::is_same_v<T, hone_shape> || std::is_same_v<T, hone_knob> ||
    std::is_same_v<T, hone_scale> || std::is_same_v<T, hone_benchmark_options> || std::is_same_v<T, hone_query_times> ||
    std::is_same_v<T, hone_situation> || std::is_same_v<T, hone_operator> || std::is_same_v<T, hone_operator_info> ||
    std::is_same_v<T, hone_diagnostic> || std::is_same_v<T, hone_diagnosed_node> || std::is_same_v<T, hone_weight> ||
    std::is_same_v<T, hone_graph_tensor> || std::is_same_v<T, hone_graph_attribute> || std::is_same_v<T, hone_rank> ||
    std::is_same_v<T, hone_throughput> || std::is_same_v<T, hone_graph_node> ||
    std::is_same_v<T, hone_graph_fold_options> || std::is_same_v<T, hone_graph_save_options>;

template <typename T>
using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;

template <typename Pointer>
std::vector<Wrong> foreign_pointers() {
  alignas(64) static std::byte freed[4096] = {};
  std::vector<Wrong> result{{Wrong::Sort::null, "NULL"}};
  if constexpr (kIsHandle<Pointee<Pointer>>) {
    const auto add = [&]<typename T>(const char* name, const Owned<T>& object) {
      if (!std::is_same_v<T, Pointee<Pointer>>) result.push_back({Wrong::Sort::foreign, name, object.get()});
    };
    add("a device", shared->device);
    add("options", shared->options);
    add("a model", shared->model);
    add("a plan", shared->plan);
    add("an engine", shared->engine);
    add("a context", shared->context);
    add("a buffer", shared->buffer);
    add("a stream", shared->stream);
    add("an event", shared->event);
    add("a value", shared->value);
    add("a timing cache", shared->cache);
    add("a network", shared->network);
    add("a benchmark", shared->benchmark);
    add("a check", shared->check);
    add("a diagnosis", shared->diagnosis);
    add("a graph", shared->graph);
    add("a reference", shared->reference);
    result.push_back({Wrong::Sort::foreign, "what has been destroyed", freed});
  } else if constexpr (kIsStruct<Pointee<Pointer>>) {
    result.push_back({Wrong::Sort::foreign, "a struct of size 0", freed});
  }
  return result;
}

/// And right handles in states that a call may find too early or too late.
template <typename Pointer>
std::vector<Wrong> wrong_pointers() {
  std::vector<Wrong> result = foreign_pointers<Pointer>();
  const auto add = [&](const char* what, auto owned) {
    void* pointer = owned.get();
    result.push_back({Wrong::Sort::state, what, pointer, 0, std::shared_ptr<void>(std::move(owned))});
  };
  const auto fresh = [] { return make<hone_context>(hone_context_create, shared->engine.get(), 0); };
  if constexpr (std::is_same_v<Pointee<Pointer>, hone_context>) {
    add("without shapes", fresh());
    auto shaped = fresh();
    set_rows(shaped.get(), 3);
    add("without memory", std::move(shaped));
  } else if constexpr (std::is_same_v<Pointee<Pointer>, hone_benchmark>) {
    add("without memory", make<hone_benchmark>(hone_benchmark_create, shared->engine.get(), 0, 1, 1));
  } else if constexpr (std::is_same_v<Pointee<Pointer>, hone_event>) {
    add("never recorded", make<hone_event>(hone_event_create, shared->device.get()));
  } else if constexpr (std::is_same_v<Pointee<Pointer>, hone_value>) {
    add("nothing", make<hone_value>(hone_value_create_optional, nullptr));
  } else if constexpr (std::is_same_v<Pointee<Pointer>, hone_reference>) {
    add("without inputs", make<hone_reference>(hone_reference_create, shared->model.get()));
  } else if constexpr (std::is_same_v<Pointee<Pointer>, hone_plan>) {
    add("without weights", plan_of(shared->model_bytes, shared->device.get(), {"--stripWeights"}));
  }
  return result;
}

template <typename T>
std::vector<Wrong> wrong_numbers(std::string_view function, std::string_view parameter) {
  const auto number = [](int64_t value) { return Wrong{Wrong::Sort::number, std::to_string(value), nullptr, value}; };
  if (parameter == "data_transfers" || parameter == "contents" || parameter == "values")
    return {};  // any number is yes or no
  if constexpr (std::is_same_v<T, int>) return {number(-1), number(1 << 20), number(INT_MIN)};
  if constexpr (std::is_same_v<T, hone_dtype>) {
    std::vector<Wrong> types{number(HONE_SEQUENCE), number(HONE_MAP), number(30)};
    if (function == "hone_value_create_tensor") types.push_back(number(HONE_STRING));
    return types;
  }
  // What their bits can hold: more is undefined in C++ before it is looked at.
  if constexpr (std::is_same_v<T, hone_graph_list> || std::is_same_v<T, hone_graph_word>) return {number(7)};
  if constexpr (std::is_same_v<T, hone_memory> || std::is_same_v<T, hone_layers_form>) return {number(3)};
  if (parameter == "index" || parameter == "layer") return {number(-1), number(1000)};
  if (function == "hone_buffer_create") return {number(INT64_MAX)};
  if (function == "hone_context_set_memory" || function == "hone_context_reserve")
    return {number(-1), number(INT64_MIN)};
  return {};  // sizes of the caller's memory: whatever they say is believed
}

/// Right arguments of one call, by type and name.
class Objects {
 public:
  template <typename T>
  T right(std::string_view function, std::string_view name) {
    if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) return nullptr;
    else if constexpr (std::is_pointer_v<T> && std::is_pointer_v<std::remove_pointer_t<T>>) return list_of<T>(name);
    else if constexpr (std::is_pointer_v<T>) return pointer_to<Pointee<T>>(function, name);
    else return number_of<T>(function, name);
  }

 private:
  template <typename T>
  T list_of(std::string_view name) {
    using Element = std::remove_const_t<std::remove_pointer_t<T>>;  // const char*, hone_plan*, …
    if constexpr (std::is_same_v<T, const char* const*>) {
      static const char* const kFlags[] = {"--builderOptimizationLevel=0"};
      static const char* const kTexts[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
      return name == "arguments" ? kFlags : kTexts;
    } else if constexpr (std::is_same_v<T, const hone_value* const*>) {
      items_[0] = scalar();
      return items_;
    } else {
      auto slot = std::make_shared<Element>(nullptr);
      if constexpr (kIsHandle<Pointee<Element>>) made_.push_back([slot] { Destroy()(*slot); });
      else made_.push_back([slot] {});
      return slot.get();
    }
  }

  template <typename T>
  T* pointer_to(std::string_view function, std::string_view name) {
    if constexpr (std::is_same_v<T, hone_context>) return context();
    else if constexpr (std::is_same_v<T, hone_value>) return scalar();
    else if constexpr (std::is_same_v<T, hone_event>) return event();
    else if constexpr (std::is_same_v<T, hone_graph>) return graph();
    else if constexpr (kIsHandle<T>) return shared_handle<T>();
    else if constexpr (kIsStruct<T>) {
      auto made = std::make_shared<T>();
      made->size = sizeof(T);
      made_.push_back([made] {});
      return made.get();
    } else if constexpr (std::is_same_v<T, char>) return const_cast<char*>(text(function, name));
    else if constexpr (std::is_same_v<T, int64_t>) return dims_;
    else if constexpr (std::is_same_v<T, size_t>) return lengths_;
    else if constexpr (std::is_same_v<T, int>) return &integer_;
    else if constexpr (std::is_same_v<T, double>) return &real_;
    else if (name == "user" || name == "native") return nullptr;
    else if (function == "hone_model_create_from_memory" || function == "hone_diagnosis_create_from_memory" ||
             function == "hone_graph_create_from_memory")
      return const_cast<std::byte*>(shared->model_bytes.data());
    else if (function == "hone_plan_create_from_memory") return plan_bytes();
    else if (function == "hone_timing_cache_create") return nullptr;
    else return name == "destination" ? destination_ : memory_;
  }

  template <typename T>
  T number_of(std::string_view function, std::string_view name) const {
    if constexpr (std::is_same_v<T, int>)
      return name == "rank" ? 2 : name == "opset" ? 17 : name == "streams" ? 1 : name == "inferences" ? 2 : 0;
    else if (name == "count") return static_cast<T>(1);
    else if (function == "hone_timing_cache_create") return static_cast<T>(0);
    else if (function == "hone_model_create_from_memory" || function == "hone_diagnosis_create_from_memory" ||
             function == "hone_graph_create_from_memory")
      return static_cast<T>(shared->model_bytes.size());
    else if (function == "hone_plan_create_from_memory") return static_cast<T>(plan_size());
    else if (name == "bytes") return static_cast<T>(sizeof memory_);
    else return static_cast<T>(0);
  }

  static const char* text(std::string_view function, std::string_view name) {
    if (name == "name") return "cpu/1";
    if (name == "knob") return "opt_level";
    if (name == "value") return "0";
    if (name == "onnx_path") return (function.ends_with("_save") ? shared->model_written : shared->model_path).c_str();
    if (name == "pattern" || name == "by") return "Relu($x)";
    if (name == "type") return "fp32";
    if (name == "format") return "fp32:chw";
    if (name == "folder") return shared->folder.path().c_str();
    if (name == "path") return (function.ends_with("_save") ? shared->written : shared->plan_path).c_str();
    return name == "output" ? "y" : "x";
  }
  static const void* bytes_of_plan(size_t* size) {
    const void* bytes = nullptr;
    must(hone_plan_bytes(shared->plan.get(), &bytes, size));
    return bytes;
  }
  static std::byte* plan_bytes() {
    size_t size = 0;
    return const_cast<std::byte*>(static_cast<const std::byte*>(bytes_of_plan(&size)));
  }
  static size_t plan_size() {
    size_t size = 0;
    bytes_of_plan(&size);
    return size;
  }

  template <typename T>
  static T* shared_handle() {
    if constexpr (std::is_same_v<T, hone_device>) return shared->device.get();
    else if constexpr (std::is_same_v<T, hone_options>) return shared->options.get();
    else if constexpr (std::is_same_v<T, hone_model>) return shared->model.get();
    else if constexpr (std::is_same_v<T, hone_plan>) return shared->plan.get();
    else if constexpr (std::is_same_v<T, hone_engine>) return shared->engine.get();
    else if constexpr (std::is_same_v<T, hone_buffer>) return shared->buffer.get();
    else if constexpr (std::is_same_v<T, hone_timing_cache>) return shared->cache.get();
    else if constexpr (std::is_same_v<T, hone_network>) return shared->network.get();
    else if constexpr (std::is_same_v<T, hone_benchmark>) return shared->benchmark.get();
    else if constexpr (std::is_same_v<T, hone_check>) return shared->check.get();
    else if constexpr (std::is_same_v<T, hone_diagnosis>) return shared->diagnosis.get();
    else if constexpr (std::is_same_v<T, hone_reference>) return shared->reference.get();
    else return shared->stream.get();
  }
  hone_context* context() {
    if (!running_) running_ = std::make_unique<Running>(shared->engine.get());
    return running_->context.get();
  }
  hone_value* scalar() {
    if (!value_) value_ = make<hone_value>(hone_value_create_tensor, HONE_F32, dims_, 2, memory_);
    return value_.get();
  }
  hone_graph* graph() {
    if (!graph_)
      graph_ = make<hone_graph>(hone_graph_create_from_memory, shared->model_bytes.data(), shared->model_bytes.size(),
                                nullptr);
    return graph_.get();
  }
  hone_event* event() {
    if (!event_) event_ = make<hone_event>(hone_event_create, shared->device.get());
    return event_.get();
  }

  int64_t dims_[HONE_MAX_RANK] = {2, 4};
  size_t lengths_[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  int integer_ = 0;
  double real_ = 0;
  alignas(256) std::byte memory_[4096] = {};
  std::byte destination_[4096] = {};
  const hone_value* items_[1] = {};
  std::unique_ptr<Running> running_;
  Owned<hone_value> value_;
  Owned<hone_event> event_;
  Owned<hone_graph> graph_;

  struct Slots : std::vector<std::function<void()>> {  // of what calls made: freed first
    ~Slots() {
      for (const auto& free : *this) free();
    }
  } made_;
};

void judge(const char* function, const char* parameter, const Wrong& bad, bool nullable, hone_status status) {
  const std::string where = fmt::format("{}({} = {})", function, parameter, bad.what);
  if (status != HONE_OK) {
    EXPECT_NE(hone_last_error()[0], '\0') << where;
    EXPECT_NE(status, HONE_INTERNAL) << where << ": " << hone_last_error();
  }
  if (bad.sort == Wrong::Sort::state || (bad.sort == Wrong::Sort::null && nullable)) return;
  EXPECT_NE(status, HONE_OK) << where << " is taken";
  if (bad.sort == Wrong::Sort::number) return;
  EXPECT_EQ(status, HONE_INVALID_ARGUMENT) << where << ": " << hone_last_error();
  EXPECT_NE(std::string(hone_last_error()).find(parameter), std::string::npos) << where << ": " << hone_last_error();
}

/// Of a function that has no status: it is still there.
void judge(const char*, const char*, const Wrong&, bool) {}

#include "calls.inc"

}  // namespace
}  // namespace hone::capi
