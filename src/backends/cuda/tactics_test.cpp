// SPDX-License-Identifier: Apache-2.0
//
// Every tactic of every source of this backend against the meaning of the region, on the GPU, between kernels of ours. Skipped
// where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <future>

#include "backends/cuda/run/libraries.h"
#include "backends/cuda/run/recording.h"
#include "backends/cuda/run/sources.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/parameters.h"
#include "backends/cuda/support/source_text.h"
#include "device/coverage_testing.h"
#include "ops/ops.h"
#include "regions/matmul_region.h"
#include "tensor/layout.h"

namespace hone::cuda {
namespace {

constexpr uint64_t kSeed = 7;

/// Where sums are rounded to steps, one that lies between two may fall to the other.
/// Of numbers of E4M3 one beside the middle of two that goes elsewhere is off by a fifteenth.
/// Tensor cores add up products of E4M3 in fewer digits than a float has.
double tolerance_of(DType dtype, bool rounds, bool reads_float8, bool rounds_to_float8) {
  if (rounds_to_float8) return dtype == DType::bf16 ? 5e-2 : 2e-2;
  if (reads_float8 && dtype == DType::f32) return 1e-3;
  return dtype == DType::bf16 ? 3e-2 : dtype == DType::f16 || rounds ? 4e-3 : 2e-4;
}

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
  void poison() { device_.fill(buffer_.data(), kPoison, bytes(), stream_); }
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

void expect_close(const Tensor& expected, const Tensor& found, double tolerance, bool encoded) {
  ASSERT_EQ(expected.dims(), found.dims());
  double difference = 0, norm = 1e-30;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double want = expected.real(i), have = found.real(i);
    ASSERT_EQ(std::isnan(want), std::isnan(have)) << "element " << i << " is " << have << ", not " << want;
    if (std::isnan(want)) continue;
    difference += (want - have) * (want - have);
    norm += want * want;
  }
  EXPECT_LE(std::sqrt(difference / norm), is_float(expected.dtype()) || encoded ? tolerance : 0);
}

/// Our own kernel that hands an operand on: it lets the launch behind it begin, and then takes its time.
constexpr std::string_view kHandOn = R"(
extern "C" __global__ void hand_on(HAND_ON_PARAMETERS) {
  await_operands();
  for (const i64 begin = clock64(); clock64() - begin < cycles;) {}
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}
)";
struct HandOnParameters {
  static constexpr std::string_view kKernel = "hand_on";
  Reads from;
  Writes to;
  int32_t count = 0;
  int64_t cycles = 0;
  static void fields(auto& self, auto& visit) {
    visit("from", self.from, "unsigned");
    visit("to", self.to, "unsigned");
    visit("count", self.count);
    visit("cycles", self.cycles);
  }
};
constexpr int64_t kLate = 200'000, kAtOnce = 0;  // cycles

std::shared_ptr<const Kernel> hand_on(const CudaDevice& device, int64_t bytes, int64_t cycles) {
  const Blob code =
      compile_cubin(kernels::prelude + declare<HandOnParameters>() + std::string(kHandOn), device.info().architecture);
  const auto module = std::make_shared<const Module>(code, device.context()->handle());
  const HandOnParameters parameters{
      .from = input(0), .to = output(0), .count = static_cast<int32_t>((bytes + 3) / 4), .cycles = cycles};
  GridLaunch launch = launch_of(*module, parameters, {});  // one block: the rest of the GPU is free
  return std::make_shared<GridKernel>(module, std::vector{std::move(launch)});
}

/// A region at a size, and what it makes of several inputs.
struct Case {
  static constexpr size_t kInferences = 3;  // launches, a capture, the graph again
  Case(const Graph& symbolic, int64_t n) : region(sample_at(symbolic, n)), symbols({{"N", n}}) {
    for (size_t i = 0; i < kInferences; ++i) {
      inputs.push_back(random_inputs(region, kSeed + i));
      expected.push_back(evaluate(region, inputs.back()));
    }
  }
  Graph region;
  bool encodes = std::ranges::any_of(region.nodes(), [](const Node* node) { return node->is(ops::encode); });
  SymbolValues symbols;
  std::vector<std::vector<Tensor>> inputs, expected;  // by inference
};

