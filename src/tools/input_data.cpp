// SPDX-License-Identifier: Apache-2.0
#include "tools/input_data.h"

#include <algorithm>
#include <random>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "tensor/layout.h"

namespace hone {
namespace {

bool fits(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

template <typename T>
T draw(std::mt19937_64& engine) {
  const uint64_t bits = engine();
  const double unit = static_cast<double>(bits >> 11) / 9007199254740992.0;      // [0, 1), the same with every library
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return T(static_cast<float>(2 * unit - 1));
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(2 * unit - 1);
  else if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) return static_cast<T>(bits >> 32);
  else return static_cast<T>(bits >> 63);
}

}  // namespace

const std::string* input_file(const NamedTexts& files, const std::string& tensor) {
  for (const auto& [name, file] : files)
    if (name == tensor) return &file;
  for (const auto& [name, file] : files)
    if (fits(name, tensor)) return &file;
  return nullptr;
}

void check_input_files(const NamedTexts& files, const Plan& plan) {
  for (const auto& [name, file] : files) {
    std::vector<std::string> inputs;
    bool found = false;
    for (const IoTensor& io : plan.io) {
      if (!io.is_input) continue;
      inputs.push_back(io.name);
      found |= fits(name, io.name);
    }
    if (!found) throw Error(fmt::format("Invalid tensor names found in --loadInputs flag. There is no input called {}", name), "the inputs are " + join(inputs, ", "));
  }
}

void load_raw(const std::string& path, std::span<std::byte> memory) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const Error& error) {
    throw Error(fmt::format("Cannot open file {}! {}", path, error.message()), "--loadInputs takes name:file with a path from this folder");
  }
  if (content.size() < memory.size())
    throw Error(fmt::format("Unexpected file size for input file: {}. The input takes {} bytes, the file holds {}", path, memory.size(), content.size()),
                "the file must hold the values of the whole tensor at the shape that runs, in the engine's type; --shapes sets the shape");
  std::memcpy(memory.data(), content.data(), memory.size());
}

void fill_random(const std::string& tensor, DType dtype, const Dims& dims, Layout layout, std::span<std::byte> memory) {
  std::mt19937_64 engine(kRandomSeed ^ hash64(tensor));
  AlignedBuffer linear(static_cast<size_t>(byte_size(dtype, dims)));
  visit(dtype, [&]<typename T>() {
    T* values = reinterpret_cast<T*>(linear.data());
    std::generate_n(values, linear.size() / sizeof(T), [&] { return draw<T>(engine); });
  });
  std::memset(memory.data(), 0, memory.size());
  convert_layout(linear.data(), memory.data(), dtype, dims, Layout::linear, layout);
}

}  // namespace hone
