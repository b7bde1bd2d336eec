// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/support/signature.h"

#include "base/checked.h"
#include "base/text.h"

namespace hone::cuda {
namespace {

/// "f32 channels_last N;16;5;7"
std::string text_of(DType dtype, const Shape& shape, Layout layout) {
  std::string text = fmt::format("{} {} ", name_of(dtype), name_of(layout));
  for (size_t i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : ";") + shape[i].text();
  return text;
}

ConcreteType read_type(const std::string& text, const SymbolValues& symbols) {
  const size_t first = text.find(' '), second = first == std::string::npos ? first : text.find(' ', first + 1);
  HONE_CHECK(second != std::string::npos, "a kernel in the plan was made for '{}'", text);
  const std::optional<DType> dtype = parse_dtype(text.substr(0, first));
  const std::optional<Layout> layout = parse_layout(text.substr(first + 1, second - first - 1));
  HONE_CHECK(dtype && layout, "a kernel in the plan was made for '{}'", text);
  ConcreteType type{*dtype, {}, *layout};
  if (second + 1 == text.size()) return type;
  for (const std::string_view size : split(std::string_view(text).substr(second + 1), ';'))
    type.dims.push_back(Dim::parse(size).evaluate(symbols));
  require_sizes(type.dims);
  return type;
}

void require_like(const std::vector<std::string>& texts, const std::vector<ConcreteType>& given,
                  const SymbolValues& symbols) {
  HONE_CHECK(texts.size() == given.size(), "a kernel in the plan was made for {} operands, its step has {}",
             texts.size(), given.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const ConcreteType made = read_type(texts[i], symbols);
    HONE_CHECK(made.dtype == given[i].dtype && made.dims == given[i].dims &&
                   same_bytes(made.dims, made.layout, given[i].layout),
               "a kernel in the plan was made for {}, its step has {} [{}]", texts[i], name_of(given[i].dtype),
               join_dims(given[i].dims, ","));
  }
}

}  // namespace

Signature signature_of(const Problem& problem, const Tactic& tactic, const std::vector<Tensor>& constants) {
  const auto texts = [](const std::vector<TensorType>& types, const std::vector<Layout>& layouts) {
    std::vector<std::string> list;
    for (size_t i = 0; i < types.size(); ++i)
      list.push_back(text_of(types[i].dtype, types[i].shape, i < layouts.size() ? layouts[i] : Layout::linear));
    return list;
  };
  std::vector<TensorType> inputs;
  for (const Value* input : problem.symbolic.inputs()) inputs.push_back(input->type);
  Signature made{texts(inputs, tactic.in), texts(result_types(problem.symbolic), tactic.out), {}};
  for (const Tensor& tensor : constants)
    made.constants.push_back(text_of(tensor.dtype(), Shape(tensor.dims()), Layout::linear));
  return made;
}

void require_signature(const Signature& made, const KernelShapes& shapes) {
  require_like(made.inputs, shapes.inputs, shapes.symbols);
  require_like(made.outputs, shapes.outputs, shapes.symbols);
  require_constants(shapes, constants_of(made));
}

std::vector<ConstantSpec> constants_of(const Signature& made) {
  std::vector<ConstantSpec> specs;
  for (const std::string& text : made.constants) {
    ConcreteType type = read_type(text, {});
    specs.push_back({type.dtype, std::move(type.dims)});
  }
  return specs;
}

}  // namespace hone::cuda