/// A tactic between kernels of ours, as in a network: each operand is handed to it by one, and its results are handed on. New
/// inputs each time, on memory that holds NaNs.
class Chain {
 public:
  Chain(CudaDevice& device, std::string_view source, const Compiled& compiled, const Tactic& tactic, const Case& given)
      : device_(device),
        case_(given),
        shapes_(shapes_of(given.region, tactic, given.symbols)),
        stream_(device.stream()) {
    launch_.kernel = load(device, source, compiled.code, shapes_);
    for (const ConcreteType& type : shapes_.inputs) {
      given_.emplace_back(device, *stream_, type);
      launch_.inputs.push_back(inputs_.emplace_back(device, *stream_, type).data());
    }
    for (const ConcreteType& type : shapes_.outputs) {
      launch_.outputs.push_back(outputs_.emplace_back(device, *stream_, type).data());
      results_.emplace_back(device, *stream_, type);
    }
    for (const Tensor& constant : compiled.constants) {
      constants_.emplace_back(device, *stream_, ConcreteType{constant.dtype(), constant.dims()}).fill(constant);
      launch_.constants.push_back(constants_.back().data());
    }
    workspace_ = Buffer(device, launch_.kernel->workspace_bytes());
    launch_.workspace = workspace_.data();
  }

  /// All inferences with operand `late` written late; in one stream, or spread over branches where memory allows.
  void run(size_t late, bool branches, double tolerance) {
    const std::unique_ptr<Recording> recording = record(late, branches);
    for (size_t i = 0; i < Case::kInferences; ++i) {
      SCOPED_TRACE(fmt::format("inference {}, input {} is late{}", i, late, branches ? ", in branches" : ""));
      for (size_t k = 0; k < given_.size(); ++k) given_[k].fill(case_.inputs[i][k]);
      poison();
      recording->replay(*stream_);
      stream_->synchronize();
      for (auto* tensors : {&results_, &outputs_}) {
        const std::vector<Tensor> found = read(*tensors);
        for (size_t k = 0; k < case_.expected[i].size(); ++k)
          expect_close(case_.expected[i][k], found[k], tolerance, case_.encodes);
      }
      for (size_t k = 0; k < inputs_.size(); ++k) {
        const Tensor before = given_[k].read(), after = inputs_[k].read();
        EXPECT_TRUE(std::ranges::equal(before.bytes(), after.bytes())) << "changes its input " << k;
      }
    }
    EXPECT_EQ(static_cast<const CudaRecording&>(*recording).capture_failure(), "");
  }
  size_t inputs() const { return inputs_.size(); }

 private:
  std::unique_ptr<Recording> record(size_t late, bool branches) const {
    std::vector<Launch> launches;
    const auto copy = [&](const DeviceTensor& from, const DeviceTensor& to, int64_t bytes, int64_t cycles) {
      Launch launch{.kernel = hand_on(device_, bytes, cycles)};
      launch.inputs = {from.data()};
      launch.outputs = {to.data()};
      if (branches) launch.input_bytes = launch.output_bytes = {static_cast<size_t>(bytes)};
      launches.push_back(std::move(launch));
    };
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (k != late) copy(given_[k], inputs_[k], shapes_.inputs[k].bytes(), kAtOnce);
    if (late < inputs_.size()) copy(given_[late], inputs_[late], shapes_.inputs[late].bytes(), kLate);
    launches.push_back(launch_);
    for (size_t k = 0; branches && k < inputs_.size(); ++k)
      launches.back().input_bytes.push_back(static_cast<size_t>(shapes_.inputs[k].bytes()));
    for (size_t k = 0; branches && k < outputs_.size(); ++k)
      launches.back().output_bytes.push_back(static_cast<size_t>(shapes_.outputs[k].bytes()));
    for (size_t k = 0; k < outputs_.size(); ++k) copy(outputs_[k], results_[k], shapes_.outputs[k].bytes(), kAtOnce);
    return device_.record(std::move(launches));
  }

  std::vector<Tensor> read(std::deque<DeviceTensor>& tensors) const {
    std::vector<Tensor> results;
    for (DeviceTensor& tensor : tensors) results.push_back(tensor.read());
    return cut_to_sizes(case_.region, std::move(results));
  }

  void poison() {
    for (DeviceTensor& tensor : inputs_) tensor.poison();
    for (DeviceTensor& tensor : outputs_) tensor.poison();
    for (DeviceTensor& tensor : results_) tensor.poison();
    device_.fill(workspace_.data(), kPoison, workspace_.size(), *stream_);
    stream_->synchronize();
  }

  CudaDevice& device_;
  const Case& case_;
  KernelShapes shapes_;
  std::unique_ptr<Stream> stream_;
  Launch launch_;
  std::deque<DeviceTensor> given_, inputs_, outputs_, results_, constants_;
  Buffer workspace_;
};

