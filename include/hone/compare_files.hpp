// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs of compare.hpp in files: Polygraphy's JSON (arrays as base64 of .npy files; a file, or a folder with one for each
// iteration), single .npy files and raw bytes. `hone data merge FILE -o FILE.json` makes JSON of archives.
#pragma once

#include <filesystem>

#include "hone/compare.hpp"

namespace hone::compare {

namespace detail {

/// As much of JSON as these files have: texts, lists, objects in their order; what else there is stays text.
struct Json {
  std::string text;
  std::vector<std::pair<std::string, Json>> members;  // of lists without names
  bool is_text = false, is_list = false;

  const Json* find(std::string_view name) const {
    for (const auto& [each, value] : members)
      if (!is_list && each == name) return &value;
    return nullptr;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  Json whole() {
    Json json = value(0);
    if (skip() != '\0') refuse();
    return json;
  }

 private:
  [[noreturn]] void refuse() const { throw std::runtime_error("this is no JSON at byte " + std::to_string(at_)); }
  char skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  Json value(int depth) {
    const char first = skip();
    Json json;
    if (first == '"') {
      json.is_text = true;
      json.text = string();
    } else if (first == '{' || first == '[') {
      if (depth > 64) refuse();
      ++at_;
      const char end = first == '{' ? '}' : ']';
      json.is_list = first == '[';
      for (bool more = skip() != end; more;) {
        std::string name;
        if (first == '{') {
          if (skip() != '"') refuse();
          name = string();
          if (skip() != ':') refuse();
          ++at_;
        }
        json.members.emplace_back(name, value(depth + 1));
        more = skip() == ',';
        if (more) ++at_;
        else if (skip() != end) refuse();
      }
      ++at_;
    } else {
      const size_t start = at_;
      while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos) ++at_;
      if (at_ == start) refuse();
      json.text = text_.substr(start, at_ - start);
    }
    return json;
  }
  std::string string() {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') {
        if (++at_ == text_.size()) refuse();
        const size_t known = std::string_view("ntrbf").find(text_[at_]);
        if (text_[at_] == 'u') throw std::runtime_error("names with \\u are not read here");
        out += known == std::string_view::npos ? text_[at_] : "\n\t\r\b\f"[known];
      } else {
        out += text_[at_];
      }
    }
    if (at_ == text_.size()) refuse();
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string from_base64(std::string_view text) {
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char each : text) {
    if (each == '=') break;
    const size_t code = kBase64.find(each);
    if (code == std::string_view::npos) throw std::runtime_error("an array is no base64");
    word = word << 6 | static_cast<uint32_t>(code);
    if ((bits += 6) < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255u);
  }
  return bytes;
}
inline std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kBase64[word >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

constexpr std::pair<hone_dtype, std::string_view> kNpyTypes[] = {
    {HONE_F64, "f8"}, {HONE_F32, "f4"}, {HONE_F16, "f2"}, {HONE_I64, "i8"}, {HONE_I32, "i4"}, {HONE_I16, "i2"},
    {HONE_I8, "i1"},  {HONE_U64, "u8"}, {HONE_U32, "u4"}, {HONE_U16, "u2"}, {HONE_U8, "u1"},  {HONE_BOOL, "b1"}};

/// Behind `key` in the header, up to one of `ends`.
inline std::string npy_word(const std::string& header, std::string_view key, std::string_view ends) {
  const size_t at = header.find(key);
  if (at == std::string::npos) throw std::runtime_error("an .npy file lacks " + std::string(key));
  const size_t start = at + key.size(), end = header.find_first_of(ends, start);
  return header.substr(start, end == std::string::npos ? end : end - start);
}

inline Array array_of_npy(std::string_view file) {
  if (file.size() < 12 || file.substr(0, 6) != "\x93NUMPY") throw std::runtime_error("this is no .npy file");
  const bool first = file[6] == 1;
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file[i])); };
  const size_t length = first ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  const size_t start = (first ? 10 : 12) + length;
  if (start > file.size()) throw std::runtime_error("an .npy file is cut");
  std::string header(file.substr(0, start));
  std::erase(header, ' ');
  const std::string type = npy_word(header, "'descr':'", "'"), sizes = npy_word(header, "'shape':(", ")");
  const auto known = std::ranges::find_if(kNpyTypes, [&](const auto& each) { return type.ends_with(each.second); });
  if (known == std::end(kNpyTypes) || type.starts_with(">") || header.find("'fortran_order':True") != std::string::npos)
    throw std::runtime_error("an .npy file of " + type + " is not read here");
  Array array{known->first};
  for (size_t at = 0; at < sizes.size();) {
    const size_t comma = std::min(sizes.find(',', at), sizes.size());
    array.sizes.push_back(std::stoll(sizes.substr(at, comma - at)));
    at = comma + 1;
  }
  const std::string_view elements = file.substr(start);
  if (count_of(array.sizes) * bytes_of(array.dtype) != elements.size()) throw std::runtime_error("an .npy file is cut");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(elements));
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

