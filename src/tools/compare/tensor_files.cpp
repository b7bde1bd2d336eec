// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "tools/companion/exit_status.h"
#include "tools/files/npy.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw StatusError(
      ExitStatus::no_file, fmt::format("{}: {}", path, why),
      "what hone run and Polygraphy write can be read: --save-inputs, --save-outputs; and .npz, .npy, .safetensors");
}

Json read_json(const std::string& path) {
  need_file(path);
  try {
    return parse_json(read_file(path), path);
  } catch (const Error& error) {
    refuse(path, error.message());
  }
}

/// A folder's JSON files by name, or the file itself.
std::vector<std::string> files_of(const std::string& path, std::string_view ending) {
  need_file(path);
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ending) files.push_back(entry.path().string());
  std::ranges::sort(files);
  if (files.empty()) refuse(path, fmt::format("the folder holds no {} file", ending));
  return files;
}

void make_new_folder(const std::string& path) {
  if (fs::exists(path) && (!fs::is_directory(path) || !fs::is_empty(path)))
    throw UsageError(fmt::format("the folder {} is not empty", path),
                     "name a new one: old iterations would stay among the new");
  fs::create_directories(path);
}

std::string iteration_file(const std::string& folder, size_t iteration) {
  return (fs::path(folder) / fmt::format("{:010}.json", iteration)).string();
}

TensorList feed_from_json(const Json& json) {
  TensorList list;
  if (!json.is_object()) throw Error("an iteration is no object of arrays");
  for (const auto& [name, array] : json.items())
    with_note([&name = name] { return "reading the array " + name; },
              [&, &name = name, &array = array] {
                list.push_back({name, array_from_json(array)});
              });
  return list;
}

Json feed_json(const TensorList& list) {
  Json json = Json::object();
  for (const NamedTensor& each : list) json[each.name] = array_json(each.tensor);
  return json;
}

Json iteration_json(const std::string& runner, const TensorList& outputs) {
  Json values = Json::object();
  for (const NamedTensor& each : outputs)
    values[each.name] = {{"values", array_json(each.tensor)}, {"polygraphy_class", "LazyArray"}};
  return {{"outputs", values}, {"runtime", 0.0}, {"runner_name", runner}, {"polygraphy_class", "IterationResult"}};
}

TensorList outputs_from_json(const Json& iteration) {
  TensorList list;
  for (const auto& [name, value] : member(iteration, "outputs").items())
    with_note([&name = name] { return "reading the array " + name; },
              [&, &name = name, &value = value] {
                list.push_back({name, array_from_json(value.contains("values") ? value.at("values") : value)});
              });
  return list;
}

void add_results(const Json& json, std::vector<RunResult>& results) {
  for (const Json& entry : list_member(json, "lst")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array())
      throw Error("a run is no pair of a name and iterations");
    const auto name = entry[0].get<std::string>();
    auto found = std::ranges::find(results, name, &RunResult::runner);
    if (found == results.end()) found = results.insert(results.end(), {name, {}});
    for (const Json& iteration : entry[1]) found->iterations.push_back(outputs_from_json(iteration));
  }
}

Json results_json(const std::vector<RunResult>& results, size_t first, size_t count) {
  Json list = Json::array();
  for (const RunResult& result : results) {
    Json iterations = Json::array();
    for (size_t i = first; i < std::min(first + count, result.iterations.size()); ++i)
      iterations.push_back(iteration_json(result.runner, result.iterations[i]));
    list.push_back(Json::array({result.runner, iterations}));
  }
  return {{"lst", list}, {"polygraphy_class", "RunResults"}};
}