/// One source, one type, one region (its number) at a time, so that a sanitizer can be given our own kernels without the
/// libraries', in several processes.
class CudaTactics : public testing::TestWithParam<std::tuple<const TacticSource*, DType, RegionSample>> {};

/// Every offer of a source for a region, compiled at N = 2 and run for `cases`; returns how many there were.
int try_all(CudaDevice& device, const TacticSource& source, const Graph& symbolic, const std::vector<Case>& cases,
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
      for (const Case& given : cases) {
        Chain chain(device, source.name(), compiled, tactic, given);
        for (size_t late = 0; late < std::max<size_t>(chain.inputs(), 1); ++late)
          for (const bool branches : {false, true}) chain.run(late, branches, tolerance);
      }
      ++tried;
    } catch (const Error& error) {
      // A library may find out late that an engine does not serve; Hone's own kernels may not.
      if (&source == &cuda::source()) ADD_FAILURE() << error.what();
    }
  }
  return tried;
}

/// These are the library's alone.
bool is_batched_matmul(const Graph& region) {
  const std::optional<MatmulRegion> matmul = read_matmul_region(region);
  return matmul && matmul->match && is_kernel_float(matmul->node().input(0)->type.dtype);
}

TEST_P(CudaTactics, AgreeWithTheMeaningOfTheRegion) {
  const auto& [source, dtype, sample] = GetParam();
  if (device_count() == 0) GTEST_SKIP() << "there is no GPU: " << driver_library().missing;
  if (source == &cudnn_source() && !cudnn_library().found()) GTEST_SKIP() << cudnn_library().missing;
  if (source == &cublaslt_source() && !cublaslt_library().found()) GTEST_SKIP() << cublaslt_library().missing;
  static CudaDevice device(0);
  static const NamedRows left = read_rows("src/backends/cuda/regions_left.txt");
  const Graph symbolic = sample.graph(dtype);
  const bool certain = source == &cuda::source() ? !is_left(left, sample, dtype)
                                                 : source == &cublaslt_source() && is_batched_matmul(symbolic);
  std::vector<Case> cases;
  for (const int64_t n : {2, 3}) cases.emplace_back(symbolic, n);
  const double tolerance = tolerance_of(dtype, sample.has("FakeQuantize") || sample.has("Encode"),
                                        sample.has("f8e4m3fn"), sample.has("EncodeFloat8"));
  int tried = try_all(device, *source, symbolic, cases, tolerance);
  cases.pop_back();
  tried += try_all(device, *source, symbolic.specialize({{"N", 2}}), cases, tolerance);
  EXPECT_TRUE(tried > 0 || !certain);
}

std::string name_of_case(const testing::TestParamInfo<CudaTactics::ParamType>& info) {
  const auto& [source, dtype, sample] = info.param;
  return fmt::format("{}_{}_{}", source->name(), name_of(dtype), sample.name);
}

TEST(CudaRecording, KernelsOfOursBeginEarlyInAGraph) {
  if (device_count() == 0) GTEST_SKIP() << "there is no GPU: " << driver_library().missing;
  CudaDevice device(0);
  if (!device.can_overlap()) GTEST_SKIP() << "this GPU overlaps no kernels";
  const std::unique_ptr<Stream> stream = device.stream();
  const ConcreteType type{DType::f32, {64}};
  std::deque<DeviceTensor> tensors;
  for (int i = 0; i < 4; ++i) tensors.emplace_back(device, *stream, type);
  std::vector<Launch> launches(3);
  for (size_t i = 0; i < launches.size(); ++i) {
    launches[i].kernel = hand_on(device, type.bytes(), kAtOnce);
    launches[i].inputs = {tensors[i].data()};
    launches[i].outputs = {tensors[i + 1].data()};
  }
  const std::unique_ptr<Recording> recording = device.record(std::move(launches));
  for (int replay = 0; replay < 2; ++replay) recording->replay(*stream);
  stream->synchronize();
  EXPECT_EQ(static_cast<const CudaRecording&>(*recording).early_launches(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Sources, CudaTactics,
                         testing::Combine(testing::Values(&cudnn_source(), &cublaslt_source(), &cuda::source()),
                                          testing::Values(DType::f32, DType::f16, DType::bf16),
                                          testing::ValuesIn(region_samples())),
                         name_of_case);

}  // namespace
}  // namespace hone::cuda
