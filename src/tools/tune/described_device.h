// SPDX-License-Identifier: Apache-2.0
//
// A device as a text: what backends ask of it before anything runs. With that, problems for a kind of device are listed on machines
// that have none of the kind.
#pragma once

#include <string>

#include "backends/all.h"
#include "tensor/json.h"

namespace hone {

/// "avx512/AMD EPYC/2/... | cpu 12, onednn 3.12": the part of a timing cache's keys that is not the problem or the tactic.
std::string timing_key(const OpenDevice& device);
/// A short name of that: 12 hexadecimal digits.
std::string kind_of(const OpenDevice& device);

Json describe_device(const OpenDevice& device);
/// Nothing runs on it. Throws Error where the text describes no device, or one of another version of Hone.
OpenDevice described_device(const std::string& path);

}  // namespace hone
