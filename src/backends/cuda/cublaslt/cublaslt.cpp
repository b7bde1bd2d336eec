// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cublaslt/cublaslt.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "backends/cuda/cublaslt/cublaslt_matmul.h"
#include "backends/cuda/cublaslt/finish.h"
#include "backends/cuda/run/handles.h"
#include "backends/cuda/run/sources.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/support/source_text.h"
#include "backends/cuda/tactic_table.h"
#include "base/error.h"
#include "ops/code_tables.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "regions/conv_region.h"
#include "regions/matmul_region.h"
#include "regions/quantized_region.h"

namespace hone::cuda {
namespace {

constexpr std::string_view kPlain = "matmul", kFinished = "finished_matmul";
constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kOffers = 8;

struct AlgorithmTactic {
  int64_t rank = 0;  // in the library's list
  bool tf32 = false;
  static void fields(auto& self, auto& visit) {
    visit("rank", self.rank, 0, kOffers - 1);
    visit("tf32", self.tf32);
  }
};

constexpr size_t kWords = std::size(decltype(cublasLtMatmulAlgo_t::data){});

/// Weights and bias of further matmuls of the same input stand behind those of the one before.
struct PlacedMatmul {
  Place a, b, bias;
  bool images = false, transposed = false, tf32 = false;
  bool finished = false;  // by a pass of its own, for the library has no such epilogue
  double scale = 1;
  EpilogueCode epilogue;
  std::array<int64_t, kWords> algorithm = {};  // the library's own
  static void fields(auto& self, auto& visit) {
    Place::fields(self.a, visit, "a");
    Place::fields(self.b, visit, "b");
    Place::fields(self.bias, visit, "bias_place");
    visit("images", self.images);
    visit("transposed", self.transposed);
    visit("tf32", self.tf32);
    visit("finished", self.finished);
    visit("scale", self.scale);
    EpilogueCode::fields(self.epilogue, visit);
    visit("algorithm", self.algorithm, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  }
  /// Constants of a matmul.
  int64_t step() const { return bias.given() ? 2 : 1; }
};

/// Images as a matrix of pixels by channels; everything else as it is.
Dims matrix_dims(const Dims& dims, bool images) {
  if (!images || dims.size() < 2) return dims;
  return {dims[1] == 0 ? 0 : elements(dims) / dims[1], dims[1]};
}

/// Batches of a and b as one axis; false when they broadcast in a way that strides cannot say.
bool merge_batches(const Dims& a, const Dims& b, MatmulShape& shape) {
  const Dims left(a.begin(), a.end() - 2), right(b.begin(), b.end() - 2);
  const int64_t left_count = elements(left), right_count = elements(right);
  if (right_count == 1) {  // every row of a meets the same b
    shape.m *= left_count;
    return true;
  }
  if (left != right && left_count != 1) return false;
  shape.batch = right_count;
  shape.step_a = left_count == 1 ? 0 : shape.m * shape.k;
  shape.step_b = shape.k * shape.n;
  shape.step_c = shape.m * shape.n;
  return true;
}

/// The matmul at concrete sizes of its operands; nothing when it is none that the library knows.
std::optional<MatmulShape> shape_of(const PlacedMatmul& code, const Dims& a, const Dims& b, DType dtype) {
  if (a.size() < 1 || b.size() < 2) return std::nullopt;
  MatmulShape shape;
  shape.transposed_b = code.transposed;
  shape.k = a.back();
  shape.n = shape.transposed_b ? b[b.size() - 2] : b.back();
  if (shape.k == 0 || shape.n == 0 || (shape.transposed_b ? b.back() : b[b.size() - 2]) != shape.k) return std::nullopt;
  if (b.size() == 2) {
    shape.m = elements(a) / shape.k;
  } else {
    if (a.size() < 2) return std::nullopt;
    shape.m = a[a.size() - 2];
    if (!merge_batches(a, b, shape)) return std::nullopt;
  }
  if (shape.m == 0) return std::nullopt;
  shape.dtype = dtype;
  shape.tf32 = code.tf32;
  shape.scale = static_cast<float>(code.scale);
  shape.bias = code.bias.given();
  if (code.finished) return shape;
  shape.residual = code.epilogue.residual >= 0;
  shape.activation = code.epilogue.activation.kind;
  return shape;
}

std::string reason_against(const Problem& problem, const RegionMatch& match) {
  const Node& node = *match.anchor;
  const Value *a = node.input(0), *b = node.input(1);
  if (!is_kernel_float(a->type.dtype) || (b->type.dtype != a->type.dtype && !node.is(ops::quantized_linear)))
    return fmt::format("operand is {}", name_of(a->type.dtype));
  if (a->is_constant()) return "its first operand is constant";
  if (input_index(problem.region, a) < 0 || (!b->is_constant() && input_index(problem.region, b) < 0))
    return "an operand depends on the input's shape";
  if (node.input(2) != nullptr && !node.input(2)->is_constant()) return "its bias is not constant";
  if (a->type.shape.rank() < 2 && node.is(ops::mat_mul)) return "an operand is a vector";
  if (problem.region.outputs()[0]->type.shape != node.output()->type.shape) return "the region changes the shape";
  return match.refusal;
}

struct Read {
  RegionMatch match;  // of the first
  PlacedMatmul code;
  std::vector<Tensor> constants = {};
  std::string refusal = {};

