// SPDX-License-Identifier: Apache-2.0
//
// A graph as bytes: its text, then the data of its constants. All lengths are checked when reading.
//   u64 length, text | per constant: u64 length, element type; u64 length, sizes; u64 length, data
#include <cstring>

#include "ir/op.h"
#include "ir/text.h"

namespace hone {
namespace {

void append(std::vector<std::byte>& out, std::span<const std::byte> piece) {
  const uint64_t size = piece.size();
  const auto header = std::as_bytes(std::span(&size, 1));
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), piece.begin(), piece.end());
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> piece() {
    uint64_t size = 0;
    HONE_CHECK(rest_.size() >= sizeof size, "a stored graph is cut short");
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_ = rest_.subspan(sizeof size);
    HONE_CHECK(size <= rest_.size(), "a stored graph is cut short");
    const std::span<const std::byte> result = rest_.first(size);
    rest_ = rest_.subspan(size);
    return result;
  }
  std::string_view text() {
    const std::span<const std::byte> bytes = piece();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool done() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

Blob serialize(const Graph& graph) {
  std::vector<Tensor> data;
  const std::string text = print_with_data(graph, data);
  std::vector<std::byte> out;
  append(out, std::as_bytes(std::span(text)));
  for (const Tensor& tensor : data) {
    const std::string type(name_of(tensor.dtype()));
    append(out, std::as_bytes(std::span(type)));
    append(out, std::as_bytes(std::span(tensor.dims())));
    append(out, tensor.bytes());
  }
  return Blob::copy(out);
}

Graph deserialize(const Blob& bytes, const OpLookup& lookup) {
  Reader reader(bytes.bytes());
  const std::string_view text = reader.text();
  std::vector<Tensor> data;
  while (!reader.done()) {
    const std::optional<DType> dtype = parse_dtype(reader.text());
    HONE_CHECK(dtype.has_value(), "a stored graph names an unknown element type");
    const std::span<const std::byte> sizes = reader.piece();
    HONE_CHECK(sizes.size() % sizeof(int64_t) == 0, "a stored graph has a damaged shape");
    Dims dims(sizes.size() / sizeof(int64_t));
    if (!dims.empty()) std::memcpy(dims.data(), sizes.data(), sizes.size());
    for (const int64_t dim : dims) HONE_CHECK(dim >= 0, "a stored graph has a negative size");
    data.push_back(Tensor(*dtype, std::move(dims), Blob::copy(reader.piece())));
  }
  return parse_with_data(text, lookup, data);
}

}  // namespace hone
