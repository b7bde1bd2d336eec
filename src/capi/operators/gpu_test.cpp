// SPDX-License-Identifier: Apache-2.0
//
// The three ways in which an operator of a program runs on a GPU, in networks whose neighbours are Hone's kernels: first inference,
// later ones (which replay graphs), other shapes, a plan from a file. Skipped where there is no GPU.
#include <dlfcn.h>

#include <cmath>
#include <numeric>

#include "base/folder_testing.h"
#include "capi/operators/network_testing.h"
#include "capi/testing.h"

namespace hone::capi {
namespace {

using W = onnx::ModelWriter;

/// y = |−Shift(relu(x w))| with com.acme::Shift(v) = v + by.
Blob network() { return network_around("Shift", "shift", {W::real_attr("by", 0.5f)}); }

int64_t count_of(const hone_operand& operand) {
  return std::accumulate(operand.dims, operand.dims + operand.rank, int64_t{1}, std::multiplies());
}

hone_status on_host(const hone_call* call) {
  if (call->stream != nullptr) return HONE_INTERNAL;
  for (int64_t i = 0; i < count_of(*call->inputs[0]); ++i)
    static_cast<float*>(call->outputs[0]->data)[i] = static_cast<const float*>(call->inputs[0]->data)[i] + 0.5f;
  return HONE_OK;
}

/// Copies, and so leaves the 0.5 out: which function ran is seen in the result.
hone_status on_device(const hone_call* call) {
  using Copy = int (*)(unsigned long long, unsigned long long, size_t, void*);
  static const auto copy = reinterpret_cast<Copy>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyDtoDAsync_v2"));
  const auto bytes = static_cast<size_t>(count_of(*call->inputs[0])) * sizeof(float);
  return copy(reinterpret_cast<uintptr_t>(call->outputs[0]->data), reinterpret_cast<uintptr_t>(call->inputs[0]->data),
              bytes, call->stream) == 0
             ? HONE_OK
             : HONE_ERROR;
}

constexpr const char* kKernel = R"(
extern "C" __global__ void shift(const x0_t* x, y0_t* y, float* work, hone_sizes sizes) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= sizes.y0.count || sizes.x0.rank != 2 || sizes.x0.dims[1] != 3) return;
  work[i] = x[i];
  y[i] = hone::convert<y0_t>(work[i] + (float)attribute::by);
})";
const char* const kSizes[] = {"x0"};

hone_operator shift_operator() {
  hone_operator op{};
  op.size = sizeof op;
  op.domain = "com.acme";
  op.name = "Shift";
  op.min_inputs = op.max_inputs = op.outputs = 1;
  op.output_sizes = kSizes;
  return op;
}
hone_operator shift_as_kernel() {
  hone_operator op = shift_operator();
  op.cuda_source = kKernel;
  op.cuda_kernel = "shift";
  op.cuda_blocks = "(count(y0) + 63) / 64";
  op.cuda_threads = 64;
  op.workspace_size = "count(x0) * 4";
  return op;
}

class OperatorsOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    hone_device* device = nullptr;
    if (hone_device_create("cuda", nullptr, &device) != HONE_OK) GTEST_SKIP() << hone_last_error();
    device_.reset(device);
  }
  void TearDown() override { hone_operator_unregister("com.acme", "Shift"); }

  Owned<hone_plan> plan(std::vector<const char*> flags = {}) {
    const TestFolder folder;
    const std::string path = folder.file("p.plan");
    const Blob bytes = network();
    must(hone_plan_save(plan_of(bytes, device_.get(), std::move(flags)).get(), path.c_str()));
    return make<hone_plan>(hone_plan_create_from_file, path.c_str());
  }
  static std::string source_of_shift(const hone_plan* plan) {
    for (size_t i = 0; i < hone_plan_layers(plan, 0); ++i) {
      hone_layer layer{};
      layer.size = sizeof layer;
      must(hone_plan_layer(plan, 0, i, &layer));
      if (std::string_view(layer.name) == "shift") return fmt::format("{}.{}", layer.source, layer.tactic);
    }
    return "nothing";
  }
  void expect_shifted(const hone_plan* plan, float by) {
    const auto engine = make<hone_engine>(hone_engine_create, plan, device_.get(), nullptr);
    for (const int64_t rows : {2, 50, 3}) {
      Running running(engine.get(), rows);
      for (int run = 0; run < 5; ++run) {
        std::ranges::fill(running.y, -1.0f);
        running.x[0] = static_cast<float>(run);
        must(hone_context_run(running.context.get()));
        for (int64_t row = 0; row < rows; ++row)
          for (int column = 0; column < 3; ++column)
            ASSERT_NEAR(running.y[static_cast<size_t>(row * 3 + column)],
                        expected(&running.x[static_cast<size_t>(row * 4)], column) + by, 0.05)
                << rows << " rows, run " << run;
      }
    }
  }
  Owned<hone_device> device_;
};

