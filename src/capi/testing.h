// SPDX-License-Identifier: Apache-2.0
//
// A small network for tests of the C interface, and what a program makes of it. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "hone/graph.h"
#include "hone/tools.h"
#include "onnx/model_writer.h"

namespace hone::capi {

struct Destroy {
  void operator()(hone_device* object) const { hone_device_destroy(object); }
  void operator()(hone_options* object) const { hone_options_destroy(object); }
  void operator()(hone_model* object) const { hone_model_destroy(object); }
  void operator()(hone_plan* object) const { hone_plan_destroy(object); }
  void operator()(hone_engine* object) const { hone_engine_destroy(object); }
  void operator()(hone_context* object) const { hone_context_destroy(object); }
  void operator()(hone_buffer* object) const { hone_buffer_destroy(object); }
  void operator()(hone_stream* object) const { hone_stream_destroy(object); }
  void operator()(hone_event* object) const { hone_event_destroy(object); }
  void operator()(hone_value* object) const { hone_value_destroy(object); }
  void operator()(hone_network* object) const { hone_network_destroy(object); }
  void operator()(hone_benchmark* object) const { hone_benchmark_destroy(object); }
  void operator()(hone_check* object) const { hone_check_destroy(object); }
  void operator()(hone_diagnosis* object) const { hone_diagnosis_destroy(object); }
  void operator()(hone_reference* object) const { hone_reference_destroy(object); }
  void operator()(hone_graph* object) const { hone_graph_destroy(object); }
  void operator()(hone_timing_cache* object) const { hone_timing_cache_destroy(object); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, Destroy>;

inline void must(hone_status status) { ASSERT_EQ(status, HONE_OK) << hone_last_error() << "\n" << hone_last_hint(); }

/// Calls a function whose last argument receives the object that it makes; null, and a failure of the test, where it fails.
template <typename Object, typename... Parameters, typename... Arguments>
Owned<Object> make(hone_status (*function)(Parameters...), const Arguments&... arguments) {
  Object* object = nullptr;
  must(function(arguments..., &object));
  return Owned<Object>(object);
}

/// y = relu(x w) of x[n,4] and w[4,3], n from 1 to 64 in the options' profile. w counts from 1.
inline Blob perceptron() {
  using W = onnx::ModelWriter;
  std::string weights;
  for (int i = 0; i < 12; ++i) {
    const auto value = static_cast<float>(i + 1);
    weights.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return W::model(W::graph(
      {.nodes = {W::node("MatMul", {"x", "w"}, {"h"}, {}, "multiply"), W::node("Relu", {"h"}, {"y"}, {}, "clip")},
       .initializers = {W::raw_tensor("w", 1, {4, 3}, weights)},
       .inputs = {W::value("x", 1, {W::dim("n"), W::dim(4)})},
       .outputs = {W::value("y", 1, {W::dim("n"), W::dim(3)})}}));
}
inline float expected(const float* row, int column) {
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += row[k] * static_cast<float>(3 * k + column + 1);
  return std::max(sum, 0.0f);
}

/// The nonzero rows of x[n,4] and how many of its values they have: sizes that the data decide.
inline Blob counting() {
  using W = onnx::ModelWriter;
  return W::model(W::graph({.nodes = {W::node("NonZero", {"x"}, {"places"}, {}, "count")},
                            .initializers = {},
                            .inputs = {W::value("x", 1, {W::dim("n"), W::dim(4)})},
                            .outputs = {W::value("places", 7, {W::dim(2), W::dim("m")})}}));
}

/// A plan without timing.
inline Owned<hone_plan> plan_of(const Blob& model, const hone_device* device, std::vector<const char*> flags = {}) {
  for (const char* flag :
       {"--builderOptimizationLevel=0", "--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:64x4"})
    flags.push_back(flag);
  const auto options = make<hone_options>(hone_options_create, flags.data(), flags.size());
  const auto imported = make<hone_model>(hone_model_create_from_memory, model.data(), model.size(), nullptr, nullptr);
  return make<hone_plan>(hone_plan_create_from_model, imported.get(), device, options.get(), nullptr);
}

/// What running takes.
struct Loaded {
  Owned<hone_device> device;
  Owned<hone_plan> plan;
  Owned<hone_engine> engine;
};
inline Loaded load(const Blob& model, const char* device_name = "cpu", std::vector<const char*> flags = {}) {
  Loaded loaded;
  loaded.device = make<hone_device>(hone_device_create, device_name, nullptr);
  loaded.plan = plan_of(model, loaded.device.get(), std::move(flags));
  loaded.engine = make<hone_engine>(hone_engine_create, loaded.plan.get(), loaded.device.get(), nullptr);
  return loaded;
}

inline void set_rows(hone_context* context, int64_t rows) {
  const int64_t dims[] = {rows, 4};
  must(hone_context_set_shape(context, "x", dims, 2));
}

/// A context with its memory.
struct Running {
  Owned<hone_context> context;
  std::vector<float> x, y;
  explicit Running(const hone_engine* engine, int64_t rows = 2)
      : context(make<hone_context>(hone_context_create, engine, 0)), x(64 * 4), y(64 * 3) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 2;
    set_rows(context.get(), rows);
    must(hone_context_bind(context.get(), "x", x.data(), HONE_MEMORY_HOST));
    must(hone_context_bind(context.get(), "y", y.data(), HONE_MEMORY_HOST));
  }
  void expect_right(int64_t rows) const {
    for (int64_t row = 0; row < rows; ++row)
      for (int column = 0; column < 3; ++column)
        EXPECT_EQ(y[static_cast<size_t>(row * 3 + column)], expected(&x[static_cast<size_t>(row * 4)], column));
  }
};

}  // namespace hone::capi
