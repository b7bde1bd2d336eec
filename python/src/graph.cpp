// SPDX-License-Identifier: Apache-2.0
//
// Graphs of models for hone.graph: read as nested tuples and written from such in one call each, so that what a program edits are objects
// of Python's own. What is large stays where it lies: tuples hold addresses, and the graph that they lie in.
#include <deque>

#include "binding.h"

namespace hone::python {
namespace {

using Graph = Handle<hone_graph>;

// Types of attributes.
constexpr int kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8,
              kGraphs = 10;

// ---- From a graph to tuples.

nb::object place(const void* address, size_t size) {
  return nb::make_tuple(reinterpret_cast<uintptr_t>(address), size);
}

/// A str, or bytes where they are no UTF-8.
nb::object word(const char* begin, size_t length) {
  PyObject* made = PyUnicode_DecodeUTF8(begin, static_cast<Py_ssize_t>(length), "strict");
  if (made != nullptr) return nb::steal(made);
  PyErr_Clear();
  return nb::bytes(begin, length);
}

/// Name, type, sizes (numbers, names, -1; None without a rank), where the message lies, (file, offset, length) or None.
nb::object told(const hone_graph_tensor& tensor) {
  nb::object sizes = nb::none(), file = nb::none();
  if (tensor.rank >= 0) {
    nb::list list;
    for (int axis = 0; axis < tensor.rank; ++axis)
      if (tensor.symbols[axis] != nullptr) list.append(text(tensor.symbols[axis]));
      else list.append(tensor.dims[axis]);
    sizes = std::move(list);
  }
  if (tensor.location != nullptr) file = nb::make_tuple(text(tensor.location), tensor.offset, tensor.length);
  return nb::make_tuple(text(tensor.name), tensor.type, sizes, place(tensor.encoded, tensor.encoded_size), file);
}

nb::list told_list(const Graph& graph, hone_graph_list list) {
  nb::list all;
  for (size_t i = 0; i < hone_graph_tensors(graph.get(), list); ++i) {
    auto raw = sized<hone_graph_tensor>();
    check(hone_graph_tensor_at(graph.get(), list, i, &raw));
    all.append(told(raw));
  }
  return all;
}

nb::object value_of(const hone_graph_attribute& raw) {
  nb::list list;
  switch (raw.kind) {
    case kFloat: return nb::float_(raw.real);
    case kInt: return nb::int_(raw.integer);
    case kString: return word(raw.texts[0], raw.lengths[0]);
    case kTensor: return raw.tensor == nullptr ? nb::none() : told(*raw.tensor);
    case kFloats:
      for (size_t i = 0; i < raw.count; ++i) list.append(raw.reals[i]);
      return list;
    case kInts:
      for (size_t i = 0; i < raw.count; ++i) list.append(raw.integers[i]);
      return list;
    case kStrings:
      for (size_t i = 0; i < raw.count; ++i) list.append(word(raw.texts[i], raw.lengths[i]));
      return list;
    default: return nb::none();
  }
}

/// Name, kind, value, reference or None, the message: where it lies, or as bytes.
nb::object told(const hone_graph_attribute& raw, nb::object value) {
  nb::object encoded = raw.owner != nullptr
                           ? place(raw.encoded, raw.encoded_size)
                           : nb::object(nb::bytes(static_cast<const char*>(raw.encoded), raw.encoded_size));
  return nb::make_tuple(text(raw.name), raw.kind, value, raw.reference == nullptr ? nb::none() : text(raw.reference),
                        encoded);
}

nb::list told_attributes(const Graph& graph, size_t node, size_t count) {
  nb::list all;
  for (size_t i = 0; i < count; ++i) {
    auto raw = sized<hone_graph_attribute>();
    check(hone_graph_attribute_at(graph.get(), node, i, &raw));
    nb::object value = value_of(raw);
    if ((raw.kind == kGraph || raw.kind == kGraphs) && raw.reference == nullptr) {
      nb::list bodies;
      for (size_t body = 0; body < raw.count; ++body)
        bodies.append(nb::cast(Graph::make(hone_graph_create_from_body, graph.get(), node, i, body)));
      value = std::move(bodies);
    }
    all.append(told(raw, std::move(value)));
  }
  return all;
}

/// Operator, name, domain, inputs, outputs, attributes, other fields.
nb::list told_nodes(const Graph& graph) {
  nb::list all;
  const size_t count = hone_graph_nodes(graph.get());
  for (size_t i = 0; i < count; ++i) {
    auto raw = sized<hone_graph_node>();
    check(hone_graph_node_at(graph.get(), i, &raw));
    nb::list inputs, outputs;
    for (size_t at = 0; at < raw.input_count; ++at) inputs.append(text(raw.inputs[at]));
    for (size_t at = 0; at < raw.output_count; ++at) outputs.append(text(raw.outputs[at]));
    nb::object op = text(raw.op), name = text(raw.name), domain = text(raw.domain);
    nb::bytes rest(static_cast<const char*>(raw.rest), raw.rest_size);
    all.append(nb::make_tuple(op, name, domain, inputs, outputs, told_attributes(graph, i, raw.attribute_count), rest));
  }
  return all;
}

nb::list told_parameters(const Graph& graph) {
  nb::list all;
  for (size_t i = 0; i < hone_graph_parameters(graph.get()); ++i) {
    auto raw = sized<hone_graph_attribute>();
    check(hone_graph_parameter(graph.get(), i, &raw));
    all.append(told(raw, value_of(raw)));
  }
  return all;
}

nb::dict told_words(const Graph& graph) {
  constexpr std::pair<const char*, hone_graph_word> kWords[] = {{"name", HONE_GRAPH_NAME},
                                                                {"doc_string", HONE_GRAPH_DOC},
                                                                {"domain", HONE_GRAPH_DOMAIN},
                                                                {"overload", HONE_GRAPH_OVERLOAD},
                                                                {"producer_name", HONE_GRAPH_PRODUCER},
                                                                {"producer_version", HONE_GRAPH_PRODUCER_VERSION}};
  nb::dict all;
  for (const auto& [key, which] : kWords) {
    const char* found = nullptr;
    if (hone_graph_text(graph.get(), which, &found) == HONE_OK) all[key] = text(found);  // a function lacks some
  }
  return all;
}

nb::dict read(const Graph& graph) {
  nb::dict all;
  all["words"] = told_words(graph);
  int64_t ir_version = 0;
  check(hone_graph_ir_version(graph.get(), &ir_version));
  all["ir_version"] = ir_version;
  nb::list opsets, functions;
  for (size_t i = 0; i < hone_graph_opsets(graph.get()); ++i) {
    const char* domain = nullptr;
    int64_t version = 0;
    check(hone_graph_opset(graph.get(), i, &domain, &version));
    opsets.append(nb::make_tuple(text(domain), version));
  }
  for (size_t i = 0; i < hone_graph_functions(graph.get()); ++i)
    functions.append(nb::cast(Graph::make(hone_graph_create_from_function, graph.get(), i)));
  all["opsets"] = opsets;
  all["inputs"] = told_list(graph, HONE_GRAPH_INPUTS);
  all["outputs"] = told_list(graph, HONE_GRAPH_OUTPUTS);
  all["values"] = told_list(graph, HONE_GRAPH_VALUES);
  all["weights"] = told_list(graph, HONE_GRAPH_WEIGHTS);
  all["sparse"] = told_list(graph, HONE_GRAPH_SPARSE);
  all["nodes"] = told_nodes(graph);
  all["functions"] = functions;
  all["parameters"] = told_parameters(graph);
  return all;
}

// ---- From tuples to a graph.

const char* chars(nb::handle from, size_t* length = nullptr) {
  Py_ssize_t size = 0;
  const char* begin = nullptr;
  if (PyBytes_Check(from.ptr())) {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(from.ptr(), &bytes, &size) == 0) begin = bytes;
  } else {
    begin = PyUnicode_AsUTF8AndSize(from.ptr(), &size);
  }
  if (begin == nullptr) throw nb::python_error();
  if (length != nullptr) *length = static_cast<size_t>(size);
  return begin;
}

std::vector<const char*> all_chars(nb::handle list) {
  std::vector<const char*> all;
  for (nb::handle each : list) all.push_back(chars(each));
  return all;
}

/// A message as it was told: (address, size) in a graph, or bytes.
template <typename Struct>
void set_encoded(Struct& raw, nb::handle encoded, nb::handle owner) {
  if (encoded.is_none()) return;
  if (PyBytes_Check(encoded.ptr())) {
    raw.encoded = chars(encoded, &raw.encoded_size);
    return;
  }
  const auto [address, size] = nb::cast<std::pair<uintptr_t, size_t>>(encoded);
  raw.encoded = reinterpret_cast<const void*>(address);
  raw.encoded_size = size;
  if (!owner.is_none()) raw.owner = nb::cast<const Graph&>(owner).get();
}

/// Name, type, sizes or None, encoded or None, its owner or None, (address, bytes) of elements or None.
struct GivenTensor {
  explicit GivenTensor(nb::handle from) {
    const nb::tuple parts = nb::borrow<nb::tuple>(from);
    raw.name = chars(parts[0]);
    raw.type = nb::cast<int>(parts[1]);
    raw.rank = -1;
    if (nb::handle sizes = parts[2]; !sizes.is_none()) {
      for (nb::handle each : sizes) {
        const bool named = PyUnicode_Check(each.ptr()) != 0;
        dims.push_back(named ? -1 : nb::cast<int64_t>(each));
        symbols.push_back(named ? chars(each) : nullptr);
      }
      raw.rank = static_cast<int>(dims.size());
      raw.dims = dims.data();
      raw.symbols = symbols.data();
    }
    set_encoded(raw, parts[3], parts[4]);
    if (nb::handle data = parts[5]; !data.is_none()) {
      const auto [address, size] = nb::cast<std::pair<uintptr_t, size_t>>(data);
      raw.data = reinterpret_cast<const void*>(address);
      raw.data_size = size;
    }
  }
  GivenTensor(const GivenTensor&) = delete;
  GivenTensor& operator=(const GivenTensor&) = delete;

