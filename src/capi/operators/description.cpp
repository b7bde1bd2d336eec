// SPDX-License-Identifier: Apache-2.0
//
// hone_operator, checked and copied.
#include <algorithm>
#include <cctype>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/operators/operators.h"

namespace hone::capi {
namespace {

constexpr unsigned kAllFlags =
    HONE_OPERATOR_FOLDABLE | HONE_OPERATOR_CAPTURABLE | HONE_OPERATOR_RANDOM | HONE_OPERATOR_REPLACES;
constexpr size_t kMostOutputs = 64, kMostInputs = 0xfffe;  // 0xffff: OpDef does not ask for the first ones
constexpr int kMostThreads = 1024;
/// Types with bytes.
constexpr uint32_t kTensorTypes = ((1u << HONE_SEQUENCE) - 1) & ~(1u << HONE_STRING);

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

bool is_name(const std::string& text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; });
}

AttrValue value_of(const hone_attribute& given) {
  const auto list = [&](const void* entries) {
    if (given.count > 0) require(entries, "a default");
  };
  switch (given.kind) {
    case HONE_ATTRIBUTE_INTEGER: return given.integer;
    case HONE_ATTRIBUTE_REAL: return static_cast<double>(given.real);
    case HONE_ATTRIBUTE_TEXT: return text_or_empty(given.text);
    case HONE_ATTRIBUTE_INTEGERS:
      list(given.integers);
      return std::vector<int64_t>(given.integers, given.integers + given.count);
    case HONE_ATTRIBUTE_REALS: list(given.reals); return std::vector<double>(given.reals, given.reals + given.count);
    case HONE_ATTRIBUTE_TEXTS: {
      list(given.texts);
      std::vector<std::string> texts;
      for (size_t i = 0; i < given.count; ++i) texts.push_back(text_or_empty(given.texts[i]));
      return texts;
    }
    case HONE_ATTRIBUTE_TENSOR: require(given.tensor, "a default"); return given.tensor->tensor;
    case HONE_ATTRIBUTE_NETWORK: throw ArgumentError("a network is no attribute of an operator of one's own");
  }
  throw ArgumentError(fmt::format("there is no kind of attribute {}", static_cast<int>(given.kind)));
}

void take_name(const hone_operator& from, CustomOperator& op) {
  require(from.name, "op->name");
  op.domain = text_or_empty(from.domain);
  op.name = from.name;
  if (op.domain == "ai.onnx") op.domain.clear();
  if (op.name.empty() || !is_name(op.name) || !is_name(op.domain))
    throw Error(fmt::format("an operator is called '{}' in the domain '{}'", op.name, op.domain),
                "names are of letters, digits, '_', '.' and '-'");
  op.version = from.version;
}

void take_inputs(const hone_operator& from, CustomOperator& op) {
  HONE_CHECK(from.min_inputs <= from.max_inputs && from.max_inputs <= kMostInputs,
             "it has {} to {} inputs; at most {} can be had", from.min_inputs, from.max_inputs, kMostInputs);
  op.def.min_inputs = from.min_inputs;
  op.def.max_inputs = from.max_inputs;
  if (from.input_types == nullptr) op.input_types = {1u << HONE_F32};
  else op.input_types.assign(from.input_types, from.input_types + from.input_type_count);
  for (const uint32_t types : op.input_types)
    HONE_CHECK(types != 0 && (types & ~kTensorTypes) == 0,
               "its input_types are {:#x}, which are not bits of types of tensors without strings", types);
  HONE_CHECK(!op.input_types.empty(), "its input_type_count is 0");
}

CustomOperator::Result result_of(const hone_operator& from, size_t i) {
  CustomOperator::Result result{.dtype = {}, .as_input = 0, .sizes = {}};
  if (from.output_types != nullptr) {
    const int type = from.output_types[i];
    const bool is_type = type >= 0 && type < HONE_SEQUENCE && (kTensorTypes >> type & 1) != 0;
    HONE_CHECK(type < 0 || is_type, "its output_types[{}] is {}, which is no type of a tensor without strings", i,
               type);
    if (type >= 0) result.as_input.reset();
    if (type >= 0) result.dtype = static_cast<DType>(type);
    else result.as_input = static_cast<size_t>(-1 - static_cast<int64_t>(type));
  }
  HONE_CHECK(!result.as_input || *result.as_input < from.max_inputs,
             "output {} has the type of input {}; it has at most {} inputs", i, result.as_input.value_or(0),
             from.max_inputs);
  if (from.output_sizes != nullptr) result.sizes = text_or_empty(from.output_sizes[i]);
  const bool scalar = from.output_sizes != nullptr && from.output_sizes[i] != nullptr && result.sizes.empty();
  if (scalar) result.sizes = " ";  // no axes
  HONE_CHECK(!result.sizes.empty() || from.sizes != nullptr,
             "nothing says the sizes of output {}: neither output_sizes nor `sizes`", i);
  return result;
}

