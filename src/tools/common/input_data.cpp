// SPDX-License-Identifier: Apache-2.0
#include "tools/common/input_data.h"

#include "base/file.h"
#include "base/text.h"
#include "tensor/layout.h"
#include "tools/files/npy.h"

namespace hone {

const std::string* input_file(const NamedTexts& files, const std::string& tensor) {
  for (const auto& [name, file] : files)
    if (name == tensor) return &file;
  for (const auto& [name, file] : files)
    if (fits_pattern(name, tensor)) return &file;
  return nullptr;
}

void check_input_files(const NamedTexts& files, std::span<const NetworkTensor> tensors) {
  for (const auto& [name, file] : files) {
    std::vector<std::string> inputs;
    bool found = false;
    for (const NetworkTensor& io : tensors) {
      if (!io.is_input) continue;
      inputs.push_back(io.name);
      found |= fits_pattern(name, io.name);
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

void load_values(const std::string& path, const NetworkTensor& tensor, const Dims& dims, std::span<std::byte> memory) {
  const bool archive = path.ends_with(".npz");
  if (!archive && !path.ends_with(".npy")) return load_raw(path, memory);
  with_note(
      [&] { return fmt::format("reading {} for {}", path, tensor.name); },
      [&] {
        const auto file = MappedFile::open(path);
        const NpyArray array = archive ? parse_npz(file->bytes(), tensor.name) : parse_npy(file->bytes());
        const bool codes = is_small(tensor.dtype) && array.dtype == DType::u8;  // NumPy has no such types
        if (array.dtype != tensor.dtype && !codes)
          throw Error(fmt::format("the array holds {}, the tensor {}", name_of(array.dtype), name_of(tensor.dtype)),
                      "convert it with array.astype(...), or choose the tensor's type with --inputIOFormats");
        if (array.dims != dims)
          throw Error(fmt::format("the array has the shape {}, the tensor {}", join_dims(array.dims), join_dims(dims)),
                      "--shapes sets the shape that runs");
        std::memset(memory.data(), 0, memory.size());
        convert_layout(array.bytes.data(), memory.data(), tensor.dtype, dims, Layout::linear, tensor.layout);
      });
}

}  // namespace hone