  std::vector<int64_t> dims;
  std::vector<const char*> symbols;
  hone_graph_tensor raw = sized<hone_graph_tensor>();
};

/// Name, kind, value, reference or None, encoded or None, its owner or None.
struct GivenAttribute {
  explicit GivenAttribute(nb::handle from) {
    const nb::tuple parts = nb::borrow<nb::tuple>(from);
    raw.name = chars(parts[0]);
    raw.kind = nb::cast<int>(parts[1]);
    if (nb::handle reference = parts[3]; !reference.is_none()) raw.reference = chars(reference);
    set_encoded(raw, parts[4], parts[5]);
    const nb::handle value = parts[2];
    if (raw.kind == kGraph || raw.kind == kGraphs) {
      if (raw.reference != nullptr) return;
      for (nb::handle body : value) bodies_.push_back(nb::cast<const Graph&>(body).get());
      raw.bodies = bodies_.data();
      raw.count = bodies_.size();
    } else if (raw.encoded == nullptr && raw.reference == nullptr && !value.is_none()) {
      take(value);
    }
  }
  GivenAttribute(const GivenAttribute&) = delete;
  GivenAttribute& operator=(const GivenAttribute&) = delete;

  hone_graph_attribute raw = sized<hone_graph_attribute>();

 private:
  void take(nb::handle value) {
    switch (raw.kind) {
      case kFloat: raw.real = static_cast<float>(nb::cast<double>(value)); break;
      case kInt: raw.integer = nb::cast<int64_t>(value); break;
      case kString: add_text(value); break;
      case kTensor: raw.tensor = &tensor_.emplace(value).raw; break;
      case kFloats:
        for (nb::handle each : value) reals_.push_back(static_cast<float>(nb::cast<double>(each)));
        break;
      case kInts:
        for (nb::handle each : value) integers_.push_back(nb::cast<int64_t>(each));
        break;
      case kStrings:
        for (nb::handle each : value) add_text(each);
        break;
      default: break;
    }
    raw.reals = reals_.data();
    raw.integers = integers_.data();
    raw.texts = texts_.data();
    raw.lengths = lengths_.data();
    raw.count = std::max({reals_.size(), integers_.size(), texts_.size()});
  }
  void add_text(nb::handle value) {
    size_t length = 0;
    texts_.push_back(chars(value, &length));
    lengths_.push_back(length);
  }

