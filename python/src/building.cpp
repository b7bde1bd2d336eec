// SPDX-License-Identifier: Apache-2.0
//
// Models, options, timing caches, plans.
#include <chrono>
#include <exception>

#include "binding.h"

namespace hone::python {
namespace {

/// Tells a Python object how far a build is. What it raises, and what a signal raises (Ctrl-C), ends the measuring; the build is then
/// soon done, and the exception goes on from there.
class Progress {
 public:
  explicit Progress(nb::object told) : told_(std::move(told)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  hone_progress raw() {
    auto progress = sized<hone_progress>();
    progress.user = this;
    progress.stop = stop;
    if (told_.is_none()) return progress;
    progress.begin = begin;
    progress.step = step;
    progress.end = end;
    return progress;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::milliseconds(10);  // between questions: each takes Python's lock

  template <typename Body>
  int guarded(Body&& body) {
    if (failure_) return 1;
    nb::gil_scoped_acquire acquire;
    try {
      return body();
    } catch (...) {
      failure_ = std::current_exception();
      return 1;
    }
  }
  static Progress& of(void* user) { return *static_cast<Progress*>(user); }
  static void begin(void* user, const char* phase, const char* parent, int steps) {
    of(user).guarded([&] {
      const nb::object above = parent == nullptr ? nb::none() : text(parent);
      of(user).told_.attr("begin")(text(phase), above, steps);
      return 0;
    });
  }
  static int step(void* user, const char* phase, int done) {
    return of(user).guarded([&] { return nb::cast<bool>(nb::bool_(of(user).told_.attr("step")(text(phase), done))); });
  }
  static void end(void* user, const char* phase) {
    of(user).guarded([&] {
      of(user).told_.attr("end")(text(phase));
      return 0;
    });
  }
  static int stop(void* user) {
    Progress& self = of(user);
    const Clock::time_point now = Clock::now();
    if (now - self.asked_ < kPatience && !self.failure_) return 0;
    self.asked_ = now;
    return self.guarded([&]() -> int {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return !self.told_.is_none() && nb::cast<bool>(nb::bool_(self.told_.attr("stop")()));
    });
  }

  nb::object told_;
  std::exception_ptr failure_;
  Clock::time_point asked_ = {};
};

Plan build(const Model& model, const Device& device, const Options& options, nb::object told, nb::object log,
           int threshold) {
  Progress progress(std::move(told));
  const hone_progress raw = progress.raw();
  check(hone_options_set_progress(options.get(), &raw));
  const Log lines(std::move(log), threshold);
  std::optional<Plan> plan;
  std::exception_ptr failure;
  try {
    plan = Plan::make(hone_plan_create_from_model, static_cast<const hone_model*>(model.get()),
                      static_cast<const hone_device*>(device.get()), static_cast<const hone_options*>(options.get()),
                      lines.get());
  } catch (...) {
    failure = std::current_exception();
  }
  check(hone_options_set_progress(options.get(), nullptr));
  progress.rethrow();
  if (failure) std::rethrow_exception(failure);
  return std::move(*plan);
}

Options options_of(const std::vector<std::string>& flags) {
  std::vector<const char*> texts;
  for (const std::string& flag : flags) texts.push_back(flag.c_str());
  return Options::make(hone_options_create, texts.data(), texts.size());
}

void set_range(const Options& options, int profile, const std::string& input, const std::vector<int64_t>& min,
               const std::vector<int64_t>& opt, const std::vector<int64_t>& max) {
  if (min.size() != opt.size() || min.size() != max.size())
    throw Error("the shapes of " + input + " in a profile have several ranks\n  hint: give all three one rank");
  check(hone_options_set_range(options.get(), profile, input.c_str(), min.data(), opt.data(), max.data(),
                               static_cast<int>(min.size())));
}

nb::bytes bytes_of_plan(const Plan& plan) {
  const void* bytes = nullptr;
  size_t size = 0;
  call(hone_plan_bytes, static_cast<const hone_plan*>(plan.get()), &bytes, &size);
  return nb::bytes(bytes, size);
}

using PlanInfo = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string, std::string,
                            size_t, bool, bool, int64_t, int64_t>;
PlanInfo describe(const Plan& plan) {
  auto info = sized<hone_plan_info>();
  check(hone_plan_describe(plan.get(), &info));
  return {info.version,         info.device_kind,      info.device,       info.architecture,
          info.model,           info.precision,        info.options,      info.profiles,
          info.refittable != 0, info.has_weights != 0, info.weight_bytes, info.file_bytes};
}

using Range = std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>>;
std::vector<Range> ranges(const Plan& plan, int profile) {
  auto info = sized<hone_profile>();
  check(hone_plan_profile(plan.get(), profile, &info));
  std::vector<Range> result;
  for (size_t i = 0; i < info.ranges; ++i) {
    auto range = sized<hone_range>();
    check(hone_plan_range(plan.get(), profile, i, &range));
    const auto dims = [&](const int64_t* from) { return std::vector<int64_t>(from, from + range.rank); };
    result.emplace_back(range.input, dims(range.min), dims(range.opt), dims(range.max));
  }
  return result;
}

/// The members of hone_layer up to tuned_ms; names of nodes; tensors read and written; tactics tried.
nb::tuple layer_at(const Plan& plan, int profile, size_t index) {
  auto layer = sized<hone_layer>();
  check(hone_plan_layer(plan.get(), profile, index, &layer));
  nb::list nodes, candidates;
  for (size_t i = 0; i < layer.nodes; ++i) {
    const char* node = nullptr;
    check(hone_plan_layer_node(plan.get(), profile, index, i, &node));
    nodes.append(text(node));
  }
  const auto get = [&](size_t i, hone_tensor* t) { return hone_plan_layer_tensor(plan.get(), profile, index, i, t); };
  const std::vector<TensorInfo> all = tensors(layer.inputs + layer.outputs, get);
  for (size_t i = 0; i < layer.candidates; ++i) {
    auto candidate = sized<hone_candidate>();
    check(hone_plan_layer_candidate(plan.get(), profile, index, i, &candidate));
    candidates.append(nb::make_tuple(text(candidate.tactic), candidate.ms, candidate.spread, text(candidate.note),
                                     candidate.chosen != 0));
  }
  return nb::make_tuple(text(layer.name), text(layer.kind), text(layer.source), text(layer.tactic),
                        text(layer.parameters), text(layer.details), layer.is_view != 0, layer.tuned_ms, nodes,
                        std::vector<TensorInfo>(all.begin(), all.begin() + static_cast<ptrdiff_t>(layer.inputs)),
                        std::vector<TensorInfo>(all.begin() + static_cast<ptrdiff_t>(layer.inputs), all.end()),
                        candidates);
}

std::string json_of(const char* json) { return json; }

/// Keeps what a hone_node points to.
struct Attribute {
  hone_attribute raw = sized<hone_attribute>();
  std::string name, text;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::vector<const char*> pointers;

  /// By kind, a hone_attribute_kind.
  Attribute(std::string called, int kind, const nb::object& value) : name(std::move(called)) {
    raw.kind = static_cast<hone_attribute_kind>(kind);
    switch (raw.kind) {
      case HONE_ATTRIBUTE_INTEGER: raw.integer = nb::cast<int64_t>(value); break;
      case HONE_ATTRIBUTE_REAL: raw.real = nb::cast<float>(value); break;
      case HONE_ATTRIBUTE_TEXT: text = nb::cast<std::string>(value); break;
      case HONE_ATTRIBUTE_INTEGERS: integers = nb::cast<std::vector<int64_t>>(value); break;
      case HONE_ATTRIBUTE_REALS: reals = nb::cast<std::vector<float>>(value); break;
      case HONE_ATTRIBUTE_TEXTS: texts = nb::cast<std::vector<std::string>>(value); break;
      case HONE_ATTRIBUTE_TENSOR: raw.tensor = nb::cast<const Value&>(value).get(); break;
      case HONE_ATTRIBUTE_NETWORK: raw.network = nb::cast<const Network&>(value).get(); break;
    }
  }
  /// When the object stays where it is.
  hone_attribute pointed() {
    for (const std::string& each : texts) pointers.push_back(each.c_str());
    raw.name = name.c_str();
    raw.text = text.c_str();
    raw.integers = integers.data();
    raw.reals = reals.data();
    raw.texts = pointers.data();
    raw.count = std::max({integers.size(), reals.size(), texts.size()});
    return raw;
  }
};

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& each : texts) result.push_back(each.c_str());
  return result;
}

void add_node(const Network& network, const std::string& op, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const std::optional<std::string>& name,
              const std::optional<std::string>& domain,
              const std::vector<std::tuple<std::string, int, nb::object>>& given) {
  std::vector<Attribute> attributes;
  for (const auto& [called, kind, value] : given) attributes.emplace_back(called, kind, value);
  std::vector<hone_attribute> raw;
  for (Attribute& attribute : attributes) raw.push_back(attribute.pointed());
  const std::vector<const char*> in = pointers(inputs), out = pointers(outputs);
  auto node = sized<hone_node>();
  node.op = op.c_str();
  node.domain = domain ? domain->c_str() : nullptr;
  node.name = name ? name->c_str() : nullptr;
  node.inputs = in.data();
  node.input_count = in.size();
  node.outputs = out.data();
  node.output_count = out.size();
  node.attributes = raw.data();
  node.attribute_count = raw.size();
  check(hone_network_add_node(network.get(), &node));
}

void add_input(const Network& network, const std::string& name, int dtype, const std::vector<int64_t>& dims,
               const std::vector<std::optional<std::string>>& symbols) {
  std::vector<const char*> texts;
  for (const std::optional<std::string>& symbol : symbols) texts.push_back(symbol ? symbol->c_str() : nullptr);
  check(hone_network_add_input(network.get(), name.c_str(), static_cast<hone_dtype>(dtype), dims.data(),
                               static_cast<int>(dims.size()), texts.data()));
}

void add_options(nb::module_& module) {
  nb::class_<TimingCache>(module, "TimingCache", "Times of tactics.")
      .def("__init__",
           [](TimingCache* self, nb::bytes bytes) {
             new (self) TimingCache(TimingCache::make(hone_timing_cache_create, bytes.data(), bytes.size()));
           })
      .def(
          "merge",
          [](const TimingCache& self, const TimingCache& other) {
            check(hone_timing_cache_merge(self.get(), other.get()));
          },
          "Adds what is missing.")
      .def(
          "entries", [](const TimingCache& self) { return hone_timing_cache_entries(self.get()); }, "How many.")
      .def(
          "bytes",
          [](const TimingCache& self) {
            const void* bytes = nullptr;
            size_t size = 0;
            check(hone_timing_cache_bytes(self.get(), &bytes, &size));
            return nb::bytes(bytes, size);
          },
          "As a file would hold it.");

  nb::class_<Options>(module, "Options", "How to build.")
      .def("__init__",
           [](Options* self, const std::vector<std::string>& flags) { new (self) Options(options_of(flags)); })
      .def(
          "add_profile",
          [](const Options& self) {
            int profile = 0;
            check(hone_options_add_profile(self.get(), &profile));
            return profile;
          },
          "One more profile; its number.")
      .def("set_range", set_range, "The shapes of an input in a profile.")
      .def(
          "set_layer_type",
          [](const Options& self, const std::string& node, const std::string& type) {
            check(hone_options_set_layer_type(self.get(), node.c_str(), type.c_str()));
          },
          "What nodes compute in.")
      .def(
          "set_format",
          [](const Options& self, const std::string& tensor, const std::string& format) {
            check(hone_options_set_format(self.get(), tensor.c_str(), format.c_str()));
          },
          "How an input or output lies.")
      .def(
          "set_timing_cache",
          [](const Options& self, const TimingCache& cache) {
            check(hone_options_set_timing_cache(self.get(), cache.get()));
          },
          "Times are looked up there and added.")
      .def(
          "mark_debug",
          [](const Options& self, const std::string& tensor) {
            check(hone_options_mark_debug(self.get(), tensor.c_str()));
          },
          "The tensor can be read after each run.")
      .def(
          "set_note",
          [](const Options& self, const std::string& key, const std::string& text) {
            check(hone_options_set_note(self.get(), key.c_str(), text.c_str()));
          },
          "A text for those who load the plan.");
}

using WeightInfo = std::tuple<nb::object, nb::object, nb::object, bool, nb::object>;

std::vector<WeightInfo> weight_details(const Model& model) {
  std::vector<WeightInfo> result;
  for (size_t i = 0; i < hone_model_weights(model.get()); ++i) {
    auto raw = sized<hone_weight>();
    check(hone_model_weight_details(model.get(), i, &raw));
    result.emplace_back(text(raw.name), text(raw.node), text(raw.role), raw.missing != 0,
                        raw.refusal == nullptr ? nb::none() : text(raw.refusal));
  }
  return result;
}

void add_models(nb::module_& module) {
  nb::class_<Network>(module, "Network", "A network that a program puts together.")
      .def("__init__", [](Network* self, int opset) { new (self) Network(Network::make(hone_network_create, opset)); })
      .def("add_input", add_input, "An input; a size of -1 is dynamic and may have a symbol.")
      .def(
          "add_constant",
          [](const Network& self, const std::string& name, const Value& value) {
            check(hone_network_add_constant(self.get(), name.c_str(), value.get()));
          },
          "A tensor of numbers.")
      .def("add_node", add_node, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
           "An operator; attributes are (name, hone_attribute_kind, value).")
      .def(
          "mark_output",
          [](const Network& self, const std::string& tensor) {
            check(hone_network_mark_output(self.get(), tensor.c_str()));
          },
          "The tensor is an output.")
      .def(
          "bytes",
          [](const Network& self) {
            const void* bytes = nullptr;
            size_t size = 0;
            check(hone_network_bytes(self.get(), &bytes, &size));
            return nb::bytes(bytes, size);
          },
          "The network as an ONNX file.");

  nb::class_<Model>(module, "Model", "An ONNX model.")
      .def_static(
          "load",
          [](const std::string& path, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Model::make(hone_model_create_from_file, path.c_str(), lines.get());
          },
          nb::arg(), nb::arg().none(), nb::arg(), "Reads a file.")
      .def_static(
          "parse",
          [](nb::bytes bytes, const std::optional<std::string>& folder, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Model::make(hone_model_create_from_memory, bytes.data(), bytes.size(),
                               folder ? folder->c_str() : nullptr, lines.get());
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), "Reads the bytes of a file.")
      .def_static(
          "from_network",
          [](const Network& network, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Model::make(hone_model_create_from_network, static_cast<const hone_network*>(network.get()),
                               lines.get());
          },
          nb::arg(), nb::arg().none(), nb::arg(), "Reads a network.")
      .def(
          "tensors",
          [](const Model& self) {
            return tensors(hone_model_tensors(self.get()),
                           [&](size_t i, hone_tensor* t) { return hone_model_tensor(self.get(), i, t); });
          },
          "Inputs and outputs.")
      .def(
          "weights",
          [](const Model& self) {
            return tensors(hone_model_weights(self.get()),
                           [&](size_t i, hone_tensor* t) { return hone_model_weight(self.get(), i, t); });
          },
          "What set_weight() can exchange.")
      .def("weight_details", weight_details, "Of each weight: node, role, whether it is missing, why it stays.")
      .def(
          "weight_data",
          [](const Model& self, const std::string& name) {
            const void* data = nullptr;
            size_t bytes = 0;
            check(hone_model_weight_data(self.get(), name.c_str(), &data, &bytes));
            return nb::bytes(data, bytes);
          },
          "The contents of a weight.")
      .def_static(
          "from_plan",
          [](const Plan& plan) {
            return Model::make(hone_model_create_from_plan, static_cast<const hone_plan*>(plan.get()));
          },
          "The network that a plan keeps.")
      .def(
          "set_weight",
          [](const Model& self, const std::string& name, uintptr_t address, size_t bytes) {
            call(hone_model_set_weight, self.get(), name.c_str(), reinterpret_cast<const void*>(address), bytes);
          },
          "Other contents for a weight.");
}

void add_plans(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "A tuned engine as data.")
      .def(
          "refit",
          [](const Plan& self, const Model& model, const Device& device, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Plan::make(hone_plan_create_from_refit, static_cast<const hone_plan*>(self.get()),
                              static_cast<const hone_model*>(model.get()),
                              static_cast<const hone_device*>(device.get()), lines.get());
          },
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), "The plan with the weights of a model.")
      .def_static(
          "load", [](const std::string& path) { return Plan::make(hone_plan_create_from_file, path.c_str()); },
          "Reads a file.")
      .def_static(
          "parse", [](nb::bytes bytes) { return Plan::make(hone_plan_create_from_memory, bytes.data(), bytes.size()); },
          "Reads what bytes() gave.")
      .def(
          "tensors",
          [](const Plan& self) {
            return tensors(hone_plan_tensors(self.get()),
                           [&](size_t i, hone_tensor* t) { return hone_plan_tensor(self.get(), i, t); });
          },
          "Inputs and outputs.")
      .def(
          "note",
          [](const Plan& self, const std::string& key) -> std::optional<std::string> {
            const char* note = hone_plan_note(self.get(), key.c_str());
            return note == nullptr ? std::nullopt : std::optional<std::string>(note);
          },
          "What set_note() left under this name.")
      .def("ranges", ranges,
           "Per input of a profile whose sizes are not all fixed: its name, smallest, likeliest and "
           "largest shape.")
      .def(
          "save",
          [](const Plan& self, const std::string& path) {
            call(hone_plan_save, static_cast<const hone_plan*>(self.get()), path.c_str());
          },
          "Writes a file.")
      .def("bytes", bytes_of_plan, "What save() writes.")
      .def(
          "json",
          [](const Plan& self) {
            const char* json = nullptr;
            check(hone_plan_json(self.get(), &json));
            return json_of(json);
          },
          "The plan without its weights.")
      .def("describe", describe, "The members of hone_plan_info, in their order.")
      .def(
          "layers", [](const Plan& self, int profile) { return hone_plan_layers(self.get(), profile); },
          "How many layers a profile has.")
      .def("layer", layer_at, "A layer: members of hone_layer, its nodes, inputs, outputs and candidates.")
      .def(
          "layers_json",
          [](const Plan& self, int profile) {
            const char* json = nullptr;
            check(hone_plan_layers_json(self.get(), profile, &json));
            return json_of(json);
          },
          "As trtexec --exportLayerInfo writes them.");
}

}  // namespace

void add_building(nb::module_& module) {
  add_options(module);
  add_models(module);
  add_plans(module);
  module.def("build", build, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
             "The plan of a model.");
}

}  // namespace hone::python
