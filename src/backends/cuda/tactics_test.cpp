// SPDX-License-Identifier: Apache-2.0
//
// Every tactic of every source of this backend against the meaning of the region, on the card. Skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <future>

#include "backends/cuda/libraries.h"
#include "backends/cuda/region_samples.h"
#include "backends/cuda/sources.h"
#include "tensor/layout.h"

namespace hone::cuda {
namespace {

constexpr uint64_t kSeed = 7;

double tolerance_of(DType dtype) { return dtype == DType::f32 ? 2e-4 : dtype == DType::f16 ? 4e-3 : 3e-2; }

/// Device memory that holds a host tensor in some layout, with a fence behind it.
class DeviceTensor {
 public:
  DeviceTensor(CudaDevice& device, Stream& stream, const ConcreteType& type)
      : device_(device), stream_(stream), type_(type), buffer_(device, bytes() + kFence) {
    AlignedBuffer pattern(bytes() + kFence);
    std::memset(pattern.data(), 0x7e, pattern.size());
    write(pattern.data(), pattern.size());
  }
  void fill(const Tensor& tensor) {
    const AlignedBuffer raw(std::max<size_t>(bytes(), 1));
    convert_layout(tensor.bytes().data(), raw.data(), type_.dtype, type_.dims, Layout::linear, type_.layout);
    write(raw.data(), bytes());
  }
  Tensor read() {
    const AlignedBuffer raw(bytes() + kFence);
    device_.copy(raw.data(), buffer_.data(), raw.size(), stream_);
    stream_.synchronize();
    for (size_t i = bytes(); i < raw.size(); ++i) EXPECT_EQ(raw.data()[i], std::byte{0x7e}) << "written behind the end";
    TensorBuilder result(type_.dtype, type_.dims);
    convert_layout(raw.data(), result.bytes(), type_.dtype, type_.dims, type_.layout, Layout::linear);
    return result.finish();
  }
  void* data() const { return buffer_.data(); }

 private:
  static constexpr size_t kFence = 256;
  size_t bytes() const { return static_cast<size_t>(type_.bytes()); }
  void write(const void* from, size_t count) {
    device_.copy(buffer_.data(), from, count, stream_);
    stream_.synchronize();
  }
  CudaDevice& device_;
  Stream& stream_;
  ConcreteType type_;
  Buffer buffer_;
};

void expect_close(const Tensor& expected, const Tensor& found, double tolerance) {
  double difference = 0, norm = 1e-30;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double want = expected.real(i), have = found.real(i);
    ASSERT_TRUE(std::isnan(want) || !std::isnan(have)) << "element " << i << " is NaN, not " << want;
    difference += (want - have) * (want - have);
    norm += want * want;
  }
  EXPECT_LE(std::sqrt(difference / norm), is_float(expected.dtype()) ? tolerance : 0);
}

KernelShapes shapes_of(const Graph& region, const Tactic& tactic, const SymbolValues& symbols) {
  KernelShapes shapes;
  for (size_t i = 0; i < tactic.in.size(); ++i)
    shapes.inputs.push_back({region.inputs()[i]->type.dtype, region.inputs()[i]->type.shape.values(), tactic.in[i]});
  for (size_t i = 0; i < tactic.out.size(); ++i)
    shapes.outputs.push_back(
        {region.outputs()[i]->type.dtype, region.outputs()[i]->type.shape.values(), tactic.out[i]});
  shapes.symbols = symbols;
  return shapes;
}

/// One inference at a size; three replays: launches, a capture, the graph again.
void run_tactic(CudaDevice& device, std::string_view source, const Compiled& compiled, const Tactic& tactic,
                const Graph& region, const SymbolValues& symbols, double tolerance) {
  const KernelShapes shapes = shapes_of(region, tactic, symbols);
  const std::unique_ptr<Stream> stream = device.stream();
  Launch launch;
  launch.kernel = load(device, source, compiled.code, shapes);
  const std::vector<Tensor> values = random_inputs(region, kSeed);
  std::deque<DeviceTensor> inputs, outputs, constants;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.emplace_back(device, *stream, shapes.inputs[i]).fill(values[i]);
    launch.inputs.push_back(inputs.back().data());
  }
  for (const ConcreteType& type : shapes.outputs)
    launch.outputs.push_back(outputs.emplace_back(device, *stream, type).data());
  for (const Tensor& constant : compiled.constants) {
    constants.emplace_back(device, *stream, ConcreteType{constant.dtype(), constant.dims()}).fill(constant);
    launch.constants.push_back(constants.back().data());
  }
  const Buffer workspace(device, launch.kernel->workspace_bytes());
  launch.workspace = workspace.data();
  const std::unique_ptr<Recording> recording = device.record({launch, launch});
  for (int replay = 0; replay < 3; ++replay) recording->replay(*stream);
  stream->synchronize();
  const std::vector<Tensor> expected = evaluate(region, values);
  for (size_t i = 0; i < outputs.size(); ++i) expect_close(expected[i], outputs[i].read(), tolerance);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor kept = inputs[i].read();
    EXPECT_TRUE(kept.bytes().empty() ||
                std::memcmp(kept.bytes().data(), values[i].bytes().data(), kept.bytes().size()) == 0)
        << "changes its input";
  }
}

