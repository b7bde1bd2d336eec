// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/sparsity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "edit/names.h"
#include "ir/graph.h"

namespace hone::edit {
namespace {

// What marks a weight that was left out: other programs that reconstruct such files look for this text.
constexpr std::string_view kStripped = "TRT_WEIGHTLESS", kSparse = "SPARSE_2_4";

int64_t integer_attribute(const Node& node, std::string_view name) {
  const Attribute* attribute = node.attribute(name);
  if (attribute == nullptr) return 0;
  return onnx::parse_attribute(std::as_bytes(std::span(attribute->bytes.data(), attribute->bytes.size()))).integer;
}

bool is_pruned_type(int64_t type) { return type == 1 || type == 10 || type == 16; }

/// The axis that the operand's node sums over.
std::optional<size_t> summed_axis(const Node& node, size_t operand, size_t rank) {
  if (node.op_type == "Conv" && operand == 1 && rank >= 2) return 1;
  if (node.op_type == "MatMul" && operand <= 1 && rank >= 2) return operand == 0 ? rank - 1 : rank - 2;
  if (node.op_type == "Gemm" && operand <= 1 && rank == 2) {
    const bool transposed = integer_attribute(node, operand == 0 ? "transA" : "transB") != 0;
    return (operand == 0) != transposed ? 1 : 0;
  }
  return std::nullopt;
}

/// Calls visit(at[4]) for each group of four indices along the axis.
template <typename Visit>
void each_group(const std::vector<int64_t>& dims, size_t axis, const Visit& visit_group) {
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < dims.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : dims[i];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t g = 0; g + 4 <= dims[axis]; g += 4) {
        size_t at[4];
        for (int64_t k = 0; k < 4; ++k) at[k] = static_cast<size_t>((o * dims[axis] + g + k) * inner + i);
        visit_group(at);
      }
}

bool is_zero(const Tensor& tensor, size_t at) { return tensor.real(static_cast<int64_t>(at)) == 0; }

Tensor pruned(const Tensor& tensor, size_t axis) {
  TensorBuilder builder(tensor.dtype(), tensor.dims());
  visit(tensor.dtype(), [&]<typename T>() {
    const std::span<const T> from = tensor.data<T>();
    const std::span<T> to = builder.data<T>();
    std::ranges::copy(from, to.begin());
    each_group(tensor.dims(), axis, [&](const size_t(&at)[4]) {
      size_t order[4] = {at[0], at[1], at[2], at[3]};
      std::stable_sort(std::begin(order), std::end(order), [&](size_t a, size_t b) {
        return std::fabs(tensor.real(static_cast<int64_t>(a))) > std::fabs(tensor.real(static_cast<int64_t>(b)));
      });
      to[order[2]] = T(0);
      to[order[3]] = T(0);
    });
  });
  return builder.finish();
}

/// Each weight once, with the axis that its first reader sums over.
std::map<std::string, size_t> weight_axes(const Graph& graph) {
  const Index index(graph);
  std::map<std::string, size_t> axes;
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto at = index.weight.find(node.inputs[i]);
      if (at == index.weight.end() || !is_pruned_type(graph.weights[at->second].type)) continue;
      if (const auto axis = summed_axis(node, i, graph.weights[at->second].dims.size()))
        axes.emplace(node.inputs[i], *axis);
    }
  return axes;
}

/// Weights behind a product's operands, quantised or transposed ones among them.
std::set<std::string> product_weights(const Graph& graph) {
  const Index index(graph);
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    const bool product =
        node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "Gemm" || node.op_type == "MatMul";
    if (!product) continue;
    for (std::string name : node.inputs)
      for (int steps = 0; steps < 4; ++steps) {
        if (index.weight.contains(name)) {
          names.insert(name);
          break;
        }
        const auto at = index.producer.find(name);
        if (at == index.producer.end()) break;
        const Node& before = graph.nodes[at->second];
        const bool passes =
            before.op_type == "QuantizeLinear" || before.op_type == "DequantizeLinear" || before.op_type == "Transpose";
        if (!passes || before.inputs.empty()) break;
        name = before.inputs[0];
      }
  }
  return names;
}

std::string doc_of(const Weight& weight) {
  std::string doc;
  read_fields(weight.bytes, [&](uint32_t field, std::string_view payload) {
    if (field == 12) doc = payload;
    return true;
  });
  return doc;
}

