// SPDX-License-Identifier: Apache-2.0
//
// Operators that a program brings through hone.h: written in C's terms, in networks whose neighbours still fuse, in plans that are
// saved and loaded, and everything that can be wrong with them.
#include <atomic>
#include <functional>

#include "base/file.h"
#include "base/folder_testing.h"
#include "base/text.h"
#include "capi/operators/network_testing.h"
#include "capi/testing.h"

namespace hone::capi {
namespace {

using W = onnx::ModelWriter;

std::atomic<int> calls{0};
std::atomic<bool> saw_channels_last{false};

double real_of(const hone_call* call, std::string_view name) {
  for (size_t i = 0; i < call->attribute_count; ++i)
    if (name == call->attributes[i]->name) return call->attributes[i]->real;
  return 0;
}

int64_t count_of(const hone_operand& operand) {
  int64_t count = 1;
  for (int axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return count;
}

/// y = factor x, by way of the workspace.
hone_status scale(const hone_call* call) {
  ++calls;
  const hone_operand& x = *call->inputs[0];
  if (x.layout == HONE_LAYOUT_CHANNELS_LAST) saw_channels_last = true;
  const auto factor = static_cast<float>(real_of(call, "factor"));
  auto* work = static_cast<float*>(call->workspace);
  if (call->workspace_bytes < static_cast<size_t>(count_of(x)) * sizeof(float)) return HONE_INTERNAL;
  for (int64_t i = 0; i < count_of(x); ++i) work[i] = static_cast<const float*>(x.data)[i] * factor;
  std::memcpy(call->outputs[0]->data, work, static_cast<size_t>(count_of(x)) * sizeof(float));
  return HONE_OK;
}

hone_status fail(const hone_call* call) {
  std::snprintf(call->message, call->message_size, "the moon is in the wrong phase");
  return HONE_ERROR;
}

hone_attribute factor_of(float value) {
  hone_attribute attribute{};
  attribute.size = sizeof attribute;
  attribute.name = "factor";
  attribute.kind = HONE_ATTRIBUTE_REAL;
  attribute.real = value;
  return attribute;
}
const hone_attribute kFactor = factor_of(2);
const char* const kSameSizes[] = {"x0"};

hone_operator scale_operator() {
  hone_operator op{};
  op.size = sizeof op;
  op.domain = "com.acme";
  op.name = "Scale";
  op.version = 3;
  op.min_inputs = op.max_inputs = op.outputs = 1;
  op.output_sizes = kSameSizes;
  op.attributes = &kFactor;
  op.attribute_count = 1;
  op.workspace_size = "count(x0) * 4";
  op.run = scale;
  return op;
}

/// Registered while it lives.
class Registration {
 public:
  explicit Registration(const hone_operator& op) : domain_(op.domain == nullptr ? "" : op.domain), name_(op.name) {
    must(hone_operator_register(&op));
  }
  ~Registration() { hone_operator_unregister(domain_.c_str(), name_.c_str()); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  std::string domain_, name_;
};

/// y = relu(Scale(relu(x w))) of x[n,4].
Blob network(const std::vector<std::string>& attributes = {}, const std::string& op = "Scale") {
  return network_around(op, "scale", attributes);
}

void expect_scaled(const hone_engine* engine, float factor) {
  for (const int64_t rows : {2, 5, 2}) {
    Running running(engine, rows);
    for (int run = 0; run < 3; ++run) {
      must(hone_context_run(running.context.get()));
      for (int64_t row = 0; row < rows; ++row)
        for (int column = 0; column < 3; ++column)
          ASSERT_EQ(running.y[static_cast<size_t>(row * 3 + column)],
                    factor * expected(&running.x[static_cast<size_t>(row * 4)], column));
    }
  }
}

std::string failure(hone_status status, hone_status wanted = HONE_ERROR) {
  EXPECT_EQ(status, wanted) << hone_last_error();
  return std::string(hone_last_error()) + "\n" + hone_last_hint();
}

TEST(Operators, RunInPlansThatAreSavedAndLoadedAndLeaveTheirNeighboursFused) {
  const Registration registration(scale_operator());
  const Loaded loaded = load(network({W::real_attr("factor", 5)}));
  expect_scaled(loaded.engine.get(), 5);
  std::vector<std::string> layers;
  for (size_t i = 0; i < hone_plan_layers(loaded.plan.get(), 0); ++i) {
    hone_layer layer{};
    layer.size = sizeof layer;
    must(hone_plan_layer(loaded.plan.get(), 0, i, &layer));
    layers.push_back(fmt::format("{} {} {}", layer.name, layer.kind, layer.source));
  }
  ASSERT_EQ(layers.size(), 3u) << join(layers, "\n");
  EXPECT_EQ(layers[1], "scale Plugin custom");
  EXPECT_NE(layers[0].find("multiply + clip"), std::string::npos);

  const TestFolder folder;
  const std::string path = folder.file("p.plan");
  must(hone_plan_save(loaded.plan.get(), path.c_str()));
  const auto plan = make<hone_plan>(hone_plan_create_from_file, path.c_str());
  ASSERT_EQ(hone_plan_operators(plan.get()), 1u);
  hone_operator_info info{};
  info.size = sizeof info;
  must(hone_plan_operator(plan.get(), 0, &info));
  EXPECT_EQ(fmt::format("{} {} {} '{}'", info.domain, info.name, info.version, info.library), "com.acme Scale 3 ''");
  expect_scaled(make<hone_engine>(hone_engine_create, plan.get(), loaded.device.get(), nullptr).get(), 5);
}

TEST(Operators, AreTimedAndDefaultsStandInForAttributes) {
  const Registration registration(scale_operator());
  const auto device = make<hone_device>(hone_device_create, "cpu", nullptr);
  const Blob bytes = network();
  const auto model = make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
  const char* flags[] = {"--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:64x4"};
  const auto options = make<hone_options>(hone_options_create, flags, size_t{3});
  const auto plan = make<hone_plan>(hone_plan_create_from_model, model.get(), device.get(), options.get(), nullptr);
  hone_layer layer{};
  layer.size = sizeof layer;
  must(hone_plan_layer(plan.get(), 0, 1, &layer));
  EXPECT_GT(layer.tuned_ms, 0);
  expect_scaled(make<hone_engine>(hone_engine_create, plan.get(), device.get(), nullptr).get(), 2);
}

TEST(Operators, StayWithEnginesWhenTheyAreUnregistered) {
  auto registration = std::make_unique<Registration>(scale_operator());
  const Loaded loaded = load(network());
  const auto model = [&] {
    const Blob bytes = network();
    return make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
  }();
  registration.reset();
  expect_scaled(loaded.engine.get(), 2);
  hone_engine* none = nullptr;
  const std::string text = failure(hone_engine_create(loaded.plan.get(), loaded.device.get(), nullptr, &none));
  EXPECT_NE(text.find("the plan needs the operator com.acme::Scale, version 3"), std::string::npos) << text;
  EXPECT_NE(text.find("hone_operator_register()"), std::string::npos) << text;
  hone_operator newer = scale_operator();
  newer.version = 4;
  const Registration other(newer);
  const std::string version = failure(hone_engine_create(loaded.plan.get(), loaded.device.get(), nullptr, &none));
  EXPECT_NE(version.find("in version 3; registered is version 4"), std::string::npos) << version;
}

TEST(Operators, ThatFailOrAreWrongAreErrorsWithTheNodesName) {
  const auto message = [](const hone_operator& op, hone_status (*step)(const Loaded&)) {
    const Registration registration(op);
    return failure(step(load(network())));
  };
  hone_operator op = scale_operator();
  op.run = fail;
  const std::string run = message(op, [](const Loaded& loaded) {
    Running running(loaded.engine.get());
    return hone_context_run(running.context.get());
  });
  EXPECT_NE(run.find("com.acme::Scale failed: the moon is in the wrong phase"), std::string::npos) << run;
  EXPECT_NE(run.find("running node scale"), std::string::npos) << run;

  const auto import = [](const hone_operator& wrong, const Blob& bytes) {
    const Registration registration(wrong);
    hone_model* none = nullptr;
    return failure(hone_model_create_from_memory(bytes.data(), bytes.size(), nullptr, nullptr, &none));
  };
  op = scale_operator();
  const char* beyond[] = {"x0[7]"};
  op.output_sizes = beyond;
  EXPECT_NE(import(op, network()).find("importing node scale"), std::string::npos);
  op = scale_operator();
  op.output_sizes = nullptr;
  op.sizes = [](const hone_call* call) {
    call->outputs[0]->rank = 99;
    return HONE_OK;
  };
  EXPECT_NE(import(op, network()).find("it gives result 0 the rank 99"), std::string::npos) << hone_last_error();
  op.sizes = [](const hone_call*) -> hone_status { throw std::runtime_error("thrown"); };
  EXPECT_NE(import(op, network()).find("failed: thrown"), std::string::npos) << hone_last_error();
  op = scale_operator();
  const uint32_t types = 1u << HONE_I8;
  op.input_types = &types;
  op.input_type_count = 1;
  EXPECT_NE(import(op, network()).find("operand 0 of com.acme::Scale is f32; it takes i8"), std::string::npos);
  EXPECT_NE(import(scale_operator(), network({W::integers_attr("factor", {1})})).find("wrong kind"), std::string::npos);
  EXPECT_NE(import(scale_operator(), network({}, "Other")).find("--staticPlugins"), std::string::npos);
}

/// Relu of x[1,3,4,5] through com.acme::Scale and back, as an image's layers are.
Blob image(const std::string& domain, const std::string& op) {
  std::string weights(3 * 3 * sizeof(float), '\0');
  for (int i = 0; i < 3; ++i) reinterpret_cast<float*>(weights.data())[i * 4] = 1;
  return W::model(W::graph(
      {.nodes = {W::node("Conv", {"x", "w"}, {"c"}, {}, "conv"), W::node(op, {"c"}, {"s"}, {}, "scale", domain),
                 W::node("Conv", {"s", "w"}, {"y"}, {}, "conv2")},
       .initializers = {W::raw_tensor("w", 1, {3, 3, 1, 1}, weights)},
       .inputs = {W::value("x", 1, {W::dim(1), W::dim(3), W::dim(4), W::dim(5)})},
       .outputs = {W::value("y", 1, {W::dim(1), W::dim(3), W::dim(4), W::dim(5)})}}));
}

/// What the network makes of 1, 2, 3, ... over that many.
std::vector<float> run_image(const Blob& bytes) {
  const auto device = make<hone_device>(hone_device_create, "cpu", nullptr);
  const auto model = make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
  const auto plan = make<hone_plan>(hone_plan_create_from_model, model.get(), device.get(), nullptr, nullptr);
  const auto engine = make<hone_engine>(hone_engine_create, plan.get(), device.get(), nullptr);
  const auto context = make<hone_context>(hone_context_create, engine.get(), 0);
  std::vector<float> x(60), y(60);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  must(hone_context_bind(context.get(), "x", x.data(), HONE_MEMORY_HOST));
  must(hone_context_bind(context.get(), "y", y.data(), HONE_MEMORY_HOST));
  must(hone_context_run(context.get()));
  return y;
}

TEST(Operators, TakeImagesAsTheirNeighboursHaveThem) {
  hone_operator op = scale_operator();
  op.layouts = 1u << HONE_LAYOUT_LINEAR | 1u << HONE_LAYOUT_CHANNELS_LAST;
  const Registration registration(op);
  saw_channels_last = false;
  const std::vector<float> y = run_image(image("com.acme", "Scale"));
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * static_cast<float>(i));
  EXPECT_TRUE(saw_channels_last) << "both layouts are tried";
}

TEST(Operators, TakeThePlaceOfHonesOwnWhereTheySaySo) {
  hone_operator op = scale_operator();
  op.domain = nullptr;
  op.name = "Identity";
  for (const unsigned flags : {0u, unsigned{HONE_OPERATOR_REPLACES}}) {
    op.flags = flags;
    const Registration registration(op);
    EXPECT_EQ(run_image(image("", "Identity"))[7], flags == 0 ? 7 : 14);
  }
}

TEST(Operators, AreCalledForConstantsOnlyIfTheySaySo) {
  const Blob bytes = W::model(W::graph(
      {.nodes = {W::node("Scale", {"c"}, {"s"}, {}, "scale", "com.acme"), W::node("Add", {"x", "s"}, {"y"}, {}, "add")},
       .initializers = {W::raw_tensor("c", 1, {1}, std::string(4, '\0'))},
       .inputs = {W::value("x", 1, {W::dim(3)})},
       .outputs = {W::value("y", 1, {W::dim(3)})}}));
  for (const unsigned flags : {0u, unsigned{HONE_OPERATOR_FOLDABLE}}) {
    hone_operator op = scale_operator();
    op.flags = flags;
    const Registration registration(op);
    const auto device = make<hone_device>(hone_device_create, "cpu", nullptr);
    const auto model = make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
    const char* level[] = {"--builderOptimizationLevel=0"};
    const auto options = make<hone_options>(hone_options_create, level, size_t{1});
    calls = 0;
    const auto plan = make<hone_plan>(hone_plan_create_from_model, model.get(), device.get(), options.get(), nullptr);
    EXPECT_EQ(calls, flags == 0 ? 0 : 1);
    EXPECT_EQ(hone_plan_operators(plan.get()), flags == 0 ? 1u : 0u) << "what was folded needs no operator any more";
  }
}

TEST(Operators, DescriptionsThatContradictThemselvesAreRefused) {
  const auto refused = [](const std::function<void(hone_operator&)>& change) {
    hone_operator op = scale_operator();
    change(op);
    EXPECT_NE(hone_operator_register(&op), HONE_OK);
    EXPECT_EQ(hone_operators(), 0u);
    return std::string(hone_last_error());
  };
  EXPECT_NE(refused([](auto& op) { op.run = nullptr; }).find("none of"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.outputs = 0; }).find("outputs"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.output_sizes = nullptr; }).find("nothing says the sizes"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.min_inputs = 2; }).find("inputs"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.name = "a b"; }).find("'a b'"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.flags = 1u << 31; }).find("flags"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.layouts = 8; }).find("layouts"), std::string::npos);
  EXPECT_NE(refused([](auto& op) { op.cuda_source = "x"; }).find("cuda_kernel"), std::string::npos);
  const int type = HONE_TYPE_OF_INPUT(4);
  EXPECT_NE(refused([&](auto& op) { op.output_types = &type; }).find("input 4"), std::string::npos);
  const Registration registration(scale_operator());
  const hone_operator again = scale_operator();
  EXPECT_NE(failure(hone_operator_register(&again)).find("there is the operator com.acme::Scale, version 3"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::capi