inline std::string npy_of(const Array& array) {
  const auto known = std::ranges::find_if(kNpyTypes, [&](const auto& each) { return each.first == array.dtype; });
  if (known == std::end(kNpyTypes)) throw std::runtime_error("arrays of this type have no place in .npy files");
  std::string sizes;
  for (const int64_t size : array.sizes) sizes += std::to_string(size) + ", ";
  std::string header = "{'descr': '" + std::string(bytes_of(array.dtype) == 1 ? "|" : "<") +
                       std::string(known->second) + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += {static_cast<char>(header.size() & 255u), static_cast<char>(header.size() >> 8)};
  file += header;
  return file.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
}

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}
inline void write(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

inline Array array_of_json(const Json& json) {
  for (const char* key : {"array", "tensor", "values"})
    if (const Json* inner = json.find(key))
      return inner->is_text ? array_of_npy(from_base64(inner->text)) : array_of_json(*inner);
  throw std::runtime_error("this is no array as Polygraphy writes it");
}
inline Feed feed_of_json(const Json& json) {
  Feed feed;
  for (const auto& [name, array] : json.members) feed.emplace(name, array_of_json(array));
  return feed;
}

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char each : text) out += each == '"' || each == '\\' ? std::string("\\") + each : std::string(1, each);
  return out + "\"";
}
inline std::string json_of(const Array& array) {
  return R"({"array": ")" + base64(npy_of(array)) + R"(", "polygraphy_class": "ndarray"})";
}

/// "{...}" of name and text pairs, or without names "[...]".
template <typename List, typename Text>
std::string joined(const List& list, const char* ends, const Text& text) {
  std::string out(1, ends[0]), between;
  for (const auto& each : list) out += std::exchange(between, ", ") + text(each);
  return out + ends[1];
}

inline std::string json_of_feed(const Feed& feed) {
  return joined(feed, "{}", [](const auto& each) { return quoted(each.first) + ": " + json_of(each.second); });
}

/// Of iterations from `first` on.
inline std::string json_of_results(const Results& results, size_t first, size_t count) {
  const auto iteration = [](const std::string& run, const Feed& outputs) {
    return R"({"outputs": )" +
           joined(outputs, "{}",
                  [](const auto& each) {
                    return quoted(each.first) + R"(: {"values": )" + json_of(each.second) +
                           R"(, "polygraphy_class": "LazyArray"})";
                  }) +
           R"(, "runtime": 0.0, "runner_name": )" + quoted(run) + R"(, "polygraphy_class": "IterationResult"})";
  };
  return R"({"lst": )" +
         joined(results, "[]",
                [&](const auto& run) {
                  const size_t from = std::min(first, run.second.size()),
                               to = std::min(first + count, run.second.size());
                  return "[" + quoted(run.first) + ", " +
                         joined(std::span(run.second).subspan(from, to - from), "[]",
                                [&](const Feed& each) { return iteration(run.first, each); }) +
                         "]";
                }) +
         R"(, "polygraphy_class": "RunResults"})";
}

inline std::vector<Json> json_files(const std::string& path) {
  std::vector<std::string> files{path};
  if (std::filesystem::is_directory(path)) {
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    std::ranges::sort(files);
  }
  std::vector<Json> read;
  for (const std::string& file : files) read.push_back(JsonReader(contents_of(file)).whole());
  if (read.empty()) throw std::runtime_error("the folder " + path + " holds no .json file");
  return read;
}

/// A size of -1 is what the bytes make of it.
inline std::vector<int64_t> sizes_of_raw(const Input& input, size_t bytes) {
  std::vector<int64_t> sizes = input.sizes;
  const auto open = std::ranges::find(sizes, -1);
  if (open == sizes.end()) return sizes;
  *open = 1;
  const size_t row = count_of(sizes) * bytes_of(input.dtype);
  *open = row == 0 ? 0 : static_cast<int64_t>(bytes / row);
  return sizes;
}

/// Into one file, or for a path without an ending into a new folder, one for each iteration.
template <typename Text>
void write_iterations(const std::string& path, size_t count, const std::string& whole, const Text& text) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path) && !fs::path(path).extension().empty()) return write(path, whole);
  fs::create_directories(path);
  if (!fs::is_empty(path)) throw std::runtime_error("the folder " + path + " is not empty: name a new one");
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    write((fs::path(path) / (std::string(10 - std::min<size_t>(10, number.size()), '0') + number + ".json")).string(),
          text(i));
  }
}

}  // namespace detail

