// SPDX-License-Identifier: Apache-2.0
//
// Files in one zip archive: TREx's .tea, which any zip program opens, too.
#pragma once

#include <string>
#include <vector>

namespace hone {

/// Entries are called as the files are, without their folders. Throws Error for what a zip archive of 4 GiB cannot hold.
void write_archive(const std::string& path, const std::vector<std::string>& files);

}  // namespace hone
