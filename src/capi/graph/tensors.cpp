// SPDX-License-Identifier: Apache-2.0
//
// The C interface's graphs: inputs, outputs, declared values and weights.
#include <algorithm>

#include "capi/build_handles.h"
#include "capi/graph/graph.h"
#include "capi/handles.h"
#include "edit/sparse.h"

using hone::capi::ArgumentError;
using hone::capi::counted;
using hone::capi::edited;
using hone::capi::require;
using hone::capi::require_index;
using hone::capi::Told;
namespace edit = hone::edit;

namespace hone::capi {

std::vector<edit::Value>& list_of(hone_graph& graph, hone_graph_list list) {
  switch (list) {
    case HONE_GRAPH_INPUTS: return graph.model.graph.inputs;
    case HONE_GRAPH_OUTPUTS: return graph.model.graph.outputs;
    case HONE_GRAPH_VALUES: return graph.model.graph.values;
    case HONE_GRAPH_SPARSE: return graph.model.graph.sparse;
    default: throw ArgumentError(fmt::format("list is {}", static_cast<int>(list)), "it is one of hone_graph_list");
  }
}

namespace {

void require_tensor(const hone_value* value, const char* what) {
  require(value, what);
  const DType dtype = value->tensor.dtype();
  if (is_container(dtype)) throw ArgumentError(fmt::format("{} is a {}", what, name_of(dtype)), "a weight is a tensor");
}

/// For reading alone.
const std::vector<edit::Value>& values_in(const hone_graph& graph, hone_graph_list list) {
  return capi::list_of(const_cast<hone_graph&>(graph), list);
}

void tell_sizes(const std::optional<std::vector<edit::Size>>& sizes, Told& told, hone_graph_tensor& out) {
  out.rank = -1;
  if (!sizes) return;
  for (const edit::Size& size : *sizes) {
    told.dims.push_back(size.number.value_or(-1));
    told.symbols.push_back(size.name.empty() ? nullptr : told.texts.emplace_back(size.name).c_str());
  }
  out.rank = static_cast<int>(sizes->size());
  out.dims = told.dims.data();
  out.symbols = told.symbols.data();
}

edit::ValueType type_given(const hone_graph_tensor& given) {
  edit::ValueType type{given.type, {}, true};
  if (given.rank < -1 || given.rank > HONE_MAX_RANK)
    throw ArgumentError(fmt::format("tensor->rank is {}, not -1 to {}", given.rank, HONE_MAX_RANK));
  if (given.rank < 0) return type;
  if (given.rank > 0) require(given.dims, "tensor->dims");
  type.sizes.emplace();
  for (int i = 0; i < given.rank; ++i) {
    const char* symbol = given.symbols == nullptr ? nullptr : given.symbols[i];
    if (given.dims[i] >= 0) type.sizes->push_back({given.dims[i], {}});
    else type.sizes->push_back({std::nullopt, symbol == nullptr ? "" : symbol});
  }
  return type;
}

/// The type that the message has is replaced as far as another one is given.
edit::Value value_of(hone_graph& graph, const hone_graph_tensor& given) {
  edit::Value value{given.name, {}};
  edit::ValueType type = type_given(given);
  if (given.encoded != nullptr) {
    value = edit::read_value(graph.view(given.encoded, given.encoded_size, given.owner));
    const edit::ValueType present = edit::type_of(value);
    value.name = given.name;
    if (type.element == 0 && !type.sizes) return value;
    if (type.element == 0) type.element = present.element;
  }
  return edit::with_type(graph.model, value, type);
}

edit::Value sparse_of(hone_graph& graph, const hone_graph_tensor& given) {
  require(given.encoded, "tensor->encoded");
  edit::Value sparse = edit::read_sparse(graph.view(given.encoded, given.encoded_size, given.owner));
  if (sparse.name != given.name) {
    sparse.bytes = graph.model.keep(edit::renamed_sparse(sparse.bytes, given.name));
    sparse.name = given.name;
  }
  return sparse;
}

template <typename Entry>
void put_by_name(std::vector<Entry>& list, Entry made) {
  const auto at = std::ranges::find(list, made.name, &Entry::name);
  if (at == list.end()) list.push_back(std::move(made));
  else *at = std::move(made);
}

/// `add` puts the entry into its list.
template <typename Add>
void put(hone_graph& graph, hone_graph_list list, const hone_graph_tensor& given, const Add& add) {
  require(given.name, "tensor->name");
  if (list == HONE_GRAPH_WEIGHTS) add(graph.model.graph.weights, weight_of(graph, given));
  else if (list == HONE_GRAPH_SPARSE) add(graph.model.graph.sparse, sparse_of(graph, given));
  else add(capi::list_of(graph, list), value_of(graph, given));
}

template <typename Entry>
void remove_by_name(std::vector<Entry>& list, const char* name) {
  if (std::erase_if(list, [&](const Entry& each) { return each.name == name; }) == 0)
    throw Error(fmt::format("there is no {} in this list", name), "hone_graph_tensor_at() lists what there is");
}

}  // namespace

void tell_weight(const hone_graph& graph, const edit::Weight& weight, Told& told, hone_graph_tensor* tensor) {
  hone_graph_tensor out{.name = told.texts.emplace_back(weight.name).c_str(),
                        .type = static_cast<int>(weight.type),
                        .rank = static_cast<int>(weight.dims.size()),
                        .length = -1,
                        .encoded = weight.bytes.data(),
                        .encoded_size = weight.bytes.size(),
                        .owner = &graph};
  told.dims = weight.dims;
  told.symbols.assign(weight.dims.size(), nullptr);
  out.dims = told.dims.data();
  out.symbols = told.symbols.data();
  if (weight.file) {
    told.location = weight.file->location;
    out.location = told.location.c_str();
    out.offset = weight.file->offset;
    out.length = weight.file->length.value_or(-1);
  }
  fill(tensor, "tensor", out);
}

edit::Weight weight_of(hone_graph& graph, const hone_graph_tensor& raw) {
  const hone_graph_tensor given = taken(&raw, "tensor");
  require(given.name, "tensor->name");
  if (given.encoded == nullptr && given.data == nullptr && given.value != nullptr) {
    require_tensor(given.value, "tensor->value");
    return edit::make_weight(graph.model, given.name, given.value->tensor);
  }
  if (given.encoded == nullptr) {
    const edit::ValueType type = type_given(given);
    if (given.data_size > 0) require(given.data, "tensor->data");
    std::vector<int64_t> dims;
    if (!type.sizes) throw ArgumentError("tensor->rank is -1", "a weight has sizes");
    for (const edit::Size& size : *type.sizes) dims.push_back(size.number.value_or(-1));
    const edit::Weight empty{given.name, given.type, dims, {}, {}};
    for (const int64_t dim : dims)
      if (dim < 0) throw ArgumentError("tensor->dims has a size that is not fixed", "a weight has sizes");
    constexpr int kComplex64 = 14, kComplex128 = 15;  // Hone computes nothing with them, but files hold them
    const bool known = onnx::dtype_of_onnx(given.type) || given.type == kComplex64 || given.type == kComplex128;
    if (!known || edit::element_bytes(empty) != static_cast<int64_t>(given.data_size))
      throw ArgumentError(fmt::format("tensor->data_size is {}; the type {} and the sizes need {}", given.data_size,
                                      edit::numpy_name(given.type), edit::element_bytes(empty)));
    return edit::make_weight(graph.model, given.name, given.type, dims,
                             std::string(static_cast<const char*>(given.data), given.data_size));
  }
  edit::Weight weight = edit::read_weight(graph.view(given.encoded, given.encoded_size, given.owner));
  // A reference counts from the folder of its own model.
  if (weight.file && given.owner != nullptr && given.owner->model.directory != graph.model.directory)
    weight = edit::make_weight(graph.model, weight.name, edit::tensor_of(given.owner->model, weight));
  weight.name = given.name;
  return weight;
}

}  // namespace hone::capi

