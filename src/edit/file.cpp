// SPDX-License-Identifier: Apache-2.0
#include "edit/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>

#include "base/file.h"
#include "edit/parts.h"
#include "edit/values.h"
#include "onnx/proto.h"

namespace hone::edit {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAlign = 64;
constexpr size_t kPiece = 8 << 20;

/// A file that replaces another only once it is whole.
class DataFile {
 public:
  explicit DataFile(const std::string& path) : path_(path), temporary_(fmt::format("{}.{}.part", path, getpid())) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail();
  }
  ~DataFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(temporary_.c_str());
    }
  }
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  /// Where the bytes begin.
  int64_t append(std::span<const std::byte> bytes) { return append(std::vector{bytes}); }
  /// One behind the other.
  int64_t append(const std::vector<std::span<const std::byte>>& parts) {
    const int64_t start = (size_ + kAlign - 1) / kAlign * kAlign;
    const std::vector<std::byte> gap(static_cast<size_t>(start - size_));
    write(gap);
    size_ = start;
    for (const std::span<const std::byte> bytes : parts) {
      for (size_t at = 0; at < bytes.size(); at += kPiece) {
        const std::span<const std::byte> piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
        write(piece);
        note_read(piece);
      }
      size_ += static_cast<int64_t>(bytes.size());
    }
    forget(std::exchange(read_, {}));
    return start;
  }
  void finish() {
    if (::close(descriptor_) != 0) fail();
    descriptor_ = -1;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  }

 private:
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  /// What was read since pages were given back, from its first byte to its last.
  void note_read(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::byte* first = read_.empty() ? bytes.data() : std::min(read_.data(), bytes.data());
    const std::byte* last = std::max(read_.data() + read_.size(), bytes.data() + bytes.size());
    read_ = {first, last};
    if (read_.size() >= kPiece) forget(std::exchange(read_, {}));
  }
  /// Pages of a mapped file that were read count as the program's memory until they are given back.
  static void forget(std::span<const std::byte> bytes) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
    const auto last = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // NOLINT
  }
  [[noreturn]] void fail() const {
    throw Error(fmt::format("{} cannot be written: {}", path_, std::strerror(errno)), "is there room, and permission?");
  }

  std::string path_, temporary_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  std::span<const std::byte> read_;
};

using Visit = std::function<void(Weight&)>;
constexpr int64_t kOneTensor = 4, kManyTensors = 9;  // types of attributes

void each_weight(Graph& graph, const Visit& visit_weight, std::deque<std::string>& kept);

/// The tensors of an attribute, which is written anew where one changes.
void each_tensor(Attribute& attribute, const Visit& visit_weight, std::deque<std::string>& kept) {
  const uint32_t field = attribute.type == kOneTensor ? 5 : 10;
  std::vector<Weight> tensors;
  const Rest rest = read_fields(attribute.bytes, [&](uint32_t number, std::string_view payload) {
    if (number == field) tensors.push_back(read_weight(payload));
    return number == field;
  });
  bool changed = false;
  for (Weight& tensor : tensors) {
    if (!tensor.file) continue;  // only references move: a node's own elements stay in the node
    const std::string_view before = tensor.bytes;
    visit_weight(tensor);
    changed |= tensor.bytes.data() != before.data();
  }
  if (!changed) return;
  Rope out;
  RestWriter others(rest, out);
  others.up_to(field);
  for (const Weight& tensor : tensors) out.add_message(field, encode(tensor));
  others.finish();
  attribute.bytes = kept.emplace_back(out.text());
}

void each_weight(std::vector<Node>& nodes, const Visit& visit_weight, std::deque<std::string>& kept) {
  for (Node& node : nodes)
    for (Attribute& attribute : node.attributes) {
      for (const auto& body : attribute.bodies) each_weight(*body, visit_weight, kept);
      if (attribute.type == kOneTensor || attribute.type == kManyTensors) each_tensor(attribute, visit_weight, kept);
    }
}

void each_weight(Graph& graph, const Visit& visit_weight, std::deque<std::string>& kept) {
  for (Weight& weight : graph.weights) visit_weight(weight);
  each_weight(graph.nodes, visit_weight, kept);
}

/// The elements' bytes as they stand in a file, where that is how they stand; else nothing.
std::optional<std::string_view> raw_of(const Weight& weight) {
  std::optional<std::string_view> raw;
  read_fields(weight.bytes, [&](uint32_t field, std::string_view payload) {
    if (field == 9) raw = payload;
    return true;
  });
  return raw;
}

std::string with_range(const Weight& weight, const FileRange& range) {
  const std::string message = message_without_elements(weight);
  Rope out;
  const Rest rest = read_fields(message, [](uint32_t, std::string_view) { return false; });
  RestWriter others(rest, out);
  others.up_to(13);
  const auto entry = [&](const char* key, const std::string& value) {
    Rope pair;
    pair.add_text(1, key);
    pair.add_text(2, value);
    out.add_message(13, std::move(pair));
  };
  entry("location", range.location);
  entry("offset", std::to_string(range.offset));
  entry("length", std::to_string(range.length.value_or(0)));
  out.add_integer(14, 1);
  others.finish();
  return out.text();
}

