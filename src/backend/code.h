// SPDX-License-Identifier: Apache-2.0
//
// The code blob of a kernel: the family that loads it and its parameters, as JSON text, so that a plan can be read with
// `less`. Decoding trusts nothing: a plan is data that may be damaged.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "tensor/attrs.h"

namespace hone {

struct KernelCode {
  std::string family;
  Attrs attrs;
};

Blob encode_code(std::string_view family, const Attrs& attrs);
/// Exact inverse. Throws Error on anything that encode_code() does not write.
KernelCode decode_code(const Blob& code);

}  // namespace hone
