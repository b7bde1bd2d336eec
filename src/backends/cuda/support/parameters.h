// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a kernel, declared once for host and device: a struct that lists them in order, as its fields.
//
//   struct PoolParameters {
//     static constexpr std::string_view kKernel = "pool";
//     Reads x;
//     Writes y;
//     Window window;         // itself a struct with a name and fields
//     int32_t channels = 0;
//     static void fields(auto& self, auto& visit) {
//       visit("x", self.x, "T");
//       visit("y", self.y, "T");
//       visit("window", self.window);
//       visit("channels", self.channels);
//     }
//   };
//
// declare<PoolParameters>() is the text that stands before the source: struct Window, and POOL_PARAMETERS, which the kernel
// names as its parameter list. launch_of() fills a launch's arguments from the same fields. What is copied to the device as a
// whole (Window) is held against the layout that its fields have there.
#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "backends/cuda/run/kernel.h"
#include "base/error.h"

namespace hone::cuda {

/// A struct that host and device share: `kName`, and fields of scalars, of arrays and of such structs.
template <typename T>
concept DeviceStruct = requires {
  std::string_view(T::kName);
};
template <typename T>
concept DeviceScalar =
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, float> || std::is_same_v<T, double>;

template <typename T>
constexpr std::string_view device_name() {
  if constexpr (DeviceStruct<T>) return T::kName;
  else {
    static_assert(DeviceScalar<T>, "the device has no such type");
    if constexpr (std::is_same_v<T, int32_t>) return "int";
    else if constexpr (std::is_same_v<T, int64_t>) return "i64";
    else return std::is_same_v<T, float> ? "float" : "double";
  }
}

template <typename T>
std::string extents_text() {
  if constexpr (std::is_array_v<T>)
    return fmt::format("[{}]", std::extent_v<T>) + extents_text<std::remove_extent_t<T>>();
  else return {};
}

/// The text of structs and parameter lists, each once, inner structs first.
class Declarations {
 public:
  template <DeviceStruct T>
  void add_struct();
  template <typename List>
  void add_list(const List& list);
  const std::string& text() const { return text_; }

 private:
  template <DeviceStruct T>
  class Members;
  class Parameters;
  std::set<std::string_view> structs_;
  std::string text_;
};

/// Throws InternalError where the members lie otherwise on the device than here.
template <DeviceStruct T>
class Declarations::Members {
 public:
  Members(Declarations& out, const T& value) : out_(out), start_(reinterpret_cast<const std::byte*>(&value)) {}
  template <typename Member>
  void operator()(std::string_view name, const Member& member) {
    using Element = std::remove_all_extents_t<Member>;
    if constexpr (DeviceStruct<Element>) out_.add_struct<Element>();
    text += fmt::format("  {} {}{};\n", device_name<Element>(), name, extents_text<Member>());
    align(alignof(Member));
    HONE_ASSERT(reinterpret_cast<const std::byte*>(&member) == start_ + end_, "{}::{} lies elsewhere on the device",
                T::kName, name);
    end_ += sizeof(Member);
  }
  void finish() {
    align(alignof(T));
    HONE_ASSERT(end_ == sizeof(T), "{} has members that are not listed", T::kName);
  }
  std::string text;

 private:
  void align(size_t to) { end_ = (end_ + to - 1) / to * to; }
  Declarations& out_;
  const std::byte* start_;
  size_t end_ = 0;
};

class Declarations::Parameters {
 public:
  explicit Parameters(Declarations& out) : out_(out) {}
  void operator()(std::string_view name, const Reads&, std::string_view element) {
    add(fmt::format("const {}* {}", element, name));
  }
  void operator()(std::string_view name, const Writes&, std::string_view element) {
    add(fmt::format("{}* {}", element, name));
  }
  void operator()(std::string_view name, const MappedOperand&) {
    if (out_.structs_.insert("TensorMap").second)
      out_.text_ += "struct alignas(64) TensorMap {\n  char bytes[128];\n};\n";
    add(fmt::format("const __grid_constant__ TensorMap {}", name));
  }
  template <typename T>
  void operator()(std::string_view name, const T&) {
    if constexpr (DeviceStruct<T>) out_.add_struct<T>();
    add(fmt::format("{}{} {}", DeviceStruct<T> ? "const " : "", device_name<T>(), name));
  }
  std::string text;

 private:
  void add(const std::string& parameter) { text += (text.empty() ? "" : ", ") + parameter; }
  Declarations& out_;
};

template <DeviceStruct T>
void Declarations::add_struct() {
  if (!structs_.insert(T::kName).second) return;
  const T value{};
  Members<T> visit(*this, value);
  T::fields(value, visit);
  visit.finish();
  text_ += fmt::format("struct {} {{\n{}}};\n", T::kName, visit.text);
}

/// A list whose pointers' element is a parameter of the source's own macro names it: `kElement`.
template <typename List>
void Declarations::add_list(const List& list) {
  Parameters visit(*this);
  List::fields(list, visit);
  std::string name(List::kKernel);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  text_ += fmt::format("#define {}_PARAMETERS", name);
  if constexpr (requires { List::kElement; }) text_ += fmt::format("({})", List::kElement);
  text_ += fmt::format(" {}\n", visit.text);
}

/// What stands before the source of kernels with these parameters.
template <typename... Lists>
std::string declare() {
  Declarations all;
  (all.add_list(Lists{}), ...);
  return all.text();
}

class ArgumentFiller {
 public:
  explicit ArgumentFiller(Arguments& arguments) : arguments_(arguments) {}
  void operator()(std::string_view, const Pointer& pointer, std::string_view) { arguments_.pointer(pointer); }
  void operator()(std::string_view, const MappedOperand& operand) { arguments_.mapped(operand); }
  template <typename T>
  void operator()(std::string_view, const T& value) {
    arguments_.value(value);
  }

 private:
  Arguments& arguments_;
};

/// How many blocks of how many threads, and the shared memory of each beyond what the source says.
struct Blocks {
  Grid grid;
  unsigned threads = 256, shared_bytes = 0;
};

/// A launch of the kernel that the list is for; `variant` completes its name where several share a list ("_16").
template <typename List>
GridLaunch launch_of(const Module& module, const List& list, const Blocks& blocks, std::string_view variant = {}) {
  GridLaunch launch{.function = module.function(std::string(List::kKernel) + std::string(variant)),
                    .grid = blocks.grid,
                    .block = blocks.threads,
                    .shared_bytes = blocks.shared_bytes,
                    .arguments = {}};
  ArgumentFiller visit(launch.arguments);
  List::fields(list, visit);
  return launch;
}

}  // namespace hone::cuda
