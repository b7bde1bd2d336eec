// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs in files: Polygraphy's JSON (arrays as base64 of .npy files; a file, or a folder with a file an iteration),
// .npz, .npy, .safetensors and raw bytes. What is written holds no time, so that the same run writes the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/json.h"
#include "tools/compare/values.h"

namespace hone {

/// What a runner computed.
struct RunResult {
  std::string runner;
  std::vector<TensorList> iterations;
};

/// One inference's inputs each. `paths`: Polygraphy's JSON, folders of them, archives, and "name:file" for single tensors (.npy or raw
/// bytes; those have the types and sizes of `known`). Throws StatusError for files that are not there or hold something else.
struct KnownTensor {
  std::string name;
  DType dtype = DType::f32;
  Dims dims;  // -1: the file says it
};
std::vector<TensorList> load_inputs(const std::vector<std::string>& paths, const std::vector<KnownTensor>& known);
void save_inputs(const std::string& path, const std::vector<TensorList>& iterations);

/// Raw bytes: a folder for each iteration, in it a file for each input. Files that are there are written over.
void save_blobs(const std::string& folder, const std::vector<TensorList>& iterations);

std::vector<RunResult> load_results(const std::vector<std::string>& paths);
void save_results(const std::string& path, const std::vector<RunResult>& results);

/// Whether a path names a folder that an iteration's files go to: no ending.
bool is_folder_path(const std::string& path);

Tensor tensor_from_npy(std::string_view bytes);
std::string npy_of(const Tensor& tensor);
TensorList read_npz(const std::string& path);
void write_npz(const std::string& path, const TensorList& tensors);
TensorList read_safetensors(const std::string& path);
void write_safetensors(const std::string& path, const TensorList& tensors);

std::string base64(std::string_view bytes);
/// Throws Error for what is none.
std::string from_base64(std::string_view text);

/// Polygraphy's form of an array, and back.
Json array_json(const Tensor& tensor);
Tensor array_from_json(const Json& json);

}  // namespace hone
