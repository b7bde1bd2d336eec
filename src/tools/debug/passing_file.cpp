// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/passing_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "edit/file.h"

namespace hone {

void write_passing_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  const std::string part = fmt::format("{}.{}.part", path, getpid());
  std::FILE* file = std::fopen(part.c_str(), "wb");
  bool good = file != nullptr;
  for (const std::span<const std::byte> piece : pieces)
    good = good && (piece.empty() || std::fwrite(piece.data(), 1, piece.size(), file) == piece.size());
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  good = good && std::rename(part.c_str(), path.c_str()) == 0;
  if (good) return;
  const int reason = errno;
  std::remove(part.c_str());
  throw Error(fmt::format("{} cannot be written: {}", path, std::strerror(reason)), "is there room, and permission?");
}

void write_passing_file(const std::string& path, std::string_view text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text.data(), text.size()));
  write_passing_file(path, std::span(&piece, 1));
}

void write_passing_model(const std::string& path, const edit::Model& model) {
  const bool external =
      std::ranges::any_of(model.graph.weights, [](const edit::Weight& weight) { return weight.file.has_value(); });
  if (external) edit::save(model, path);
  else write_passing_file(path, edit::encode(model).pieces());
}

}  // namespace hone