/// Moves weights into the data file of the model that is written.
class Mover {
 public:
  Mover(const Model& source, const std::string& path, const SaveRules& rules, bool leaves)
      : source_(source), rules_(rules), moves_external_(leaves) {
    const fs::path model(path);
    name_ = rules.external && !rules.external->empty() ? *rules.external : model.filename().string() + ".data";
    if (name_.find('/') != std::string::npos)
      throw Error(fmt::format("external data go into a file beside the model; '{}' is a path", name_),
                  "give a file's name alone");
    path_ = (model.has_parent_path() ? model.parent_path() : fs::path(".")) / name_;
  }

  void move(Weight& weight) {
    if (weight.file && !source_.directory.empty() && (moves_external_ || rules_.external || weight.file->pieces > 1)) {
      const FileRange& range = *weight.file;
      const auto key = std::make_tuple(range.location, range.offset, element_bytes(weight), range.pieces, range.stride);
      auto at = placed_.find(key);
      if (at == placed_.end()) at = placed_.emplace(key, file().append(external_pieces(weight))).first;
      place(weight, at->second);
    } else if (!weight.file && rules_.external && element_bytes(weight) >= rules_.threshold &&
               element_bytes(weight) > 0 && has_elements(weight)) {
      if (const std::optional<std::string_view> raw = raw_of(weight)) {
        place(weight, file().append(std::as_bytes(std::span(raw->data(), raw->size()))));
      } else {
        Model scratch;
        const Weight packed = make_weight(scratch, weight.name, tensor_of(source_, weight));
        const std::string_view bytes = raw_of(packed).value();
        place(weight, file().append(std::as_bytes(std::span(bytes.data(), bytes.size()))));
      }
    }
  }
  void finish() {
    if (file_) file_->finish();
  }
  std::deque<std::string>& kept() { return kept_; }

 private:
  DataFile& file() {
    if (!file_) file_.emplace(path_.string());
    return *file_;
  }
  void place(Weight& weight, int64_t offset) {
    weight.file = FileRange{name_, offset, element_bytes(weight)};
    weight.bytes = kept_.emplace_back(with_range(weight, *weight.file));
  }
  std::vector<std::span<const std::byte>> external_pieces(const Weight& weight) {
    const FileRange& range = *weight.file;
    auto at = files_.find(range.location);
    if (at == files_.end())
      at = files_.emplace(range.location, MappedFile::open_below(source_.directory, range.location)).first;
    const std::span<const std::byte> all = at->second->bytes();
    const int64_t length = range.length.value_or(element_bytes(weight));
    const auto size = static_cast<int64_t>(all.size());
    HONE_CHECK(range.offset >= 0 && length >= 0 && range.offset <= size && length <= size - range.offset,
               "the elements of '{}' are not inside of '{}', which has {} bytes", weight.name, range.location, size);
    HONE_CHECK(length == element_bytes(weight), "'{}' has {} bytes in '{}'; its sizes need {}", weight.name, length,
               range.location, element_bytes(weight));
    HONE_CHECK(range.pieces >= 1 && length % range.pieces == 0, "{} bytes of '{}' do not make {} pieces", length,
               weight.name, range.pieces);
    const int64_t each = length / range.pieces;
    HONE_CHECK(range.pieces == 1 ||
                   (range.stride >= each && (range.pieces - 1) <= (size - range.offset - each) / range.stride),
               "the pieces of '{}' are not inside of '{}'", weight.name, range.location);
    std::vector<std::span<const std::byte>> pieces;
    for (int64_t i = 0; i < range.pieces; ++i)
      pieces.push_back(all.subspan(static_cast<size_t>(range.offset + i * range.stride), static_cast<size_t>(each)));
    return pieces;
  }

  const Model& source_;
  const SaveRules& rules_;
  bool moves_external_;
  std::string name_;
  fs::path path_;
  std::optional<DataFile> file_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>, int64_t> placed_;
  std::deque<std::string> kept_;
};

bool same_folder(const std::string& directory, const std::string& path) {
  const fs::path parent = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  std::error_code none;
  return fs::equivalent(directory.empty() ? "." : directory, parent, none);
}

}  // namespace

void save(const Model& model, const std::string& path, const SaveRules& rules) {
  constexpr size_t kLongest = std::numeric_limits<int32_t>::max();
  Model written = model;  // nodes and views; weights' elements are not copied
  written.graph = deep_copy(model.graph);
  // Without a folder to read from, references stay what they are.
  Mover mover(model, path, rules, !model.directory.empty() && !same_folder(model.directory, path));
  const Visit move = [&](Weight& weight) { mover.move(weight); };
  each_weight(written.graph, move, mover.kept());
  for (Function& function : written.functions) {
    for (Node& node : function.nodes) node = deep_copy(node);
    each_weight(function.nodes, move, mover.kept());
  }
  const Rope encoded = encode(written);
  if (encoded.size() > kLongest)
    throw Error(fmt::format("the model would have {} bytes; a file of ONNX has at most {}", encoded.size(), kLongest),
                "put its weights into a file beside it: --save-external-data");
  mover.finish();
  write_file(path, encoded.pieces());
}

}  // namespace hone::edit
