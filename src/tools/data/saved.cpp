// SPDX-License-Identifier: Apache-2.0
#include "tools/data/saved.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

/// The file itself, or the first of a folder.
std::string first_file(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  std::string first;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".json" && (first.empty() || entry.path().string() < first))
      first = entry.path().string();
  return first;
}

}  // namespace

SavedData read_saved(const std::string& path) {
  need_file(path);
  SavedData data;
  if (path.ends_with(".npy")) {
    data.inputs.push_back({{fs::path(path).stem().string(), tensor_from_npy(read_file(path))}});
    return data;
  }
  const bool archive = path.ends_with(".npz") || path.ends_with(".safetensors");
  const std::string file = archive ? "" : first_file(path);
  if (!file.empty()) {
    Json json;
    try {
      json = parse_python_json(read_file(file), file);
    } catch (const Error& error) {
      throw StatusError(ExitStatus::no_file, fmt::format("{}: {}", file, error.message()),
                        "what hone run and Polygraphy write can be read; and .npz, .npy, .safetensors");
    }
    if (is_accuracy(json)) data.kind = SavedData::Kind::accuracy;
    else if (json.is_object() && json.contains("lst")) data.kind = SavedData::Kind::results;
  }
  if (data.kind == SavedData::Kind::accuracy) data.accuracy = read_accuracy(path);
  else if (data.kind == SavedData::Kind::results) data.results = load_results({path});
  else data.inputs = load_inputs({path}, {});
  return data;
}

}  // namespace hone
