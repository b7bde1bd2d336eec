// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/support/source_text.h"

#include "backends/cuda/support/embedded.h"
#include "base/error.h"
#include "base/text.h"

namespace hone::cuda {

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f64: return "double";
    case DType::i8: return "signed char";
    case DType::u8: return "unsigned char";
    case DType::i16: return "short";
    case DType::u16: return "unsigned short";
    case DType::i32: return "int";
    case DType::u32: return "unsigned";
    case DType::i64: return "i64";
    case DType::u64: return "unsigned long long";
    case DType::boolean: return "bool";
    case DType::f8e4m3fn: return "e4m3";
    default: break;
  }
  throw InternalError(fmt::format("{} has no type on the GPU", name_of(dtype)));
}

bool has_type_name(DType dtype) {
  return is_kernel_float(dtype) || dtype == DType::f64 || dtype == DType::boolean ||
         (dtype >= DType::i8 && dtype <= DType::u64);
}

std::string types_before(std::string_view source) {
  const bool named = source.find(type_name(DType::f8e4m3fn)) != std::string_view::npos;
  return named ? std::string(kernels::prelude) + kernels::float8 : kernels::prelude;
}

namespace {

bool is_at_least(const std::string& architecture, int64_t capability) {
  return architecture.starts_with("sm_") && parse_integer(architecture.substr(3)).value_or(0) >= capability;
}

}  // namespace

bool has_clusters(const std::string& architecture) { return is_at_least(architecture, 90); }

bool has_float8(const std::string& architecture) { return is_at_least(architecture, 89); }

bool is_kernel_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

int64_t unit_of(int64_t bytes) {
  int64_t unit = 16;
  while (bytes % unit != 0) unit /= 2;
  return unit;
}

std::string reason_not_float(const Problem& problem, const Node& node) {
  if (!is_kernel_float(node.input(0)->type.dtype))
    return fmt::format("input is {}, not a float", name_of(node.input(0)->type.dtype));
  return reason_not_unary(problem, node);
}

std::vector<std::string> architectures_of(const Problem& problem) {
  std::vector<std::string> list{problem.device.architecture};
  for (const std::string& target : problem.targets)
    if (target != problem.device.architecture) list.push_back(target);
  return list;
}

}  // namespace hone::cuda