  const Node& node() const { return *match.anchor; }
  DType dtype() const { return node().output()->type.dtype; }
};

/// Matmuls of one input, in whatever form the region has them. Weights stay as they are: the library takes either order, and a
/// scale is its own.
template <typename Region>
Read read_matmuls(const Problem& problem, std::span<const Region> matmuls, bool images, bool transposed) {
  const Region& first = matmuls[0];
  const Node& node = first.node();
  const DType dtype = node.output()->type.dtype;
  Read read{.match = first.match, .code = {.images = images, .transposed = transposed}};
  PlacedMatmul& code = read.code;
  read.refusal = reason_against(problem, first.match);
  if (!read.refusal.empty()) return read;
  code.finished = !has_epilogue(first.code.epilogue, node.input(0)->type.dtype);
  code.tf32 = problem.allowed.tf32;
  code.scale = first.match.scale;
  code.epilogue = first.code.epilogue;
  code.a = place_of(problem, node.input(0), read.constants);
  code.b = place_of(problem, node.input(1), read.constants);
  for (const Region& matmul : matmuls) {
    if (&matmul != &first) read.constants.push_back(*matmul.node().input(1)->constant);
    const std::vector<float> bias = matmul.bias();
    if (bias.empty()) continue;
    if (&matmul == &first) code.bias = {PlaceKind::constant, static_cast<int64_t>(read.constants.size())};
    read.constants.push_back(write_floats(dtype, {static_cast<int64_t>(bias.size())}, bias));
  }
  code.epilogue.bias = code.bias.given();
  return read;
}

/// A convolution that sees one pixel at a time is a matmul of pixels, channels last, with its filters.
bool sees_pixels(const ConvRegion& region) {
  const auto all = [](const Dims& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
  };
  const WindowAttrs& window = region.window;
  return !region.transposed && region.node().input(1)->is_constant() && region.code.groups == 1 &&
         window.auto_pad == "NOTSET" && all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
}

/// Matmuls of one input whose weights are codes, as floats where they are `wanted`.
Read read_quantized(const Problem& problem, std::span<const QuantizedLinearRegion> matmuls, bool wanted) {
  Read read = read_matmuls(problem, matmuls, false, false);
  if (!read.refusal.empty()) return read;
  for (size_t i = 0; i < matmuls.size(); ++i) {
    if (matmuls[i].code.n != matmuls[0].code.n) read.refusal = "matmuls of one input have several widths";
    if (!wanted) continue;
    const Node& node = matmuls[i].node();
    const Tensor* zeros = node.input(3) == nullptr ? nullptr : &*node.input(3)->constant;
    const size_t at = static_cast<size_t>(read.code.b.index) + static_cast<size_t>(read.code.step()) * i;
    read.constants[at] = write_floats(read.dtype(), {matmuls[i].code.k, matmuls[i].code.n},
                                      dequantized_weights(*node.input(1)->constant, *node.input(2)->constant, zeros,
                                                          node.attrs.integer("block_size"), node.attrs.text("table")));
  }
  return read;
}

/// Nothing when the region does not begin with a matmul. `wanted`: its constants are.
std::optional<Read> read_region(const Problem& problem, bool wanted) {
  if (const std::vector<QuantizedLinearRegion> matmuls = read_quantized_linear_regions(problem.region);
      !matmuls.empty())
    return read_quantized(problem, matmuls, wanted);
  if (const std::vector<LinearRegion> linears = read_linear_regions(problem.region); !linears.empty())
    return read_matmuls(problem, std::span(linears), false, linears[0].transposed);
  if (const std::optional<MatmulRegion> matmul = read_matmul_region(problem.region))
    return read_matmuls(problem, std::span(&*matmul, 1), false, false);
  if (const std::optional<ConvRegion> conv = read_conv_region(problem.region); conv && sees_pixels(*conv))
    return read_matmuls(problem, std::span(&*conv, 1), true, true);
  return std::nullopt;
}

/// Weights of images are [filters, channels] and single pixels.
Dims weight_dims(Dims dims, bool images) {
  if (images) dims.resize(std::min<size_t>(dims.size(), 2));
  return dims;
}

std::optional<MatmulShape> shape_at_opt(const Read& read) {
  const bool images = read.code.images;
  return shape_of(read.code, matrix_dims(read.node().input(0)->type.shape.values(), images),
                  weight_dims(read.node().input(1)->type.shape.values(), images), read.dtype());
}

class CublasLtSource final : public TacticSource {
 public:
  std::string_view name() const override { return "cublaslt"; }

