// SPDX-License-Identifier: Apache-2.0
//
// A plan keeps of a step the region (regions/custom_region.h) and, of a kernel, machine code for each target.
#include "backends/cuda/custom/custom.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/support/embedded.h"
#include "base/text.h"
#include "ir/size_text.h"
#include "regions/custom_region.h"

namespace hone::cuda {
namespace {

constexpr size_t kMostRank = 8;  // of hone_size
constexpr std::string_view kFamily = "custom";

/// Of one operand or result; the same struct stands in the text.
struct KernelSize {
  int64_t count = 0, dims[kMostRank] = {};
  int32_t rank = 0, channels_last = 0;
};
constexpr std::string_view kSizeText = "struct hone_size { long long count, dims[8]; int rank, channels_last; };\n";
static_assert(sizeof(KernelSize) == 80);

std::string_view type_text(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float";
    case DType::f16: return "hone::f16";
    case DType::bf16: return "hone::bf16";
    case DType::f64: return "double";
    case DType::i8: return "signed char";
    case DType::i16: return "short";
    case DType::u16: return "unsigned short";
    case DType::i32: return "int";
    case DType::u32: return "unsigned int";
    case DType::i64: return "long long";
    case DType::u64: return "unsigned long long";
    case DType::boolean: return "bool";
    default: return "unsigned char";  // a code per byte
  }
}

bool is_identifier(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && std::ranges::all_of(name, fits);
}

std::string number_text(int64_t value) {
  return value == INT64_MIN ? "(-9223372036854775807LL - 1)" : fmt::format("{}LL", value);
}
std::string number_text(double value) {
  return std::isnan(value)   ? "__builtin_nan(\"\")"
         : std::isinf(value) ? (value < 0 ? "-1e999" : "1e999")
                             : exact(value);
}

template <typename T>
std::string list_text(std::string_view type, std::string_view name, const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T value : values) texts.push_back(number_text(value));
  return values.empty() ? "" : fmt::format("__device__ constexpr {} {}[] = {{{}}};\n", type, name, join(texts, ", "));
}

/// The node's numbers, as constants that the compiler knows.
std::string attributes_text(const Attrs& attrs) {
  std::string text = "namespace attribute {\n";
  for (const auto& [name, value] : attrs) {
    if (!is_identifier(name)) continue;
    if (const auto* integer = std::get_if<int64_t>(&value))
      text += fmt::format("constexpr long long {} = {};\n", name, number_text(*integer));
    if (const auto* real = std::get_if<double>(&value))
      text += fmt::format("constexpr double {} = {};\n", name, number_text(*real));
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
      text += list_text("long long", name, *integers);
    if (const auto* reals = std::get_if<std::vector<double>>(&value)) text += list_text("double", name, *reals);
  }
  return text + "}\n";
}

/// "x0", … of what is given, then "y0", …
std::vector<std::pair<std::string, const Value*>> operands_of(const Node& node) {
  std::vector<std::pair<std::string, const Value*>> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != nullptr) operands.emplace_back(fmt::format("x{}", i), node.inputs[i]);
  for (size_t i = 0; i < node.outputs.size(); ++i) operands.emplace_back(fmt::format("y{}", i), node.outputs[i]);
  return operands;
}

bool reads_shape_data(const Node& node) {
  return std::ranges::any_of(node.inputs,
                             [](const Value* value) { return value != nullptr && value->producer != nullptr; });
}

/// Why no kernel of source text can run the node; empty: it can.
std::string refusal_of_kernel(const Node& node) {
  const auto operands = operands_of(node);
  if (operands.size() + 2 > Arguments::kMost) return "it has too many operands for a launch";
  for (const auto& [name, value] : operands)
    if (value->type.shape.rank() > kMostRank) return fmt::format("{} has more than {} axes", name, kMostRank);
  return {};
}

class CustomSource final : public TacticSource {
 public:
  std::string_view name() const override { return "custom"; }
  bool compiles_slowly() const override { return true; }

