// SPDX-License-Identifier: Apache-2.0
//
// The C interface's check of an engine.
#include <array>

#include "capi/guard.h"
#include "capi/handles.h"
#include "perf/consistency.h"
#include "tensor/layout.h"

using hone::StateError;
using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

namespace {

constexpr int kSets = 2, kMostShapes = 1024, kMostInferences = 1'000'000;
using Values = std::map<std::string, hone::Tensor>;

}  // namespace

struct hone_check : hone::capi::Handle<hone::capi::Kind::check> {
  std::shared_ptr<const hone::Engine> engine;
  int profile = 0;
  std::vector<std::array<Values, kSets>> values;  // by shapes
  hone::Consistency found;
};

namespace {

int checked_set(int set) {
  if (set < 0 || set >= kSets) throw ArgumentError(fmt::format("set is {}, there are 0 and 1", set));
  return set;
}

/// The value as it is bound.
hone::Buffer laid_out(const hone_check& check, const hone::IoTensor& io, const hone::Tensor& value) {
  const auto bytes = static_cast<size_t>(hone::byte_size(io.type.dtype, value.dims(), io.type.layout));
  hone::Buffer buffer(check.engine->device(), std::max<size_t>(bytes, 1), hone::MemoryKind::host);
  if (buffer.data() == nullptr) throw std::bad_alloc();
  std::memset(buffer.data(), 0, buffer.size());
  hone::convert_layout(value.bytes().data(), static_cast<std::byte*>(buffer.data()), io.type.dtype, value.dims(),
                       hone::Layout::linear, io.type.layout);
  return buffer;
}

hone::NetworkInputs inputs_of(const hone_check& check, const std::array<Values, kSets>& values) {
  hone::NetworkInputs inputs;
  for (const Values& set : values) {
    auto& buffers = inputs.sets.emplace_back();
    for (const hone::IoTensor& io : check.engine->plan().io) {
      if (!io.is_input || check.engine->by_value(io.name)) continue;
      const auto found = set.find(io.name);
      if (found == set.end())
        throw StateError(fmt::format("input {} has no value", io.name),
                         "call hone_check_set_input() for both sets of all shapes");
      if (!io.type.shape.is_static()) {
        const auto [at, fresh] = inputs.shapes.try_emplace(io.name, found->second.dims());
        HONE_CHECK(fresh || at->second == found->second.dims(), "the values of {} have different sizes", io.name);
      }
      buffers.emplace(io.name, laid_out(check, io, found->second));
    }
  }
  return inputs;
}

}  // namespace

hone_status hone_check_create(const hone_engine* engine, int profile, hone_check** check) {
  return guarded([&] {
    require(engine, "engine");
    require(check, "check");
    if (profile < 0) throw ArgumentError(fmt::format("profile is {}", profile));
    require_index(static_cast<size_t>(profile), engine->engine->plan().profiles.size(), "profile");
    auto made = std::make_unique<hone_check>();
    made->engine = engine->engine;
    made->profile = profile;
    *check = made.release();
  });
}

hone_status hone_check_set_input(hone_check* check, int shapes, int set, const char* input, const hone_value* value) {
  return guarded([&] {
    require(check, "check");
    require(input, "input");
    require(value, "value");
    if (shapes < 0 || shapes >= kMostShapes)
      throw ArgumentError(fmt::format("shapes is {}, there may be 0 to {}", shapes, kMostShapes - 1));
    checked_set(set);
    const std::vector<hone::IoTensor>& io = check->engine->plan().io;
    const auto found = std::ranges::find(io, std::string_view(input), &hone::IoTensor::name);
    HONE_CHECK(found != io.end() && found->is_input, "the engine has no input called '{}'", input);
    HONE_CHECK(found->type.dtype == value->tensor.dtype() && !hone::is_object(found->type.dtype),
               "input {} holds {}, the value {}", input, found->type.text(), value->tensor.type().text());
    HONE_CHECK(found->type.shape.rank() == value->tensor.dims().size() &&
                   (!found->type.shape.is_static() || found->type.shape.values() == value->tensor.dims()),
               "input {} is {}, the value {}", input, found->type.text(), value->tensor.type().text());
    if (check->values.size() <= static_cast<size_t>(shapes)) check->values.resize(static_cast<size_t>(shapes) + 1);
    check->values[static_cast<size_t>(shapes)][static_cast<size_t>(set)].insert_or_assign(input, value->tensor);
  });
}

hone_status hone_check_run(hone_check* check, int inferences) {
  return guarded([&] {
    require(check, "check");
    if (inferences < 2 || inferences > kMostInferences)
      throw ArgumentError(fmt::format("inferences is {}, not 2 to {}", inferences, kMostInferences));
    if (check->values.empty()) check->values.resize(1);
    std::vector<hone::NetworkInputs> inputs;
    for (const auto& values : check->values) inputs.push_back(inputs_of(*check, values));
    hone::Consistency found;
    hone::capi::on_cores(check->engine->device(),
                         [&] { found = hone::check_consistency(check->engine, check->profile, inputs, inferences); });
    check->found = std::move(found);
  });
}

size_t hone_check_situations(const hone_check* check) {
  size_t count = 0;
  guarded([&] {
    require(check, "check");
    count = check->found.situations.size();
  });
  return count;
}

hone_status hone_check_situation(const hone_check* check, size_t index, hone_situation* situation) {
  return guarded([&] {
    require(check, "check");
    require_index(index, check->found.situations.size(), "situation");
    const hone::Situation& known = check->found.situations[index];
    hone::capi::fill(situation, "situation",
                     hone_situation{.name = known.name.c_str(),
                                    .inferences = known.inferences,
                                    .different = known.different,
                                    .largest = known.largest,
                                    .tensor = known.tensor.c_str()});
  });
}

hone_status hone_value_create_from_check(const hone_check* check, int set, const char* output, hone_value** value) {
  return guarded([&] {
    require(check, "check");
    require(output, "output");
    require(value, "value");
    checked_set(set);
    if (check->found.first.empty()) throw StateError("the check has not run", "call hone_check_run() first");
    const Values& outputs = check->found.first[static_cast<size_t>(set)];
    const auto found = outputs.find(output);
    HONE_CHECK(found != outputs.end(), "there is no output called '{}' that has bytes", output);
    *value = new hone_value(found->second);
  });
}

void hone_check_destroy(hone_check* check) { hone::capi::destroy(check, "check"); }