  std::vector<float> reals_;
  std::vector<int64_t> integers_;
  std::vector<const char*> texts_;
  std::vector<size_t> lengths_;
  std::vector<const hone_graph*> bodies_;
  std::optional<GivenTensor> tensor_;
};

void put_tensors(const Graph& graph, nb::handle list, hone_graph_list which) {
  for (nb::handle each : list) {
    const GivenTensor given(each);
    check(hone_graph_append_tensor(graph.get(), which, &given.raw));
  }
}

void put_nodes(const Graph& graph, nb::handle nodes) {
  size_t index = hone_graph_nodes(graph.get());
  for (nb::handle each : nodes) {
    const nb::tuple parts = nb::borrow<nb::tuple>(each);
    const std::vector<const char*> inputs = all_chars(parts[3]), outputs = all_chars(parts[4]);
    auto raw = sized<hone_graph_node>();
    raw.op = chars(parts[0]);
    raw.name = chars(parts[1]);
    raw.domain = chars(parts[2]);
    raw.inputs = inputs.data();
    raw.input_count = inputs.size();
    raw.outputs = outputs.data();
    raw.output_count = outputs.size();
    raw.rest = chars(parts[6], &raw.rest_size);
    check(hone_graph_put_node(graph.get(), index, &raw));
    for (nb::handle attribute : parts[5]) {
      const GivenAttribute given(attribute);
      check(hone_graph_set_attribute(graph.get(), index, &given.raw));
    }
    ++index;
  }
}

void set_words(const Graph& graph, const nb::dict& words) {
  constexpr std::pair<const char*, hone_graph_word> kWords[] = {{"name", HONE_GRAPH_NAME},
                                                                {"doc_string", HONE_GRAPH_DOC},
                                                                {"domain", HONE_GRAPH_DOMAIN},
                                                                {"overload", HONE_GRAPH_OVERLOAD},
                                                                {"producer_name", HONE_GRAPH_PRODUCER},
                                                                {"producer_version", HONE_GRAPH_PRODUCER_VERSION}};
  for (const auto& [key, which] : kWords)
    if (words.contains(key)) check(hone_graph_set_text(graph.get(), which, chars(words[key])));
}

void write(const Graph& graph, const nb::dict& all) {
  set_words(graph, nb::borrow<nb::dict>(all["words"]));
  check(hone_graph_set_ir_version(graph.get(), nb::cast<int64_t>(all["ir_version"])));
  for (nb::handle opset : all["opsets"])
    check(hone_graph_set_opset(graph.get(), chars(nb::borrow<nb::tuple>(opset)[0]),
                               nb::cast<int64_t>(nb::borrow<nb::tuple>(opset)[1])));
  for (nb::handle parameter : all["parameters"]) {
    const GivenAttribute given(parameter);
    check(hone_graph_put_parameter(graph.get(), &given.raw));
  }
  put_tensors(graph, all["inputs"], HONE_GRAPH_INPUTS);
  put_tensors(graph, all["outputs"], HONE_GRAPH_OUTPUTS);
  put_tensors(graph, all["values"], HONE_GRAPH_VALUES);
  put_tensors(graph, all["weights"], HONE_GRAPH_WEIGHTS);
  put_tensors(graph, all["sparse"], HONE_GRAPH_SPARSE);
  put_nodes(graph, all["nodes"]);
  for (nb::handle function : all["functions"])
    check(hone_graph_put_function(graph.get(), nb::cast<const Graph&>(function).get()));
}

size_t fold(const Graph& graph, bool keep_shapes, int64_t most_bytes, const std::vector<std::string>& excluded) {
  auto options = sized<hone_graph_fold_options>();
  options.keep_shapes = keep_shapes;
  options.most_bytes = most_bytes;
  std::vector<const char*> names;
  for (const std::string& name : excluded) names.push_back(name.c_str());
  const char* const none = "";
  options.excluded = names.empty() ? &none : names.data();  // none at all is something else than what stays by default
  options.excluded_count = names.size();
  size_t folded = 0;
  call(hone_graph_fold, graph.get(), static_cast<const hone_graph_fold_options*>(&options), &folded);
  return folded;
}

void save(const Graph& graph, const std::string& path, const std::optional<std::string>& data_file, int64_t threshold) {
  auto options = sized<hone_graph_save_options>();
  options.data_file = data_file ? data_file->c_str() : nullptr;
  options.threshold = threshold;
  call(hone_graph_save, static_cast<const hone_graph*>(graph.get()), path.c_str(),
       static_cast<const hone_graph_save_options*>(&options));
}

Value elements(const Graph& graph, uintptr_t address, size_t size, bool sparse) {
  auto raw = sized<hone_graph_tensor>();
  raw.name = "";
  raw.encoded = reinterpret_cast<const void*>(address);
  raw.encoded_size = size;
  raw.sparse = sparse;
  return Value::make(hone_graph_elements, static_cast<const hone_graph*>(graph.get()),
                     static_cast<const hone_graph_tensor*>(&raw));
}

}  // namespace

