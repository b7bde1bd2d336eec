// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cublaslt.h"

#include "backends/cuda/cublaslt_product.h"
#include "backends/cuda/handles.h"
#include "backends/cuda/sources.h"
#include "backends/cuda/tactics/source_text.h"
#include "base/error.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kOffers = 8;

const Node* anchor_in(const Graph& region) {
  const Node* linear = anchor_of(region, ops::linear);
  return linear != nullptr ? linear : anchor_of(region, ops::mat_mul);
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

struct Read {
  Attrs attrs;
  std::vector<Tensor> constants;
  std::string refusal;
};

/// Weights stay as they are: the library takes either order, and a scale is its own.
Read read_region(const Problem& problem, const Node& node) {
  const RegionMatch match = match_region(problem.region, &node, 1);
  Read read;
  read.refusal = reason_against(problem, node, match);
  if (!read.refusal.empty()) return read;
  const DType dtype = node.output()->type.dtype;
  read.attrs = {{"a", place_of(problem, node.input(0), read.constants)},
                {"b", place_of(problem, node.input(1), read.constants)}};
  read.attrs.set("b_dims", node.input(1)->is_constant() ? node.input(1)->constant->dims() : Dims());
  read.attrs.set("transposed", node.is(ops::linear) ? node.attrs.integer("trans_w") : int64_t{0});
  read.attrs.set("scale", double{match.scale});
  read.attrs.set("tf32", int64_t{problem.allowed.tf32});
  const int64_t n = node.output()->type.shape[node.output()->type.shape.rank() - 1].value();
  std::vector<float> bias = collect_bias(match, node.input(2), n);
  read.attrs.set("bias_place", bias.empty() ? kNoPlace : -1 - static_cast<int64_t>(read.constants.size()));
  write_epilogue(read.attrs, match, !bias.empty());
  if (!bias.empty()) read.constants.push_back(write_floats(dtype, {n}, bias));
  return read;
}

std::optional<ProductShape> product_at_opt(const Node& node, const Attrs& attrs) {
  return product_of(attrs, node.input(0)->type.shape.values(), node.input(1)->type.shape.values(),
                    node.output()->type.dtype);
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
    for (size_t i = 0; i < found.size(); ++i)
      out.offer({.source = "cublaslt",
                 .name = "product",
                 .params = {{"rank", static_cast<int64_t>(i)}, {"tf32", read.attrs.integer("tf32")}},
                 .in = std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 .out = {Layout::linear},
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
    return {encode_code("product", read.attrs), std::move(read.constants)};
  }
};

class ProductKernel final : public CudaKernel {
 public:
  ProductKernel(const ProductShape& shape, const Attrs& attrs)
      : product_(shape),
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

  void enqueue(CUstream stream, const Bindings& bindings) const override {
    const auto at = [&](int64_t place) -> const void* {
      if (place == kNoPlace) return nullptr;
      return place >= 0 ? bindings.inputs[static_cast<size_t>(place)]
                        : bindings.constants[static_cast<size_t>(-1 - place)];
    };
    product_.run(handle_, algorithm_, at(a_), at(b_), at(bias_), residual_ < 0 ? nullptr : at(residual_),
                 bindings.outputs[0], bindings.workspace, workspace_, stream);
  }

 private:
  Product product_;
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

std::shared_ptr<const CudaKernel> load_cublaslt(CudaDevice&, const Blob& code, const KernelShapes& shapes) {
  const KernelCode decoded = decode_code(code);
  const Attrs& attrs = decoded.attrs;
  const int64_t a = attrs.integer("a"), b = attrs.integer("b"), inputs = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(a >= 0 && a < inputs && b < inputs && read_residual(attrs) < inputs && shapes.outputs.size() == 1,
             "a product in the plan reads inputs {} and {}", a, b);
  const Dims& b_dims = b >= 0 ? shapes.inputs[static_cast<size_t>(b)].dims : attrs.integers("b_dims");
  const std::optional<ProductShape> shape =
      product_of(attrs, shapes.inputs[static_cast<size_t>(a)].dims, b_dims, shapes.outputs[0].dtype);
  HONE_CHECK(shape && shape->batch * shape->m * shape->n == elements(shapes.outputs[0].dims),
             "a product in the plan contradicts its tensors");
  return std::make_shared<ProductKernel>(*shape, attrs);
}

}  // namespace hone::cuda
