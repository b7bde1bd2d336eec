// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cublaslt/cublaslt.h"

#include <algorithm>

#include "backends/cuda/cublaslt/cublaslt_product.h"
#include "backends/cuda/run/handles.h"
#include "backends/cuda/run/sources.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/support/source_text.h"
#include "base/error.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kOffers = 8;

/// A convolution that sees one pixel at a time is a product of pixels, channels last, with its filters.
bool sees_pixels(const Node& conv) {
  if (!conv.input(1)->is_constant() || conv.attrs.integer("group") != 1 || conv.attrs.text("auto_pad") != "NOTSET")
    return false;
  const Dims kernel = spatial_of(conv.input(1)->constant->dims());
  const WindowAttrs window(conv.attrs, kernel.size(), kernel);
  const auto all = [](const Dims& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
  };
  return all(kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
}

const Node* anchor_in(const Graph& region) {
  if (const Node* linear = anchor_of(region, ops::linear)) return linear;
  if (const Node* product = anchor_of(region, ops::mat_mul)) return product;
  const Node* conv = anchor_of(region, ops::conv);
  return conv != nullptr && sees_pixels(*conv) ? conv : nullptr;
}

/// Images as a matrix of pixels by channels; everything else as it is.
Dims matrix_dims(const Dims& dims, bool images) {
  if (!images || dims.size() < 2) return dims;
  return {dims[1] == 0 ? 0 : elements(dims) / dims[1], dims[1]};
}

/// Batches of a and b as one axis; false when they broadcast in a way that strides cannot say.
bool merge_batches(const Dims& a, const Dims& b, ProductShape& shape) {
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

/// The product at concrete sizes of its operands; nothing when it is none that the library knows.
std::optional<ProductShape> product_of(const Attrs& attrs, const Dims& a, const Dims& b, DType dtype) {
  if (a.size() < 1 || b.size() < 2) return std::nullopt;
  ProductShape shape;
  shape.transposed_b = attrs.integer("transposed") != 0;
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
  const Epilogue epilogue = read_epilogue(attrs);
  shape.tf32 = attrs.integer("tf32") != 0;
  shape.scale = static_cast<float>(attrs.real("scale"));
  shape.bias = epilogue.bias;
  shape.residual = read_residual(attrs) >= 0;
  shape.activation = epilogue.activation.kind;
  return shape;
}

std::string reason_against(const Problem& problem, const Node& node, const RegionMatch& match) {
  const Value *a = node.input(0), *b = node.input(1);
  if (!is_kernel_float(a->type.dtype) || b->type.dtype != a->type.dtype)
    return fmt::format("operand is {}", name_of(a->type.dtype));
  if (a->is_constant()) return "its first operand is constant";
  if (input_index(problem.region, a) < 0 || (!b->is_constant() && input_index(problem.region, b) < 0))
    return "an operand depends on the input's shape";
  if (node.input(2) != nullptr && !node.input(2)->is_constant()) return "its bias is not constant";
  if (a->type.shape.rank() < 2 && node.is(ops::mat_mul)) return "an operand is a vector";
  if (problem.region.outputs()[0]->type.shape != node.output()->type.shape) return "the region changes the shape";
  return epilogue_refusal(match, a->type.dtype);
}

RegionMatch bare(const Node& node) {
  RegionMatch match;
  match.anchor = &node;
  return match;
}

struct Read {
  Attrs attrs;
  std::vector<Tensor> constants;
  std::string refusal;
};

/// Weights stay as they are: the library takes either order, and a scale is its own.
Read read_region(const Problem& problem, const Node& node) {
  const bool images = node.is(ops::conv);
  const size_t rank = node.output()->type.shape.rank();
  const std::vector<const Node*> products = parallel_products(problem.region);
  const RegionMatch match = products.empty() ? match_region(problem.region, &node, images ? rank - 1 : 1) : bare(node);
  Read read;
  read.refusal = reason_against(problem, node, match);
  if (!read.refusal.empty()) return read;
  const DType dtype = node.output()->type.dtype;
  read.attrs = {{"a", old_place_of(problem, node.input(0), read.constants)},
                {"b", old_place_of(problem, node.input(1), read.constants)}};
  Dims b_dims = node.input(1)->is_constant() ? node.input(1)->constant->dims() : Dims();
  if (images) b_dims.resize(2);
  read.attrs.set("b_dims", std::move(b_dims));
  read.attrs.set("images", int64_t{images});
  read.attrs.set("transposed", images ? int64_t{1} : node.is(ops::linear) ? node.attrs.integer("trans_w") : int64_t{0});
  read.attrs.set("scale", double{match.scale});
  read.attrs.set("tf32", int64_t{problem.allowed.tf32});
  const int64_t n = node.output()->type.shape[images ? 1 : rank - 1].value();
  std::vector<float> bias = collect_bias(match, node.input(2), n);
  read.attrs.set("bias_place", bias.empty() ? kNoPlace : -1 - static_cast<int64_t>(read.constants.size()));
  write_epilogue(read.attrs, match, !bias.empty());
  if (!bias.empty()) read.constants.push_back(write_floats(dtype, {n}, bias));
  // Further products of the same input: weights and bias of each stand behind those of the one before.
  for (size_t i = 1; i < products.size(); ++i) {
    read.constants.push_back(*products[i]->input(1)->constant);
    if (!bias.empty())
      read.constants.push_back(write_floats(dtype, {n}, collect_bias(match, products[i]->input(2), n)));
  }
  return read;
}

std::optional<ProductShape> product_at_opt(const Node& node, const Attrs& attrs) {
  const bool images = node.is(ops::conv);
  return product_of(attrs, matrix_dims(node.input(0)->type.shape.values(), images),
                    images ? attrs.integers("b_dims") : node.input(1)->type.shape.values(), node.output()->type.dtype);
}

class CublasLtSource final : public TacticSource {
 public:
  std::string_view name() const override { return "cublaslt"; }

  void propose(const Problem& problem, Candidates& out) const override {
    const Node* node = anchor_in(problem.region);
    if (node == nullptr) return;
    if (!cublaslt_library().found()) return out.refuse("cublaslt", cublaslt_library().missing);
    if (!card_selected()) return out.refuse("cublaslt", "there is no card to ask");
    Read read = read_region(problem, *node);
    const std::optional<ProductShape> shape = read.refusal.empty() ? product_at_opt(*node, read.attrs) : std::nullopt;
    if (read.refusal.empty() && !shape) read.refusal = "its batches broadcast against each other";
    if (!read.refusal.empty()) return out.refuse("product", std::move(read.refusal));
    const auto found = Product(*shape).heuristics(cublaslt_handle(), kWorkspace, kOffers);
    if (found.empty()) return out.refuse("product", "the library has no algorithm for it");
    const Layout layout = node->is(ops::conv) ? Layout::channels_last : Layout::linear;
    for (size_t i = 0; i < found.size(); ++i)
      out.offer({.source = "cublaslt",
                 .name = "product",
                 .params = {{"rank", static_cast<int64_t>(i)}, {"tf32", read.attrs.integer("tf32")}},
                 .in = std::vector<Layout>(problem.region.inputs().size(), layout),
                 .out = std::vector<Layout>(problem.region.outputs().size(), layout),
                 .workspace = static_cast<int64_t>(found[i].workspaceSize)});
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    const Node& node = *anchor_in(problem.region);
    Read read = read_region(problem, node);
    HONE_ASSERT(read.refusal.empty(), "refused after all: {}", read.refusal);
    const auto found = Product(*product_at_opt(node, read.attrs)).heuristics(cublaslt_handle(), kWorkspace, kOffers);
    const int64_t rank = tactic.params.integer("rank");
    HONE_CHECK(rank >= 0 && rank < static_cast<int64_t>(found.size()), "cuBLASLt no longer has its algorithm {}", rank);
    Dims words;
    for (const uint64_t word : found[static_cast<size_t>(rank)].algo.data) words.push_back(static_cast<int64_t>(word));
    read.attrs.set("algorithm", std::move(words));
    for (const auto& [name, value] : write_fields(signature_of(problem, tactic, read.constants))) read.attrs.set(name, value);
    return {encode_code("product", read.attrs), std::move(read.constants)};
  }
};

class ProductKernel final : public CudaKernel {
 public:
  /// `count` products of the same input, one after the other.
  ProductKernel(const ProductShape& shape, const Attrs& attrs, size_t count)
      : product_(shape),
        count_(count),
        handle_(cublaslt_handle()),
        a_(attrs.integer("a")),
        b_(attrs.integer("b")),
        bias_(attrs.integer("bias_place")),
        residual_(read_residual(attrs)) {
    const Dims& words = attrs.integers("algorithm");
    HONE_CHECK(words.size() == std::size(algorithm_.data), "a product in the plan is damaged");
    for (size_t i = 0; i < words.size(); ++i) algorithm_.data[i] = static_cast<uint64_t>(words[i]);
    std::optional<size_t> workspace = product_.workspace_of(handle_, algorithm_);
    if (!workspace) {  // tuned for other sizes or another version of the library
      const auto found = product_.heuristics(handle_, kWorkspace, 1);
      HONE_CHECK(!found.empty(), "cuBLASLt has no algorithm for a product in the plan");
      algorithm_ = found[0].algo;
      workspace = found[0].workspaceSize;
    }
    workspace_ = *workspace;
  }

  size_t workspace_bytes() const override { return workspace_; }

  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    const auto at = [&](int64_t place) -> const void* {
      if (place == kNoPlace) return nullptr;
      return place >= 0 ? bindings.inputs[static_cast<size_t>(place)]
                        : bindings.constants[static_cast<size_t>(-1 - place)];
    };
    const int64_t step = bias_ == kNoPlace ? 1 : 2;  // constants of a product
    for (size_t i = 0; i < count_; ++i) {
      const auto behind = [&](int64_t place) { return i == 0 ? place : place - step * static_cast<int64_t>(i); };
      product_.run(handle_, algorithm_, at(a_), at(behind(b_)), bias_ == kNoPlace ? nullptr : at(behind(bias_)),
                   residual_ < 0 ? nullptr : at(residual_), bindings.outputs[i], bindings.workspace, workspace_,
                   stream);
    }
  }

 private:
  Product product_;
  size_t count_;
  cublasLtHandle_t handle_;
  cublasLtMatmulAlgo_t algorithm_{};
  int64_t a_, b_, bias_, residual_;
  size_t workspace_ = 0;
};

}  // namespace