void add_graph(nb::module_& module) {
  nb::class_<Graph>(module, "Graph", "A model's graph, a body or a function.")
      .def_static(
          "make", [](int64_t opset) { return Graph::make(hone_graph_create, opset); }, "An empty model.")
      .def_static(
          "function",
          [](const std::string& domain, const std::string& name) {
            return Graph::make(hone_graph_create_function, domain.c_str(), name.c_str(), int64_t{1});
          },
          "An empty function.")
      .def_static(
          "open", [](const std::string& path) { return Graph::make(hone_graph_create_from_file, path.c_str()); },
          "From a file.")
      .def_static(
          "parse",
          [](nb::bytes bytes, const std::optional<std::string>& folder) {
            return Graph::make(hone_graph_create_from_memory, bytes.data(), bytes.size(),
                               folder ? folder->c_str() : nullptr);
          },
          nb::arg(), nb::arg().none(), "From the bytes of a file.")
      .def(
          "like", [](const Graph& self) { return Graph::make(hone_graph_create_copy, self.get(), 0); },
          "What is said of it, without its contents.")
      .def("read", read, "All that it holds.")
      .def("write", write, "Puts all that is given into it.")
      .def("elements", elements, "Of a weight's message.")
      .def("fold", fold, "Folds constants, once.")
      .def(
          "infer",
          [](const Graph& self, bool values) {
            size_t changed = 0;
            call(hone_graph_infer_shapes, self.get(), static_cast<int>(values), &changed);
            return changed;
          },
          "Declares types as they follow.")
      .def("save", save, nb::arg(), nb::arg().none(), nb::arg(), "Writes a file.")
      .def(
          "bytes",
          [](const Graph& self) {
            const void* bytes = nullptr;
            size_t size = 0;
            check(hone_graph_bytes(self.get(), &bytes, &size));
            return nb::bytes(bytes, size);
          },
          "The model as a file's bytes.");
}

}  // namespace hone::python