size_t hone_graph_tensors(const hone_graph* graph, hone_graph_list list) {
  return counted(graph, [&](const hone_graph& of) {
    return list == HONE_GRAPH_WEIGHTS ? of.model.graph.weights.size() : hone::capi::values_in(of, list).size();
  });
}

hone_status hone_graph_tensor_at(const hone_graph* graph, hone_graph_list list, size_t index,
                                 hone_graph_tensor* tensor) {
  return edited([&] {
    require(graph, "graph");
    require(tensor, "tensor");
    Told& told = graph->tensor;
    if (list == HONE_GRAPH_WEIGHTS) {
      require_index(index, graph->model.graph.weights.size(), "weight");
      told = {};
      hone::capi::tell_weight(*graph, graph->model.graph.weights[index], told, tensor);
      return;
    }
    const std::vector<edit::Value>& values = hone::capi::values_in(*graph, list);
    require_index(index, values.size(), "tensor");
    const edit::Value& value = values[index];
    told = {};
    hone_graph_tensor out{.name = value.name.c_str(),
                          .length = -1,
                          .encoded = value.bytes.data(),
                          .encoded_size = value.bytes.size(),
                          .owner = graph,
                          .sparse = list == HONE_GRAPH_SPARSE};
    const edit::ValueType type = out.sparse != 0 ? edit::type_of_sparse(value) : edit::type_of(value);
    out.type = static_cast<int>(type.element);
    hone::capi::tell_sizes(type.sizes, told, out);
    hone::capi::fill(tensor, "tensor", out);
  });
}