  void propose(const Problem& problem, Candidates& out) const override {
    std::optional<Read> found = read_region(problem, false);
    if (!found) return;
    if (!cublaslt_library().found()) return out.refuse("cublaslt", cublaslt_library().missing);
    if (!gpu_selected()) return out.refuse("cublaslt", "there is no GPU to ask");
    Read& read = *found;
    const std::optional<MatmulShape> shape = read.refusal.empty() ? shape_at_opt(read) : std::nullopt;
    if (read.refusal.empty() && !shape) read.refusal = "its batches broadcast against each other";
    if (!read.refusal.empty()) return out.refuse("matmul", std::move(read.refusal));
    const auto algorithms = Matmul(*shape).heuristics(cublaslt_handle(), kWorkspace, kOffers);
    if (algorithms.empty()) return out.refuse("matmul", "the library has no algorithm for it");
    const Layout layout = read.code.images ? Layout::channels_last : Layout::linear;
    for (size_t i = 0; i < algorithms.size(); ++i)
      out.offer({.source = "cublaslt",
                 .name = std::string(read.code.finished ? kFinished : kPlain),
                 .params = write_fields(AlgorithmTactic{.rank = static_cast<int64_t>(i), .tf32 = read.code.tf32}),
                 .in = std::vector<Layout>(problem.region.inputs().size(), layout),
                 .out = std::vector<Layout>(problem.region.outputs().size(), layout),
                 .workspace = static_cast<int64_t>(algorithms[i].workspaceSize)});
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    Read read = *read_region(problem, true);
    HONE_ASSERT(read.refusal.empty(), "refused after all: {}", read.refusal);
    const auto found = Matmul(*shape_at_opt(read)).heuristics(cublaslt_handle(), kWorkspace, kOffers);
    const auto rank = static_cast<size_t>(read_fields<AlgorithmTactic>(tactic.params).rank);
    HONE_CHECK(rank < found.size(), "cuBLASLt no longer has its algorithm {}", rank);
    const auto& words = found[rank].algo.data;
    std::transform(std::begin(words), std::end(words), read.code.algorithm.begin(),
                   [](uint64_t word) { return static_cast<int64_t>(word); });
    const Signed<PlacedMatmul> code{read.code, signature_of(problem, tactic, read.constants)};
    return {read.code.finished ? with_finish(problem, read, write_fields(code))
                               : encode_code(kPlain, write_fields(code), kMatmulVersion),
            std::move(read.constants)};
  }

 private:
  static Blob with_finish(const Problem& problem, const Read& read, const Attrs& attrs) {
    const std::string source =
        std::string(kernels::prelude) + finish_source(read.match, read.code.epilogue, read.dtype());
    std::vector<DeviceCode> codes;
    for (const std::string& architecture : architectures_of(problem)) {
      Blob cubin = compile_cubin(source, architecture);
      codes.push_back({architecture, {std::string(kFinished), attrs, kMatmulVersion}, std::move(cubin)});
    }
    return encode_device_code(codes);
  }
};

class MatmulKernel final : public CudaKernel {
 public:
  /// `count` matmuls of the same input, one after the other, and the pass behind them, where there is one.
  MatmulKernel(const MatmulShape& shape, const PlacedMatmul& code, size_t count,
               std::unique_ptr<const GridKernel> finish)
      : matmul_(shape), code_(code), count_(count), handle_(cublaslt_handle()), finish_(std::move(finish)) {
    for (size_t i = 0; i < kWords; ++i) algorithm_.data[i] = static_cast<uint64_t>(code.algorithm[i]);
    std::optional<size_t> workspace = matmul_.workspace_of(handle_, algorithm_);
    if (!workspace) {  // tuned for other sizes or another version of the library
      const auto found = matmul_.heuristics(handle_, kWorkspace, 1);
      HONE_CHECK(!found.empty(), "cuBLASLt has no algorithm for a matmul in the plan");
      algorithm_ = found[0].algo;
      workspace = found[0].workspaceSize;
    }
    workspace_ = *workspace;
  }