TEST_F(OperatorsOnAGpu, CudaSourceTextBecomesAKernelThatThePlanKeeps) {
  const hone_operator op = shift_as_kernel();
  must(hone_operator_register(&op));
  const auto made = plan();
  EXPECT_EQ(source_of_shift(made.get()), "custom.kernel");
  expect_shifted(made.get(), 0.5f);
}

TEST_F(OperatorsOnAGpu, AFunctionOnDevicePointersRunsInTheStream) {
  for (const unsigned flags : {0u, unsigned{HONE_OPERATOR_CAPTURABLE}}) {
    hone_operator op = shift_operator();
    op.flags = flags;
    op.run_on_device = on_device;
    must(hone_operator_register(&op));
    const auto made = plan();
    EXPECT_EQ(source_of_shift(made.get()), "custom.device");
    expect_shifted(made.get(), 0);
    must(hone_operator_unregister("com.acme", "Shift"));
  }
}

TEST_F(OperatorsOnAGpu, WithoutEitherItRunsOnTheHost) {
  hone_operator op = shift_operator();
  op.run = on_host;
  must(hone_operator_register(&op));
  const auto made = plan();
  EXPECT_EQ(source_of_shift(made.get()), "reference.evaluate");
  expect_shifted(made.get(), 0.5f);
}

TEST_F(OperatorsOnAGpu, TacticsAreTimedAndHeldAgainstTheFunctionForTheHost) {
  hone_operator op = shift_as_kernel();
  op.run = on_host;
  op.run_on_device = on_device;  // another result: rejected
  op.flags = HONE_OPERATOR_CAPTURABLE;
  must(hone_operator_register(&op));
  const Blob bytes = network();
  const auto model = make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
  const char* flags[] = {"--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:64x4"};
  const auto options = make<hone_options>(hone_options_create, flags, std::size(flags));
  const auto made = make<hone_plan>(hone_plan_create_from_model, model.get(), device_.get(), options.get(), nullptr);
  EXPECT_EQ(source_of_shift(made.get()), "custom.kernel");
  expect_shifted(made.get(), 0.5f);
}

TEST_F(OperatorsOnAGpu, OnlyWhatMayBeCapturedIs) {
  hone_operator op = shift_operator();
  op.run_on_device = on_device;
  must(hone_operator_register(&op));
  const auto engine = make<hone_engine>(hone_engine_create, plan().get(), device_.get(), nullptr);
  Running running(engine.get(), 2);
  must(hone_context_run(running.context.get()));
  std::string text;
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  const auto stream_create = reinterpret_cast<int (*)(void**, unsigned)>(dlsym(cuda, "cuStreamCreate"));
  const auto begin = reinterpret_cast<int (*)(void*, int)>(dlsym(cuda, "cuStreamBeginCapture_v2"));
  const auto end = reinterpret_cast<int (*)(void*, void**)>(dlsym(cuda, "cuStreamEndCapture"));
  void *native = nullptr, *graph = nullptr;
  ASSERT_EQ(stream_create(&native, 1), 0);
  const auto stream = make<hone_stream>(hone_stream_create_from_native, device_.get(), native);
  const auto x = make<hone_buffer>(hone_buffer_create, device_.get(), HONE_MEMORY_DEVICE, size_t{4096});
  const auto y = make<hone_buffer>(hone_buffer_create, device_.get(), HONE_MEMORY_DEVICE, size_t{4096});
  must(hone_context_bind(running.context.get(), "x", hone_buffer_data(x.get()), HONE_MEMORY_DEVICE));
  must(hone_context_bind(running.context.get(), "y", hone_buffer_data(y.get()), HONE_MEMORY_DEVICE));
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_synchronize(stream.get()));
  ASSERT_EQ(begin(native, 2), 0);
  EXPECT_NE(hone_context_enqueue(running.context.get(), stream.get()), HONE_OK);
  EXPECT_NE(std::string(hone_last_error()).find("may not be captured"), std::string::npos) << hone_last_error();
  end(native, &graph);
}

TEST_F(OperatorsOnAGpu, SourceTextThatDoesNotCompileIsAnErrorWithTheCompilersWords) {
  hone_operator op = shift_as_kernel();
  op.cuda_source = "extern \"C\" __global__ void shift() { nonsense; }";
  must(hone_operator_register(&op));
  const Blob bytes = network();
  const auto model = make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
  const char* flags[] = {"--builderOptimizationLevel=0", "--minShapes=x:1x4", "--optShapes=x:8x4",
                         "--maxShapes=x:64x4"};
  const auto options = make<hone_options>(hone_options_create, flags, std::size(flags));
  hone_plan* none = nullptr;
  EXPECT_EQ(hone_plan_create_from_model(model.get(), device_.get(), options.get(), nullptr, &none), HONE_ERROR);
  const std::string text = hone_last_error();
  EXPECT_NE(text.find("com.acme::Shift cannot be compiled"), std::string::npos) << text;
  EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone::capi