hone_status hone_graph_put_tensor(hone_graph* graph, hone_graph_list list, const hone_graph_tensor* tensor) {
  return edited([&] {
    require(graph, "graph");
    hone::capi::put(*graph, list, hone::capi::taken(tensor, "tensor"), [](auto& into, auto made) {
      const auto at = std::ranges::find_if(into, [&](const auto& each) { return each.name == made.name; });
      if (at == into.end()) into.push_back(std::move(made));
      else *at = std::move(made);
    });
  });
}

hone_status hone_graph_append_tensor(hone_graph* graph, hone_graph_list list, const hone_graph_tensor* tensor) {
  return edited([&] {
    require(graph, "graph");
    hone::capi::put(*graph, list, hone::capi::taken(tensor, "tensor"),
                    [](auto& into, auto made) { into.push_back(std::move(made)); });
  });
}

hone_status hone_graph_put_weight(hone_graph* graph, const char* name, const hone_value* value) {
  return edited([&] {
    require(graph, "graph");
    require(name, "name");
    hone::capi::require_tensor(value, "value");
    hone::capi::put_by_name(graph->model.graph.weights, edit::make_weight(graph->model, name, value->tensor));
  });
}

hone_status hone_graph_remove_tensor(hone_graph* graph, hone_graph_list list, const char* name) {
  return edited([&] {
    require(graph, "graph");
    require(name, "name");
    if (list == HONE_GRAPH_WEIGHTS) hone::capi::remove_by_name(graph->model.graph.weights, name);
    else hone::capi::remove_by_name(hone::capi::list_of(*graph, list), name);
  });
}

hone_status hone_graph_elements(const hone_graph* graph, const hone_graph_tensor* tensor, hone_value** value) {
  return edited([&] {
    require(graph, "graph");
    const auto given = hone::capi::taken(tensor, "tensor");
    require(value, "value");
    require(given.encoded, "tensor->encoded");
    const std::string_view bytes(static_cast<const char*>(given.encoded), given.encoded_size);
    *value = new hone_value(given.sparse != 0 ? edit::dense_of(graph->model, edit::read_sparse(bytes))
                                              : edit::tensor_of(graph->model, edit::read_weight(bytes)));
  });
}