Tensor raw_tensor(const std::string& path, const KnownTensor& known) {
  std::string bytes = read_file(path);
  Dims dims = known.dims;
  const auto size = static_cast<int64_t>(size_of(known.dtype));
  int64_t fixed = 1, open = 0;
  for (const int64_t each : dims) {
    if (each < 0) ++open;
    else fixed *= each;
  }
  if (open == 1 && fixed > 0 && static_cast<int64_t>(bytes.size()) % (fixed * size) == 0)
    for (int64_t& each : dims)
      if (each < 0) each = static_cast<int64_t>(bytes.size()) / (fixed * size);
  if (std::ranges::any_of(dims, [](int64_t each) { return each < 0; }) ||
      elements(dims) * size != static_cast<int64_t>(bytes.size()))
    throw UsageError(fmt::format("{} has {} bytes, which is no {} {}", path, bytes.size(), numpy_word(known.dtype),
                                 shape_text(dims)),
                     fmt::format("--input-shapes {}:[...] says the sizes", known.name));
  return Tensor(known.dtype, dims, Blob::copy(bytes));
}

/// "name:file", where the file is no array of several tensors.
std::optional<NamedTensor> single_tensor(const std::string& word, const std::vector<KnownTensor>& known) {
  for (const KnownTensor& each : known) {
    if (!word.starts_with(each.name + ":")) continue;
    const std::string path = word.substr(each.name.size() + 1);
    need_file(path);
    if (path.ends_with(".npy")) return NamedTensor{each.name, tensor_from_npy(read_file(path))};
    if (path.ends_with(".npz")) {
      for (NamedTensor& tensor : read_npz(path))
        if (tensor.name == each.name) return std::move(tensor);
      refuse(path, fmt::format("there is no array called {}", each.name));
    }
    return NamedTensor{each.name, raw_tensor(path, each)};
  }
  return std::nullopt;
}

}  // namespace

bool is_folder_path(const std::string& path) { return fs::is_directory(path) || fs::path(path).extension().empty(); }

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kAlphabet[word >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text) {
  std::array<int, 256> codes{};
  codes.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) codes[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t word = 0;
  int bits = 0;
  for (const char each : text) {
    const int code = codes[static_cast<unsigned char>(each)];
    if (code < 0) throw Error("an array is no base64");
    word = word << 6 | static_cast<uint32_t>(code);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255u);
  }
  return bytes;
}