  void propose(const Problem& problem, Candidates& out) const override {
    const Node* node = custom_node(problem.region);
    if (node == nullptr) return;
    const CustomOperator& op = *node->op->custom;
    if (reads_shape_data(*node))
      return out.refuse("custom", "it reads sizes that the host holds: it runs there, on copies");
    if (op.on_device) offer_custom(problem, "device", out);
    if (op.cuda.source.empty()) {
      if (!op.on_device) out.refuse("custom", "it has no function for memory of a GPU: it runs on the host, on copies");
      return;
    }
    if (std::string reason = refusal_of_kernel(*node); !reason.empty())
      return out.refuse("custom.kernel", std::move(reason));
    offer_custom(problem, "kernel", out);
  }

  /// The region behind its length, then machine code.
  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    Compiled compiled = compile_custom(problem);
    std::vector<DeviceCode> codes;
    if (tactic.name == "kernel") {
      const std::string text = custom_text(problem.region);
      std::vector<std::string> targets{problem.device.architecture};
      for (const std::string& target : problem.targets)
        if (target != targets[0]) targets.push_back(target);
      const KernelCode none{.family = std::string(kFamily), .attrs = {}};
      for (const std::string& target : targets) codes.push_back({target, none, machine_code(problem, text, target)});
    }
    const auto size = static_cast<uint64_t>(compiled.code.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += compiled.code.text();
    if (!codes.empty()) bytes += encode_device_code(codes).text();
    compiled.code = Blob::copy(bytes);
    return compiled;
  }

 private:
  static Blob machine_code(const Problem& problem, const std::string& text, const std::string& target) {
    try {
      return compile_cubin(text, target);
    } catch (const InternalError& error) {
      throw Error(fmt::format("the CUDA source text of {} cannot be compiled: {}",
                              custom_node(problem.region)->op->name, error.message()),
                  "what stands before the text is in docs/c-api.md");
    }
  }
};

/// What a step launches: the program's function, or its kernel.
class CustomKernel final : public CudaKernel {
 public:
  CustomKernel(const Blob& region, const KernelShapes& shapes) : launch_(region, shapes) {
    HONE_CHECK(!launch_.reads_host(), "{} reads what the host holds", launch_.op().full_name);
  }
  size_t workspace_bytes() const override { return launch_.workspace_bytes(); }
  bool capturable() const override { return module_ != nullptr || launch_.op().capturable; }
  bool ends_with_kernel() const override { return module_ != nullptr; }
  const CustomOperator& op() const { return launch_.op(); }