std::string with_doc(std::string_view message, const std::string& doc) {
  Rope out;
  const Rest rest = read_fields(message, [](uint32_t field, std::string_view) { return field == 12; });
  RestWriter others(rest, out);
  others.up_to(12);
  if (!doc.empty()) out.add_text(12, doc);
  others.finish();
  return out.text();
}

}  // namespace

std::vector<PrunableWeight> prunable_weights(const Model& model) {
  const Index index(model.graph);
  std::vector<PrunableWeight> found;
  for (const auto& [name, axis] : weight_axes(model.graph)) {
    const Weight& weight = model.graph.weights[index.weight.at(name)];
    PrunableWeight entry{name, axis, false, 0, {}};
    if (weight.dims[axis] % 4 != 0) {
      entry.skipped = fmt::format("axis {} of [{}] has {} elements, which is no multiple of 4", axis,
                                  join_dims(weight.dims, ","), weight.dims[axis]);
    } else {
      const Tensor tensor = tensor_of(model, weight);
      entry.fits = true;
      each_group(weight.dims, axis, [&](const size_t(&at)[4]) {
        entry.fits &= std::ranges::count_if(at, [&](size_t i) { return is_zero(tensor, i); }) >= 2;
      });
      size_t zeros = 0;
      for (int64_t i = 0; i < tensor.size(); ++i) zeros += is_zero(tensor, static_cast<size_t>(i)) ? 1 : 0;
      entry.zeros = tensor.size() == 0 ? 0 : static_cast<double>(zeros) / static_cast<double>(tensor.size());
    }
    found.push_back(std::move(entry));
  }
  return found;
}

std::vector<std::string> prune(Model& model, const std::vector<std::string>& except) {
  const Index index(model.graph);
  std::vector<std::string> changed;
  for (const PrunableWeight& entry : prunable_weights(model)) {
    if (!entry.skipped.empty() || entry.fits || std::ranges::find(except, entry.name) != except.end()) continue;
    Weight& weight = model.graph.weights[index.weight.at(entry.name)];
    weight = make_weight(model, entry.name, pruned(tensor_of(model, weight), entry.axis));
    changed.push_back(entry.name);
  }
  return changed;
}

size_t strip_weights(Model& model, const std::vector<std::string>& except) {
  std::set<std::string> sparse;
  for (const PrunableWeight& entry : prunable_weights(model))
    if (entry.fits) sparse.insert(entry.name);
  const std::set<std::string> products = product_weights(model.graph);
  size_t stripped = 0;
  for (Weight& weight : model.graph.weights) {
    if (!products.contains(weight.name) || std::ranges::find(except, weight.name) != except.end() ||
        !has_elements(weight))
      continue;
    const std::string doc = fmt::format("{}/{}", kStripped, sparse.contains(weight.name) ? kSparse : "");
    weight.bytes = model.keep(with_doc(message_without_elements(weight), doc));
    weight.file.reset();
    ++stripped;
  }
  return stripped;
}

size_t reconstruct_weights(Model& model) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const std::map<std::string, size_t> axes = weight_axes(model.graph);
  size_t count = 0;
  for (Weight& weight : model.graph.weights) {
    const std::string doc = doc_of(weight);
    if (!doc.starts_with(kStripped) || has_elements(weight)) continue;
    const std::optional<DType> dtype = onnx::dtype_of_onnx(weight.type);
    HONE_CHECK(dtype && !is_object(*dtype), "'{}' has the type {}, for which there are no placeholders", weight.name,
               numpy_name(weight.type));
    Tensor tensor;
    if (is_small(*dtype)) {
      tensor = random_tensor(*dtype, weight.dims, 1);
    } else {
      TensorBuilder builder(*dtype, weight.dims);
      visit(*dtype, [&]<typename T>() {
        for (T& value : builder.data<T>()) value = static_cast<T>(normal(random));
      });
      tensor = builder.finish();
    }
    if (const auto at = axes.find(weight.name); doc.ends_with(kSparse) && at != axes.end())
      tensor = pruned(tensor, at->second);
    const std::string_view plain = make_weight(model, weight.name, tensor).bytes;
    weight.bytes = plain;
    ++count;
  }
  return count;
}

}  // namespace hone::edit