Tensor tensor_from_npy(std::string_view bytes) {
  const NpyArray array = parse_npy(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return Tensor(array.dtype, array.dims, Blob::copy(array.bytes));
}

std::string npy_of(const Tensor& tensor) { return npy_text(tensor.dtype(), tensor.dims(), tensor.bytes()); }

Json array_json(const Tensor& tensor) {
  if (is_object(tensor.dtype())) throw Error("strings and sequences cannot be saved as arrays");
  return {{"array", base64(npy_of(tensor))}, {"polygraphy_class", "ndarray"}};
}

Tensor array_from_json(const Json& json) {
  // Of Polygraphy's earlier versions: the array's class is the key.
  for (const char* key : {"array", "tensor"})
    if (json.is_object() && json.contains(key) && json.at(key).is_string())
      return tensor_from_npy(from_base64(json.at(key).get_ref<const std::string&>()));
  if (json.is_object() && json.contains("values")) return array_from_json(json.at("values"));
  throw Error("this is no array as Polygraphy writes it");
}

std::vector<TensorList> load_inputs(const std::vector<std::string>& paths, const std::vector<KnownTensor>& known) {
  std::vector<TensorList> iterations;
  TensorList singles;
  for (const std::string& path : paths) {
    if (std::optional<NamedTensor> single = single_tensor(path, known)) {
      singles.push_back(std::move(*single));
      continue;
    }
    need_file(path);
    if (path.ends_with(".npz")) {
      iterations.push_back(read_npz(path));
    } else if (path.ends_with(".safetensors")) {
      iterations.push_back(read_safetensors(path));
    } else if (path.ends_with(".npy")) {
      if (known.size() != 1)
        throw UsageError(fmt::format("{} is one array, and the model has {} inputs", path, known.size()),
                         "say which: --load-inputs NAME:" + path);
      iterations.push_back({{known[0].name, tensor_from_npy(read_file(path))}});
    } else {
      for (const std::string& file : files_of(path, ".json")) {
        const Json json = read_json(file);
        try {
          if (json.is_array())
            for (const Json& iteration : json) iterations.push_back(feed_from_json(iteration));
          else if (json.contains("lst"))
            refuse(file, "these are results, not inputs; hone data to-input makes inputs of them");
          else iterations.push_back(feed_from_json(json));
        } catch (const StatusError&) {
          throw;
        } catch (const Error& error) {
          refuse(file, error.message());
        }
      }
    }
  }
  if (!singles.empty() && iterations.empty()) iterations.emplace_back();
  for (TensorList& iteration : iterations) iteration.insert(iteration.end(), singles.begin(), singles.end());
  return iterations;
}

void save_inputs(const std::string& path, const std::vector<TensorList>& iterations) {
  if (path.ends_with(".npz") || path.ends_with(".safetensors")) {
    if (iterations.size() != 1)
      throw UsageError(fmt::format("{} holds one iteration, and there are {}", path, iterations.size()),
                       "name a .json file or a folder");
    return path.ends_with(".npz") ? write_npz(path, iterations[0]) : write_safetensors(path, iterations[0]);
  }
  if (!is_folder_path(path)) {
    Json list = Json::array();
    for (const TensorList& iteration : iterations) list.push_back(feed_json(iteration));
    return write_file(path, list.dump(4));
  }
  make_new_folder(path);
  for (size_t i = 0; i < iterations.size(); ++i) write_file(iteration_file(path, i), feed_json(iterations[i]).dump(4));
}

void save_blobs(const std::string& folder, const std::vector<TensorList>& iterations) {
  for (size_t i = 0; i < iterations.size(); ++i) {
    const fs::path place = fs::path(folder) / std::to_string(i);
    fs::create_directories(place);
    for (const NamedTensor& each : iterations[i]) {
      std::string name = each.name;
      std::ranges::replace(name, '/', '_');
      const auto bytes = each.tensor.bytes();
      write_file((place / (name + ".bin")).string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
}

std::vector<RunResult> load_results(const std::vector<std::string>& paths) {
  std::vector<RunResult> results;
  for (const std::string& path : paths) {
    if (path.ends_with(".npz") || path.ends_with(".safetensors")) {
      need_file(path);
      results.push_back(
          {fs::path(path).filename().string(), {path.ends_with(".npz") ? read_npz(path) : read_safetensors(path)}});
      continue;
    }
    std::vector<RunResult> of_path;
    for (const std::string& file : files_of(path, ".json")) {
      const Json json = read_json(file);
      try {
        if (!json.is_object()) throw Error("these are no results of a run");
        add_results(json, of_path);
      } catch (const Error& error) {
        refuse(file, error.message());
      }
    }
    std::ranges::move(of_path, std::back_inserter(results));
  }
  return results;
}

void save_results(const std::string& path, const std::vector<RunResult>& results) {
  size_t iterations = 0;
  for (const RunResult& result : results) iterations = std::max(iterations, result.iterations.size());
  if (path.ends_with(".npz") || path.ends_with(".safetensors")) {
    if (results.size() != 1 || iterations != 1)
      throw UsageError(fmt::format("{} holds one iteration of one runner", path), "name a .json file or a folder");
    const TensorList& outputs = results[0].iterations[0];
    return path.ends_with(".npz") ? write_npz(path, outputs) : write_safetensors(path, outputs);
  }
  if (!is_folder_path(path)) return write_file(path, results_json(results, 0, iterations).dump(4));
  make_new_folder(path);
  for (size_t i = 0; i < iterations; ++i) write_file(iteration_file(path, i), results_json(results, i, 1).dump(4));
}

}  // namespace hone
