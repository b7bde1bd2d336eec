// SPDX-License-Identifier: Apache-2.0
//
// The code blob of a kernel: the family that loads it and its parameters, as JSON text, so that a plan can be read with
// `less`. Decoding trusts nothing: a plan is data that may be damaged.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "device/device.h"
#include "tensor/attrs.h"

namespace hone {

struct KernelCode {
  std::string family;
  Attrs attrs;
  int64_t version = 1;  // of the family: a kernel of another one may read the same numbers otherwise
};

Blob encode_code(std::string_view family, const Attrs& attrs, int64_t version = 1);
/// Exact inverse. Throws Error on anything that encode_code() does not write.
KernelCode decode_code(const Blob& code);

/// Throws Error where this program has no such family of the source (no version), or has it in another version.
void require_version(const KernelCode& code, std::string_view source, std::optional<int64_t> version);
/// Of a row of a source's list of families, where there is one.
template <typename Family>
std::optional<int64_t> version_of(const Family* family) {
  return family == nullptr ? std::nullopt : std::optional<int64_t>(family->version);
}

/// Throws Error where a plan brings no constant `place` of so many elements, whose number is the product of `dims`. load() says it
/// of each constant that its kernel reads.
void require_constant(const KernelShapes& shapes, int64_t place, DType dtype, std::span<const int64_t> dims);
/// A constant that a kernel reads: compile() makes it, a plan keeps it.
struct ConstantSpec {
  DType dtype = DType::f32;
  Dims dims;
};
/// Throws Error where a plan brings other constants than these, in number or in bytes.
void require_constants(const KernelShapes& shapes, const std::vector<ConstantSpec>& specs);
/// A constant operand of these sizes, which the plan brings.
ConcreteType constant_operand(const KernelShapes& shapes, int64_t place, DType dtype, Dims dims);

}  // namespace hone
