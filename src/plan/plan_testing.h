// SPDX-License-Identifier: Apache-2.0
//
// Plan files with any manifest and any sections, whose checksums fit: what a malicious writer would make. For tests.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace hone {

/// The file of `manifest`, which names the sections, and of what stands behind it.
inline std::string signed_plan(std::string_view manifest, std::string_view rest = {}) {
  const uint64_t manifest_bytes = manifest.size(), manifest_hash = hash64(std::as_bytes(std::span(manifest))),
                 file_bytes = 48 + manifest.size() + rest.size();
  const uint32_t versions[] = {1, 1 << 8};
  std::string file = "HONEPLAN";
  const auto add = [&file](const auto& value) { file.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(versions);
  add(manifest_bytes);
  add(manifest_hash);
  add(file_bytes);
  add(hash64(std::as_bytes(std::span(file))));
  return file.append(manifest).append(rest);
}

}  // namespace hone