  size_t workspace_bytes() const override { return workspace_; }

  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    const auto at = [&](const Place& place, size_t matmul = 0) -> const void* {
      const auto index = static_cast<size_t>(place.index);
      if (place.kind == PlaceKind::constant)
        return bindings.constants[index + static_cast<size_t>(code_.step()) * matmul];
      return place.given() ? bindings.inputs[index] : nullptr;
    };
    const int64_t residual = finish_ ? -1 : code_.epilogue.residual;
    for (size_t i = 0; i < count_; ++i)
      matmul_.run(handle_, algorithm_, at(code_.a), at(code_.b, i), at(code_.bias, i),
                  residual < 0 ? nullptr : bindings.inputs[static_cast<size_t>(residual)], bindings.outputs[i],
                  bindings.workspace, workspace_, stream);
    if (finish_) finish_->enqueue(stream, bindings, false);
  }

 private:
  Matmul matmul_;
  PlacedMatmul code_;
  size_t count_;
  cublasLtHandle_t handle_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_ = 0;
  std::unique_ptr<const GridKernel> finish_;
};

/// The operands of all matmuls are of their type, weights and biases of their sizes, and what is added is like the result.
void require_matmul_operands(const PlacedMatmul& code, const LoadContext& context, const MatmulShape& shape) {
  const std::vector<ConcreteType>&inputs = context.shapes.inputs, &outputs = context.shapes.outputs;
  const bool weights = code.b.kind == PlaceKind::constant;
  HONE_CHECK(
      code.bias.given() == code.epilogue.bias && code.bias.kind != PlaceKind::input && (outputs.size() == 1 || weights),
      "matmuls in the plan share their operands");
  for (const Place& place : {code.a, code.b})
    HONE_CHECK(place.kind == PlaceKind::constant || inputs[static_cast<size_t>(place.index)].dtype == shape.dtype,
               "a matmul in the plan reads operands of several types");
  const auto require = [&](const Place& place, size_t matmul, int64_t count) {
    const size_t at = static_cast<size_t>(place.index) + static_cast<size_t>(code.step()) * matmul;
    HONE_CHECK(at < context.constants.size() && context.constants[at].dtype == shape.dtype &&
                   elements(context.constants[at].dims) == count,
               "a matmul in the plan reads {} elements of constant {}", count, at);
  };
  const int64_t matrices = shape.step_b == 0 ? 1 : shape.batch;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (weights) require(code.b, i, matrices * shape.k * shape.n);
    if (code.bias.given()) require(code.bias, i, shape.n);
    HONE_CHECK(outputs[i] == outputs[0], "matmuls in the plan differ");
  }
  const int64_t residual = code.epilogue.residual;
  HONE_CHECK(residual < static_cast<int64_t>(inputs.size()) &&
                 (residual < 0 || inputs[static_cast<size_t>(residual)] == outputs[0]),
             "a matmul in the plan adds a tensor of another type");
}

}  // namespace

const TacticSource& cublaslt_source() {
  static const CublasLtSource instance;
  return instance;
}

std::shared_ptr<const CudaKernel> load_cublaslt(CudaDevice& device, const Blob& blob, const KernelShapes& shapes) {
  const DeviceCode decoded = is_device_code(blob)
                                 ? code_for(decode_device_code(blob), device.info().architecture)
                                 : DeviceCode{.architecture = {}, .code = decode_code(blob), .cubin = {}};
  require_version(decoded.code, "cublaslt", kMatmulVersion);
  const auto [code, made] = read_fields<Signed<PlacedMatmul>>(decoded.code.attrs);
  require_signature(made, shapes);
  HONE_CHECK(code.finished == is_device_code(blob), "a matmul in the plan has no code that finishes it");
  const LoadContext context{.shapes = shapes,
                            .constants = constants_of(made),
                            .module = code.finished ? device.module(decoded.cubin) : nullptr};
  HONE_CHECK(code.a.kind == PlaceKind::input && !shapes.outputs.empty(), "a matmul in the plan reads no input");
  const std::optional<MatmulShape> shape =
      shape_of(code, matrix_dims(context.dims_of(code.a), code.images),
               weight_dims(context.dims_of(code.b), code.images), shapes.outputs[0].dtype);
  HONE_CHECK(shape && shape->batch * shape->m * shape->n == elements(shapes.outputs[0].dims),
             "a matmul in the plan contradicts its tensors");
  require_matmul_operands(code, context, *shape);
  return std::make_shared<MatmulKernel>(*shape, code, shapes.outputs.size(),
                                        code.finished ? load_finish(code.epilogue, context) : nullptr);
}

}  // namespace hone::cuda