/// An entry for each iteration. "name:file" is one array, as .npy or as raw bytes whose type and sizes `inputs` say.
inline std::vector<Feed> load_inputs(const std::vector<std::string>& paths, const Inputs& inputs) {
  std::vector<Feed> feeds;
  Feed singles;
  for (const std::string& path : paths) {
    const auto named =
        std::ranges::find_if(inputs, [&](const auto& each) { return path.starts_with(each.first + ":"); });
    if (named != inputs.end()) {
      const auto& [name, input] = *named;
      const std::string file = path.substr(name.size() + 1), content = detail::contents_of(file);
      if (file.ends_with(".npy")) {
        singles.insert_or_assign(name, detail::array_of_npy(content));
        continue;
      }
      const std::span<const std::byte> bytes = std::as_bytes(std::span(content));
      const std::vector<int64_t> sizes = detail::sizes_of_raw(input, bytes.size());
      if (bytes.size() != count_of(sizes) * bytes_of(input.dtype))
        throw std::runtime_error(file + " has " + std::to_string(bytes.size()) + " bytes, which do not fit " + name);
      singles.insert_or_assign(name, Array{input.dtype, sizes, {bytes.begin(), bytes.end()}});
      continue;
    }
    if (path.ends_with(".npy") && inputs.size() == 1) {
      singles.insert_or_assign(inputs[0].first, detail::array_of_npy(detail::contents_of(path)));
      continue;
    }
    for (const detail::Json& json : detail::json_files(path)) {
      if (!json.is_list) feeds.push_back(detail::feed_of_json(json));
      else
        for (const auto& [none, each] : json.members) feeds.push_back(detail::feed_of_json(each));
    }
  }
  if (!singles.empty() && feeds.empty()) feeds.emplace_back();
  for (Feed& feed : feeds)
    for (const auto& [name, array] : singles) feed.insert_or_assign(name, array);
  return feeds;
}

/// What a program prints: the path of a file on each line.
inline std::vector<Feed> loaded_by_program(const std::string& command, const Inputs& inputs) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error(command + " cannot be started");
  std::string text;
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof part, pipe)) text.append(part, got);
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed");
  std::vector<Feed> feeds;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) std::ranges::move(load_inputs({text.substr(at, end - at)}, inputs), std::back_inserter(feeds));
    at = end + 1;
  }
  return feeds;
}

/// What runs gave; runs of one name are one.
inline void load_outputs(const std::vector<std::string>& paths, Results& results) {
  const size_t own = results.size();
  for (const std::string& path : paths)
    for (const detail::Json& json : detail::json_files(path)) {
      const detail::Json* list = json.find("lst");
      if (list == nullptr) throw std::runtime_error(path + " holds no results of a run");
      for (const auto& [none, run] : list->members) {
        if (run.members.size() != 2) throw std::runtime_error(path + ": a run is no pair of a name and iterations");
        const std::string& name = run.members[0].second.text;
        auto found = std::find_if(results.begin() + static_cast<std::ptrdiff_t>(own), results.end(),
                                  [&](const auto& each) { return each.first == name; });
        if (found == results.end()) found = results.insert(results.end(), {name, {}});
        for (const auto& [number, iteration] : run.members[1].second.members)
          if (const detail::Json* outputs = iteration.find("outputs"))
            found->second.push_back(detail::feed_of_json(*outputs));
      }
    }
}

inline void save_inputs(const std::string& path, const std::vector<Feed>& feeds) {
  detail::write_iterations(path, feeds.size(), detail::joined(feeds, "[]", detail::json_of_feed),
                           [&](size_t i) { return "[" + detail::json_of_feed(feeds[i]) + "]"; });
}

inline void save_outputs(const std::string& path, const Results& results) {
  size_t count = 0;
  for (const auto& [name, iterations] : results) count = std::max(count, iterations.size());
  detail::write_iterations(path, count, detail::json_of_results(results, 0, count),
                           [&](size_t i) { return detail::json_of_results(results, i, 1); });
}

/// Raw bytes: a folder for each iteration, in it a file for each input.
inline void save_blobs(const std::string& folder, const std::vector<Feed>& feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const std::filesystem::path place = std::filesystem::path(folder) / std::to_string(i);
    std::filesystem::create_directories(place);
    for (const auto& [name, array] : feeds[i]) {
      std::string file = name;
      std::ranges::replace(file, '/', '_');
      detail::write((place / (file + ".bin")).string(),
                    {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
    }
  }
}

}  // namespace hone::compare
