// SPDX-License-Identifier: Apache-2.0
#include "tools/common/input_data.h"

#include <algorithm>
#include <random>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "tensor/layout.h"
#include "tools/common/npy.h"

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
  const double unit = static_cast<double>(bits >> 11) / 9007199254740992.0;  // [0, 1), the same with every library
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return T(static_cast<float>(2 * unit - 1));
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(2 * unit - 1);
  else if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) return static_cast<T>(bits >> 32);
  else return static_cast<T>(bits >> 63);
}

template <typename T>
T draw_from(std::mt19937_64& engine, ValueRange range) {
  const uint64_t count = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low) + 1;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(range.low) + (count == 0 ? engine() : engine() % count));
  else return T();
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
    if (found) continue;
    const std::vector<std::string_view> names(inputs.begin(), inputs.end());
    throw Error(fmt::format("Invalid tensor names found in --loadInputs flag. There is no input called {}", name),
                fmt::format("did you mean {}? The inputs are {}", nearest(name, names), join(inputs, ", ")));
  }
}

void load_raw(const std::string& path, std::span<std::byte> memory) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const Error& error) {
    throw Error(fmt::format("Cannot open file {}! {}", path, error.message()),
                "--loadInputs takes name:file with a path from this folder");
  }
  if (content.size() < memory.size())
    throw Error(fmt::format("Unexpected file size for input file: {}. The input takes {} bytes, the file holds {}",
                            path, memory.size(), content.size()),
                "the file must hold the values of the whole tensor at the shape that runs, in the engine's type; "
                "--shapes sets the shape");
  std::memcpy(memory.data(), content.data(), memory.size());
}

void load_values(const std::string& path, const IoTensor& tensor, const Dims& dims, std::span<std::byte> memory) {
  const bool archive = path.ends_with(".npz");
  if (!archive && !path.ends_with(".npy")) return load_raw(path, memory);
  with_note([&] { return fmt::format("reading {} for {}", path, tensor.name); },
            [&] {
              const auto file = MappedFile::open(path);
              const NpyArray array = archive ? parse_npz(file->bytes(), tensor.name) : parse_npy(file->bytes());
              if (array.dtype != tensor.type.dtype)
                throw Error(
                    fmt::format("the array holds {}, the tensor {}", name_of(array.dtype), name_of(tensor.type.dtype)),
                    "convert it with array.astype(...), or choose the tensor's type with --inputIOFormats");
              if (array.dims != dims)
                throw Error(
                    fmt::format("the array has the shape {}, the tensor {}", join_dims(array.dims), join_dims(dims)),
                    "--shapes sets the shape that runs");
              std::memset(memory.data(), 0, memory.size());
              convert_layout(array.bytes.data(), memory.data(), array.dtype, dims, Layout::linear, tensor.type.layout);
            });
}

void fill_random(const IoTensor& input, const Dims& dims, std::span<std::byte> memory, uint64_t seed) {
  const DType dtype = input.type.dtype;
  std::mt19937_64 engine(seed ^ hash64(input.name));
  AlignedBuffer linear(static_cast<size_t>(byte_size(dtype, dims)));
  visit(dtype, [&]<typename T>() {
    T* values = reinterpret_cast<T*>(linear.data());
    std::generate_n(values, linear.size() / sizeof(T), [&] {
      return input.range && std::is_integral_v<T> ? draw_from<T>(engine, *input.range) : draw<T>(engine);
    });
  });
  std::memset(memory.data(), 0, memory.size());
  convert_layout(linear.data(), memory.data(), dtype, dims, Layout::linear, input.type.layout);
}

}  // namespace hone