  /// From now on that kernel is launched.
  void take_kernel(std::shared_ptr<const Module> module) {
    const CudaText& cuda = op().cuda;
    module_ = std::move(module);
    function_ = module_->function(cuda.kernel);
    const CustomCall& form = launch_.form();
    for (const auto* list : {&form.inputs, &form.outputs})
      for (const CustomTensor& tensor : *list)
        if (tensor.given) sizes_.push_back(size_of(tensor));
    const Dims blocks = evaluated(cuda.blocks);
    HONE_CHECK(!blocks.empty() && blocks.size() <= 3, "the blocks of {} are '{}', not one to three numbers",
               op().full_name, cuda.blocks);
    std::copy(blocks.begin(), blocks.end(), grid_);
    constexpr int64_t kMost[] = {INT32_MAX, 65535, 65535};
    for (size_t i = 0; i < 3; ++i)
      HONE_CHECK(grid_[i] >= 1 && grid_[i] <= kMost[i], "the blocks of {} come to {}", op().full_name,
                 join_dims(blocks));
    const Dims shared = cuda.shared.empty() ? Dims{0} : evaluated(cuda.shared);
    HONE_CHECK(shared.size() == 1 && shared[0] >= 0 && shared[0] <= INT32_MAX, "the shared memory of {} is '{}'",
               op().full_name, cuda.shared);
    shared_ = static_cast<unsigned>(shared[0]);
    constexpr unsigned kDefaultShared = 48 << 10;
    if (shared_ > kDefaultShared)
      check(driver().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(shared_)),
            "reserving shared memory");
  }

  /// The program's code waits for nothing by itself: it never begins early.
  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    CustomCall call = launch_.call(bindings);
    call.stream = stream;
    with_note([&] { return fmt::format("running node {} ({})", call.node, op().full_name); },
              [&] {
                if (module_ == nullptr) op().on_device(call);
                else launch(stream, call);
              });
  }

 private:
  static KernelSize size_of(const CustomTensor& tensor) {
    KernelSize size{.count = elements(tensor.dims),
                    .rank = static_cast<int32_t>(tensor.dims.size()),
                    .channels_last = tensor.layout == Layout::channels_last};
    HONE_CHECK(tensor.dims.size() <= kMostRank, "a kernel has an operand of {} axes", tensor.dims.size());
    std::ranges::copy(tensor.dims, size.dims);
    return size;
  }

  Dims evaluated(const std::string& text) const {
    const CustomCall& form = launch_.form();
    std::vector<Shape> shapes;
    shapes.reserve(form.inputs.size() + form.outputs.size());
    SizeScope scope{.inputs = {}, .outputs = {}, .attrs = form.attrs};
    for (const CustomTensor& input : form.inputs)
      scope.inputs.push_back(input.given ? &shapes.emplace_back(input.dims) : nullptr);
    for (const CustomTensor& output : form.outputs) scope.outputs.push_back(&shapes.emplace_back(output.dims));
    return sizes_from_text(text, scope).values();
  }

  void launch(CUstream stream, const CustomCall& call) const {
    std::array<const void*, Arguments::kMost> pointers;
    std::array<void*, Arguments::kMost> list;
    size_t count = 0;
    const auto add = [&](const void* pointer) {
      pointers[count] = pointer;
      list[count] = &pointers[count];
      ++count;
    };
    for (const auto* tensors : {&call.inputs, &call.outputs})
      for (const CustomTensor& tensor : *tensors)
        if (tensor.given) add(tensor.data);
    if (call.workspace != nullptr) add(call.workspace);
    list[count] = const_cast<KernelSize*>(sizes_.data());
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(grid_[0]);
    config.gridDimY = static_cast<unsigned>(grid_[1]);
    config.gridDimZ = static_cast<unsigned>(grid_[2]);
    config.blockDimX = static_cast<unsigned>(op().cuda.threads);
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared_;
    config.hStream = stream;
    check(driver().cuLaunchKernelEx(&config, function_, list.data(), nullptr), "launching a kernel");
  }

  CustomLaunch launch_;
  std::shared_ptr<const Module> module_;
  CUfunction function_ = nullptr;
  std::vector<KernelSize> sizes_;
  int64_t grid_[3] = {1, 1, 1};
  unsigned shared_ = 0;
};

}  // namespace

const TacticSource& custom_source() {
  static const CustomSource instance;
  return instance;
}

std::string custom_text(const Graph& region) {
  const Node& node = *custom_node(region);
  std::string text = fmt::format("namespace hone {{\n{}}}\n{}", std::string(kernels::prelude), kSizeText);
  std::string members;
  for (const auto& [name, value] : operands_of(node)) {
    text += fmt::format("using {}_t = {};\n", name, type_text(value->type.dtype));
    members += fmt::format("{}{}", members.empty() ? "" : ", ", name);
  }
  text += fmt::format("struct hone_sizes {{ hone_size {}; }};\n", members) + attributes_text(node.attrs);
  return text + "#line 1 \"operator\"\n" + node.op->custom->cuda.source;
}

std::shared_ptr<const CudaKernel> load_custom(CudaDevice& device, const Blob& code, const KernelShapes& shapes) {
  const std::string_view bytes = code.text();
  uint64_t size = 0;
  HONE_CHECK(bytes.size() >= sizeof size, "a step of the source custom is cut off");
  std::memcpy(&size, bytes.data(), sizeof size);
  HONE_CHECK(size <= bytes.size() - sizeof size, "a step of the source custom is cut off");
  auto kernel = std::make_shared<CustomKernel>(Blob::copy(bytes.substr(sizeof size, size)), shapes);
  const std::string_view machine = bytes.substr(sizeof size + size);
  if (machine.empty()) {
    if (!kernel->op().on_device)
      throw Error(fmt::format("{} has no function for memory of a GPU", kernel->op().text()),
                  "the plan was built with one that has; bring that one");
    return kernel;
  }
  const std::vector<DeviceCode> codes = decode_device_code(Blob::copy(machine));
  const DeviceCode& fitting = code_for(codes, device.info().architecture);
  require_version(fitting.code, "custom", 1);
  kernel->take_kernel(device.module(fitting.cubin));
  return kernel;
}

}  // namespace hone::cuda