const TacticSource& cublaslt_source() {
  static const CublasLtSource instance;
  return instance;
}

/// Weights and biases of all products, and what is added.
static void require_product_places(const Attrs& attrs, const KernelShapes& shapes, const ProductShape& shape,
                                   const Dims& b_dims) {
  constexpr int64_t kMostConstants = 256;
  const auto inputs = static_cast<int64_t>(shapes.inputs.size()), count = static_cast<int64_t>(shapes.outputs.size());
  const int64_t b = bounded(attrs, "b", -kMostConstants, inputs - 1), bias = attrs.integer("bias_place"),
                step = bias == kNoPlace ? 1 : 2, residual = read_residual(attrs);
  HONE_CHECK((bias != kNoPlace) == shape.bias && (bias == kNoPlace || (bias < 0 && bias >= -kMostConstants)) &&
                 (count == 1 || b < 0),
             "a product in the plan has its bias at {}", bias);
  for (int64_t i = 0; i < count; ++i) {
    if (b < 0) require_constant(shapes, -1 - b + step * i, shape.dtype, b_dims);
    if (shape.bias) require_constant(shapes, -1 - bias + step * i, shape.dtype, Dims{shape.n});
    HONE_CHECK(shapes.outputs[static_cast<size_t>(i)] == shapes.outputs[0], "products in the plan differ");
  }
  HONE_CHECK(residual < 0 || shapes.inputs[static_cast<size_t>(residual)] == shapes.outputs[0],
             "a product in the plan adds a tensor of another type");
}

std::shared_ptr<const CudaKernel> load_cublaslt(CudaDevice&, const Blob& code, const KernelShapes& shapes) {
  const KernelCode decoded = decode_code(code);
  const Attrs& attrs = decoded.attrs;
  const int64_t a = attrs.integer("a"), b = attrs.integer("b"), inputs = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(a >= 0 && a < inputs && b < inputs && read_residual(attrs) < inputs && !shapes.outputs.empty(),
             "a product in the plan reads inputs {} and {}", a, b);
  require_signature(old_signature(attrs), shapes);
  const Dims& b_dims = b >= 0 ? shapes.inputs[static_cast<size_t>(b)].dims : attrs.integers("b_dims");
  const std::optional<ProductShape> shape =
      product_of(attrs, matrix_dims(shapes.inputs[static_cast<size_t>(a)].dims, attrs.integer("images") != 0), b_dims,
                 shapes.outputs[0].dtype);
  HONE_CHECK(shape && shape->batch * shape->m * shape->n == elements(shapes.outputs[0].dims),
             "a product in the plan contradicts its tensors");
  require_product_places(attrs, shapes, *shape, b_dims);
  return std::make_shared<ProductKernel>(*shape, attrs, shapes.outputs.size());
}

}  // namespace hone::cuda