/// One source, one type, one region (its number) at a time, so that a sanitizer can be given our own kernels without the
/// libraries', in several processes.
class CudaTactics : public testing::TestWithParam<std::tuple<const TacticSource*, DType, size_t>> {};

/// Every offer of a source for a region, compiled at N = 2 and run at `sizes`; returns how many there were.
int try_all(CudaDevice& device, const TacticSource& source, const Graph& symbolic, const std::vector<int64_t>& sizes,
            double tolerance) {
  SCOPED_TRACE(print(symbolic));
  Problem problem = sample_problem(symbolic, 2, device.info());
  problem.allowed.tf32 = false;
  Candidates candidates;
  source.propose(problem, candidates);
  std::vector<std::future<Compiled>> compiling;
  for (const Tactic& tactic : candidates.offers())
    compiling.push_back(std::async(source.compiles_slowly() ? std::launch::async : std::launch::deferred,
                                   [&] { return source.compile(problem, tactic); }));
  int tried = 0;
  for (size_t i = 0; i < compiling.size(); ++i) {
    const Tactic& tactic = candidates.offers()[i];
    SCOPED_TRACE(tactic.text());
    try {
      const Compiled compiled = compiling[i].get();
      for (const int64_t n : sizes)
        run_tactic(device, source.name(), compiled, tactic, symbolic.specialize({{"N", n}}), {{"N", n}}, tolerance);
      ++tried;
    } catch (const Error& error) {
      // A library may find out late that an engine does not serve; Hone's own kernels may not.
      if (&source == &cuda::source()) ADD_FAILURE() << error.what();
    }
  }
  return tried;
}

TEST_P(CudaTactics, AgreeWithTheMeaningOfTheRegion) {
  const auto& [source, dtype, number] = GetParam();
  if (device_count() == 0) GTEST_SKIP() << "there is no card: " << driver_library().missing;
  if (source == &cudnn_source() && !cudnn_library().found()) GTEST_SKIP() << cudnn_library().missing;
  if (source == &cublaslt_source() && !cublaslt_library().found()) GTEST_SKIP() << cublaslt_library().missing;
  static CudaDevice device(0);
  const std::string_view text = kRegionSamples[number];
  const Graph symbolic = region_sample(text, dtype);
  const int tried = try_all(device, *source, symbolic, {2, 3}, tolerance_of(dtype)) +
                    try_all(device, *source, symbolic.specialize({{"N", 2}}), {2}, tolerance_of(dtype));
  // Batched products are cuBLASLt's, in f32 all products are the libraries'; for all else there is a kernel of ours.
  const TacticSource* certain = text.find("MatMul") == std::string_view::npos ? &cuda::source() : &cublaslt_source();
  const bool f32_product = dtype == DType::f32 && text.find("Linear(") != std::string_view::npos;
  EXPECT_TRUE(tried > 0 || source != certain || f32_product);
}

std::string name_of_case(const testing::TestParamInfo<CudaTactics::ParamType>& info) {
  const auto& [source, dtype, number] = info.param;
  return fmt::format("{}_{}_{}", source->name(), name_of(dtype), number);
}

INSTANTIATE_TEST_SUITE_P(Sources, CudaTactics,
                         testing::Combine(testing::Values(&cudnn_source(), &cublaslt_source(), &cuda::source()),
                                          testing::Values(DType::f32, DType::f16, DType::bf16),
                                          testing::Range<size_t>(0, std::size(kRegionSamples))),
                         name_of_case);

}  // namespace
}  // namespace hone::cuda
