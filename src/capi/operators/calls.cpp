// SPDX-License-Identifier: Apache-2.0
//
// A call of a program's function, in the structs of hone.h. Whatever the function does but crash comes back as an Error.
#include <algorithm>
#include <deque>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/operators/operators.h"
#include "capi/tensor.h"

namespace hone::capi {
namespace {

constexpr size_t kMessageBytes = 512;

hone_operand operand_of(const CustomTensor& tensor) {
  hone_operand operand{
      .size = sizeof(hone_operand),
      .dtype = static_cast<hone_dtype>(tensor.dtype),
      .layout = tensor.layout == Layout::channels_last ? HONE_LAYOUT_CHANNELS_LAST : HONE_LAYOUT_LINEAR,
      .rank = 0,
      .dims = {},
      .data = const_cast<void*>(tensor.data)};
  copy_dims(tensor.dims, operand.dims, &operand.rank);
  return operand;
}

/// What the attributes of a call point to.
class AttributeList {
 public:
  explicit AttributeList(const Attrs& attrs) {
    for (const auto& [name, value] : attrs) {
      hone_attribute& attribute = attributes_.emplace_back();
      attribute.size = sizeof(hone_attribute);
      attribute.name = name.c_str();
      attribute.kind = static_cast<hone_attribute_kind>(value.index());
      std::visit([&](const auto& held) { put(attribute, held); }, value);
      pointers_.push_back(&attribute);
    }
  }
  const std::vector<const hone_attribute*>& pointers() const { return pointers_; }

 private:
  static void put(hone_attribute& to, int64_t value) { to.integer = value; }
  static void put(hone_attribute& to, double value) { to.real = static_cast<float>(value); }
  static void put(hone_attribute& to, const std::string& value) { to.text = value.c_str(); }
  static void put(hone_attribute& to, const std::vector<int64_t>& value) {
    to.integers = value.data();
    to.count = value.size();
  }
  void put(hone_attribute& to, const std::vector<double>& value) {
    to.reals = reals_.emplace_back(value.begin(), value.end()).data();
    to.count = value.size();
  }
  void put(hone_attribute& to, const std::vector<std::string>& value) {
    std::vector<const char*>& texts = texts_.emplace_back();
    for (const std::string& text : value) texts.push_back(text.c_str());
    to.texts = texts.data();
    to.count = value.size();
  }
  void put(hone_attribute& to, const Tensor& value) { to.tensor = &tensors_.emplace_back(value); }

  std::deque<hone_attribute> attributes_;
  std::vector<const hone_attribute*> pointers_;
  std::deque<std::vector<float>> reals_;
  std::deque<std::vector<const char*>> texts_;
  std::deque<hone_value> tensors_;
};

/// The struct that a function sees, and what it points to.
class Frame {
 public:
  Frame(const CustomCall& call, void* user) : attributes_(call.attrs), node_(call.node) {
    operands_.reserve(call.inputs.size() + call.outputs.size());
    for (const CustomTensor& input : call.inputs) {
      inputs_.push_back(nullptr);
      if (input.given) inputs_.back() = &operands_.emplace_back(operand_of(input));
    }
    for (const CustomTensor& output : call.outputs) outputs_.push_back(&operands_.emplace_back(operand_of(output)));
    call_ = {.size = sizeof(hone_call),
             .user = user,
             .node = node_.c_str(),
             .inputs = inputs_.data(),
             .input_count = inputs_.size(),
             .outputs = outputs_.data(),
             .output_count = outputs_.size(),
             .attributes = attributes_.pointers().data(),
             .attribute_count = attributes_.pointers().size(),
             .workspace = call.workspace,
             .workspace_bytes = call.workspace_bytes,
             .stream = call.stream,
             .workers = call.workers,
             .message = message_,
             .message_size = kMessageBytes};
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  template <typename Function>
  void run(const CustomOperator& op, const Function& function) {
    hone_status status = HONE_OK;
    try {
      status = function(&call_);
    } catch (const std::exception& exception) {
      throw Error(fmt::format("{} failed: {}", op.full_name, exception.what()));
    }
    if (status == HONE_OK) return;
    message_[kMessageBytes - 1] = '\0';
    throw Error(message_[0] != '\0' ? fmt::format("{} failed: {}", op.full_name, message_)
                                    : fmt::format("{} failed with the status {} and no message", op.full_name,
                                                  static_cast<int>(status)));
  }
  const hone_operand& output(size_t i) const { return *outputs_[i]; }

 private:
  AttributeList attributes_;
  std::string node_;
  std::vector<hone_operand> operands_;
  std::vector<const hone_operand*> inputs_;
  std::vector<hone_operand*> outputs_;
  char message_[kMessageBytes] = {};
  hone_call call_;
};

}  // namespace

void call_operator(const CustomOperator& op, void* user, hone_operator_fn function, CustomCall& call) {
  Frame frame(call, user);
  frame.run(op, function);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const hone_operand& output = frame.output(i);
    if (call.outputs[i].data != nullptr) continue;  // sizes were not asked for
    HONE_CHECK(output.rank >= 0 && output.rank <= HONE_MAX_RANK, "it gives result {} the rank {}", i, output.rank);
    call.outputs[i].dims.assign(output.dims, output.dims + output.rank);
  }
}

size_t call_workspace(const CustomOperator& op, void* user, hone_workspace_fn function, const CustomCall& call) {
  size_t bytes = 0;
  Frame(call, user).run(op, [&](const hone_call* given) { return function(given, &bytes); });
  return bytes;
}

}  // namespace hone::capi