void take_attributes(const hone_operator& from, CustomOperator& op) {
  const auto* at = reinterpret_cast<const std::byte*>(from.attributes);
  if (from.attribute_count > 0) require(from.attributes, "op->attributes");
  for (size_t i = 0; i < from.attribute_count; ++i) {
    const auto* given = reinterpret_cast<const hone_attribute*>(at);
    const hone_attribute attribute = taken(given, "op->attributes");
    require(attribute.name, "op->attributes->name");
    op.defaults.emplace_back(attribute.name, value_of(attribute));
    at += given->size;
  }
}

void take_layouts(const hone_operator& from, CustomOperator& op) {
  constexpr uint32_t kAll = 1u << HONE_LAYOUT_LINEAR | 1u << HONE_LAYOUT_CHANNELS_LAST;
  HONE_CHECK((from.layouts & ~kAll) == 0, "its layouts are {:#x}, which are not bits of hone_layout", from.layouts);
  if (from.layouts == 0) return;
  op.layouts.clear();
  if ((from.layouts >> HONE_LAYOUT_LINEAR & 1) != 0) op.layouts.push_back(Layout::linear);
  if ((from.layouts >> HONE_LAYOUT_CHANNELS_LAST & 1) != 0) op.layouts.push_back(Layout::channels_last);
}

void take_cuda(const hone_operator& from, CustomOperator& op) {
  if (from.cuda_source == nullptr) return;
  HONE_CHECK(from.cuda_kernel != nullptr && from.cuda_blocks != nullptr,
             "it has cuda_source, but not both of cuda_kernel and cuda_blocks");
  HONE_CHECK(from.cuda_threads >= 0 && from.cuda_threads <= kMostThreads, "its cuda_threads are {}, not 1 to {}",
             from.cuda_threads, kMostThreads);
  op.cuda.source = from.cuda_source;
  op.cuda.kernel = from.cuda_kernel;
  op.cuda.blocks = from.cuda_blocks;
  op.cuda.shared = text_or_empty(from.cuda_shared);
  if (from.cuda_threads > 0) op.cuda.threads = from.cuda_threads;
}

/// The operator keeps its functions, so they name it by a plain pointer.
void take_functions(const hone_operator& from, CustomOperator& op) {
  HONE_CHECK(from.run != nullptr || from.run_on_device != nullptr || from.cuda_source != nullptr,
             "it has none of `run`, `run_on_device` and cuda_source");
  const CustomOperator* self = &op;
  void* user = from.user;
  const auto bound = [self, user](hone_operator_fn function) {
    return [self, user, function](CustomCall& call) { call_operator(*self, user, function, call); };
  };
  if (from.sizes != nullptr) op.sizes = bound(from.sizes);
  if (from.run != nullptr) op.on_host = bound(from.run);
  if (from.run_on_device != nullptr) op.on_device = bound(from.run_on_device);
  op.workspace_text = text_or_empty(from.workspace_size);
  if (const hone_workspace_fn workspace = from.workspace; workspace != nullptr)
    op.workspace = [self, user, workspace](const CustomCall& call) {
      return call_workspace(*self, user, workspace, call);
    };
}

}  // namespace

std::shared_ptr<CustomOperator> operator_of(const hone_operator* description, unsigned flags, std::string library,
                                            std::string hash) {
  hone_operator from = taken(description, "op");
  from.flags |= flags;
  auto op = std::make_shared<CustomOperator>();
  take_name(from, *op);
  op->library = std::move(library);
  op->hash = std::move(hash);
  with_note([&] { return fmt::format("registering the operator {}::{}", op->domain, op->name); },
            [&] {
              HONE_CHECK((from.flags & ~kAllFlags) == 0, "its flags are {:#x}, some of which this Hone does not know",
                         from.flags);
              HONE_CHECK(from.outputs >= 1 && from.outputs <= kMostOutputs, "it has {} outputs, not 1 to {}",
                         from.outputs, kMostOutputs);
              op->foldable = (from.flags & HONE_OPERATOR_FOLDABLE) != 0;
              op->capturable = (from.flags & HONE_OPERATOR_CAPTURABLE) != 0;
              op->random = (from.flags & HONE_OPERATOR_RANDOM) != 0;
              op->replaces = (from.flags & HONE_OPERATOR_REPLACES) != 0;
              take_inputs(from, *op);
              for (size_t i = 0; i < from.outputs; ++i) op->results.push_back(result_of(from, i));
              take_attributes(from, *op);
              take_layouts(from, *op);
              take_functions(from, *op);
              take_cuda(from, *op);
            });
  if (from.release != nullptr) op->release = [release = from.release, user = from.user] { release(user); };
  op->complete();
  return op;
}

}  // namespace hone::capi
