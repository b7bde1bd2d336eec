// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/collective/collective.h"

#include <optional>

#include "backends/cuda/collective/communicator.h"
#include "backends/cuda/run/mapped_memory.h"
#include "regions/together/collective_region.h"

namespace hone::cuda {
namespace {

constexpr std::string_view kSource = "nccl";
constexpr int64_t kVersion = 1;

/// Nothing where NCCL has no such type.
std::optional<nccl::DataType> type_of(DType dtype) {
  switch (dtype) {
    case DType::i8: return nccl::kInt8;
    case DType::u8: return nccl::kUint8;
    case DType::i32: return nccl::kInt32;
    case DType::u32: return nccl::kUint32;
    case DType::i64: return nccl::kInt64;
    case DType::u64: return nccl::kUint64;
    case DType::f16: return nccl::kFloat16;
    case DType::f32: return nccl::kFloat32;
    case DType::f64: return nccl::kFloat64;
    case DType::bf16: return nccl::kBfloat16;
    default: return std::nullopt;
  }
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::reduce_scatter;
}

class CollectiveKernel final : public CudaKernel, public IsTogether, public GainsByMapping {
 public:
  CollectiveKernel(CollectiveForm form, std::shared_ptr<Communicator> communicator)
      : form_(std::move(form)),
        communicator_(std::move(communicator)),
        type_(reduces(form_.kind) ? type_of(form_.dtype).value() : nccl::kUint8),
        count_(static_cast<size_t>(form_.elements) * (reduces(form_.kind) ? 1 : size_of(form_.dtype))) {}
  /// The library's last kernel does not wait as ours do.
  bool ends_with_kernel() const override { return false; }

  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    const void* from = bindings.inputs[0];
    void* to = bindings.outputs[0];
    communicator_->run("a collective", [&](nccl::Handle handle) { return call(handle, from, to, stream); });
  }

  std::shared_ptr<const CudaKernel> across(MappedMemory& memory) const override {
    std::shared_ptr<Communicator> communicator = communicator_;
    if (communicator->has_windows()) {
      communicator = communicator_of(communicator_->group(), form_.ranks, Operands::in_windows);
      memory.hold(communicator->window(memory.data(), memory.size()));
    }
    return std::make_shared<CollectiveKernel>(form_, std::move(communicator));
  }

 private:
  nccl::Result call(nccl::Handle handle, const void* from, void* to, CUstream stream) const {
    const nccl::Table& library = nccl::library();
    const auto operation = static_cast<nccl::Operation>(form_.reduce);
    const auto ranks = static_cast<size_t>(communicator_->size());
    const bool root = communicator_->place() == form_.root;
    switch (form_.kind) {
      case CollectiveKind::all_reduce: return library.ncclAllReduce(from, to, count_, type_, operation, handle, stream);
      case CollectiveKind::reduce_scatter:
        return library.ncclReduceScatter(from, to, count_ / ranks, type_, operation, handle, stream);
      case CollectiveKind::all_gather: return library.ncclAllGather(from, to, count_, type_, handle, stream);
      case CollectiveKind::broadcast: return library.ncclBroadcast(from, to, count_, type_, form_.root, handle, stream);
      case CollectiveKind::reduce:
        if (!root) clear(to, static_cast<size_t>(form_.elements) * size_of(form_.dtype), stream);
        return library.ncclReduce(from, to, count_, type_, operation, form_.root, handle, stream);
      case CollectiveKind::gather: {
        if (!root) clear(to, count_ * ranks, stream);
        return exchange(handle, stream, {from, count_, true, false}, {to, count_, false, root});
      }
      case CollectiveKind::scatter:
        return exchange(handle, stream, {from, count_ / ranks, false, root}, {to, count_ / ranks, true, false});
      case CollectiveKind::all_to_all:
        return exchange(handle, stream, {from, count_ / ranks, false, true}, {to, count_ / ranks, false, true});
    }
    return nccl::kSuccess;
  }

  /// One side of an exchange: a block for the root, or one for each rank.
  template <typename Pointer>
  struct Side {
    Pointer data;
    size_t block;
    bool with_root, with_all;
  };

  nccl::Result exchange(nccl::Handle handle, CUstream stream, Side<const void*> out, Side<void*> in) const {
    const nccl::Table& library = nccl::library();
    if (const nccl::Result begun = library.ncclGroupStart(); begun != nccl::kSuccess) return begun;
    for (int peer = 0; peer < communicator_->size(); ++peer) {
      const size_t at = static_cast<size_t>(peer);
      if (out.with_all || (out.with_root && peer == form_.root)) {
        const auto* from = static_cast<const std::byte*>(out.data) + (out.with_all ? at * out.block : 0);
        library.ncclSend(from, out.block, type_, peer, handle, stream);
      }
      if (in.with_all || (in.with_root && peer == form_.root)) {
        auto* to = static_cast<std::byte*>(in.data) + (in.with_all ? at * in.block : 0);
        library.ncclRecv(to, in.block, type_, peer, handle, stream);
      }
    }
    return library.ncclGroupEnd();  // tells what went wrong with any of them
  }

  static void clear(void* memory, size_t bytes, CUstream stream) {
    check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0, bytes, stream), "clearing memory");
  }

  CollectiveForm form_;
  std::shared_ptr<Communicator> communicator_;
  nccl::DataType type_;
  size_t count_;  // of the operand, in elements of `type_`
};

class CollectiveSource final : public TacticSource {
 public:
  std::string_view name() const override { return kSource; }
  void propose(const Problem& problem, Candidates& out) const override {
    const Node* node = collective_node(problem.region);
    if (node == nullptr) return;
    const DType dtype = node->input(0)->type.dtype;
    if (node->attrs.text("operation").find("reduce") != std::string::npos && !type_of(dtype))
      out.refuse("nccl", fmt::format("NCCL does not add up {}", name_of(dtype)));
    else offer_collective(problem, kSource, out);
  }
  Compiled compile(const Problem& problem, const Tactic&) const override {
    return compile_collective(problem, kVersion);
  }
};

}  // namespace

const TacticSource& collective_source() {
  static const CollectiveSource instance;
  return instance;
}

std::shared_ptr<const CudaKernel> load_collective(CudaDevice& device, const Blob& code, const KernelShapes& shapes) {
  CollectiveForm form = collective_form(code, shapes, device.group().get(), kSource, kVersion);
  if (reduces(form.kind) && !type_of(form.dtype))
    throw Error(fmt::format("NCCL does not add up {}", name_of(form.dtype)), "build the plan anew");
  device.context()->select();
  std::shared_ptr<Communicator> communicator = communicator_of(device.group(), form.ranks);
  return std::make_shared<CollectiveKernel>(std::move(form), std::move(communicator));
}

}  // namespace hone::cuda
