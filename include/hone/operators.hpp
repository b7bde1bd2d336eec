// SPDX-License-Identifier: Apache-2.0
//
// Operators of one's own (operators.h) in C++20: functions that throw, spans of elements.
//
//   hone::Operator clip("com.acme", "Clip", 1, 1, {"x0"});
//   clip.run = [](const hone::Call& call) { std::ranges::transform(call.read<float>(0), call.write<float>(0).begin(), ...); };
//   clip.add();
#pragma once

#include <algorithm>

#include "hone/hone.hpp"

namespace hone {

/// One call of an operator: what it reads, what it writes.
class Call {
 public:
  explicit Call(const hone_call& call) noexcept : call_(call) {}
  const hone_call& raw() const noexcept { return call_; }

  size_t inputs() const noexcept { return call_.input_count; }
  bool has(size_t input) const noexcept { return input < call_.input_count && call_.inputs[input] != nullptr; }
  /// Throws where it is left out.
  const hone_operand& input(size_t index) const {
    if (!has(index)) throw std::runtime_error("input " + std::to_string(index) + " is left out");
    return *call_.inputs[index];
  }
  hone_operand& output(size_t index) const {
    if (index >= call_.output_count) throw std::runtime_error("there is no output " + std::to_string(index));
    return *call_.outputs[index];
  }
  /// The elements; throws where they are of another type.
  template <typename T>
  std::span<const T> read(size_t index) const {
    return elements<const T>(input(index));
  }
  template <typename T>
  std::span<T> write(size_t index) const {
    return elements<T>(output(index));
  }
  static std::span<const int64_t> dims(const hone_operand& operand) noexcept {
    return {operand.dims, static_cast<size_t>(operand.rank)};
  }
  /// Where only sizes are asked for.
  void set_dims(size_t index, std::span<const int64_t> dims) const {
    if (dims.size() > HONE_MAX_RANK) throw std::runtime_error("an output has too many axes");
    output(index).rank = static_cast<int>(dims.size());
    std::copy(dims.begin(), dims.end(), output(index).dims);
  }
  /// Null where the node has none of that name.
  const hone_attribute* attribute(std::string_view name) const noexcept {
    for (size_t i = 0; i < call_.attribute_count; ++i)
      if (name == call_.attributes[i]->name) return call_.attributes[i];
    return nullptr;
  }
  int64_t integer(std::string_view name, int64_t otherwise = 0) const noexcept {
    const hone_attribute* found = attribute(name);
    return found != nullptr && found->kind == HONE_ATTRIBUTE_INTEGER ? found->integer : otherwise;
  }
  float real(std::string_view name, float otherwise = 0) const noexcept {
    const hone_attribute* found = attribute(name);
    return found != nullptr && found->kind == HONE_ATTRIBUTE_REAL ? found->real : otherwise;
  }
  std::span<std::byte> workspace() const noexcept {
    return {static_cast<std::byte*>(call_.workspace), call_.workspace_bytes};
  }

 private:
  template <typename T>
  static std::span<T> elements(const hone_operand& operand) {
    if (operand.dtype != dtype_of<std::remove_const_t<T>>()) throw std::runtime_error("an operand has another type");
    size_t count = 1;
    for (const int64_t dim : dims(operand)) count *= static_cast<size_t>(dim);
    return {static_cast<T*>(operand.data), count};
  }
  const hone_call& call_;
};

/// An operator as hone_operator describes it, with functions of C++; what they throw is the call's failure. It has to stay, where it is,
/// as long as models and engines use it.
class Operator {
 public:
  using Function = std::function<void(const Call& call)>;
  using Workspace = std::function<size_t(const Call& call)>;

  Operator(std::string domain, std::string name, int version, size_t inputs, std::vector<std::string> output_sizes = {})
      : domain_(std::move(domain)), name_(std::move(name)), sizes_(std::move(output_sizes)) {
    raw_ = detail::sized<hone_operator>();
    raw_.version = version;
    raw_.min_inputs = raw_.max_inputs = inputs;
    raw_.outputs = std::max<size_t>(1, sizes_.size());
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  Function run = {}, run_on_device = {}, sizes = {};
  Workspace workspace = {};

  /// Everything else: flags, types, layouts, attributes, CUDA source text. Names, sizes and functions are put in by raw().
  hone_operator& options() noexcept { return raw_; }
  const hone_operator& raw() {
    texts_.clear();
    for (const std::string& text : sizes_) texts_.push_back(text.c_str());
    raw_.domain = domain_.c_str();
    raw_.name = name_.c_str();
    raw_.user = this;
    if (!texts_.empty()) raw_.output_sizes = texts_.data();
    if (run) raw_.run = [](const hone_call* call) noexcept { return pass_on(call, of(call).run); };
    if (run_on_device)
      raw_.run_on_device = [](const hone_call* call) noexcept { return pass_on(call, of(call).run_on_device); };
    if (sizes) raw_.sizes = [](const hone_call* call) noexcept { return pass_on(call, of(call).sizes); };
    if (workspace)
      raw_.workspace = [](const hone_call* call, size_t* bytes) noexcept {
        return pass_on(call, [bytes](const Call& given) { *bytes = of(&given.raw()).workspace(given); });
      };
    return raw_;
  }
  void add() { check(hone_operator_register(&raw())); }
  void remove() { check(hone_operator_unregister(domain_.c_str(), name_.c_str())); }

 private:
  static const Operator& of(const hone_call* call) noexcept { return *static_cast<const Operator*>(call->user); }
  template <typename Body>
  static hone_status pass_on(const hone_call* call, const Body& body) noexcept {
    try {
      body(Call(*call));
      return HONE_OK;
    } catch (const std::exception& exception) {
      std::string_view text = exception.what();
      text = text.substr(0, call->message_size - 1);
      text.copy(call->message, text.size());
      call->message[text.size()] = '\0';
      return HONE_ERROR;
    }
  }

  std::string domain_, name_;
  std::vector<std::string> sizes_;
  std::vector<const char*> texts_;
  hone_operator raw_;
};

/// What a library of operators exports: extern "C" const hone_operator* const* hone_library_operators(int) { return list.data(); }
class OperatorLibrary {
 public:
  explicit OperatorLibrary(std::initializer_list<Operator*> operators) {
    for (Operator* each : operators) list_.push_back(&each->raw());
    list_.push_back(nullptr);
  }
  const hone_operator* const* data() const noexcept { return list_.data(); }

 private:
  std::vector<const hone_operator*> list_;
};

/// Opens a library and registers its operators.
inline void open_operators(const std::string& path, unsigned flags = 0, const Log& log = {}) {
  const hone_log raw = log.raw();
  check(hone_operator_library_open(path.c_str(), flags, &raw));
}

}  // namespace hone
