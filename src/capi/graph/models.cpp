// SPDX-License-Identifier: Apache-2.0
//
// The C interface's graphs as wholes: made, copied, written, what is said of them; bodies and functions as graphs of their own.
#include <algorithm>
#include <limits>

#include "capi/graph/graph.h"
#include "edit/changes/fold.h"
#include "edit/file.h"

using hone::capi::ArgumentError;
using hone::capi::counted;
using hone::capi::edited;
using hone::capi::require;
using hone::capi::require_index;
namespace edit = hone::edit;

void hone_graph::adopt(const std::shared_ptr<const void>& memory) {
  if (memory != nullptr && std::ranges::find(*keeps, memory) == keeps->end()) keeps->push_back(memory);
}

void hone_graph::adopt(const hone_graph& other) {
  if (other.keeps == keeps) return;
  for (const std::shared_ptr<const void>& memory : *other.keeps) adopt(memory);
  adopt(other.model.added);
}

std::string_view hone_graph::view(const void* bytes, size_t size, const hone_graph* owner) {
  const std::string_view text(static_cast<const char*>(bytes), size);
  if (owner == nullptr) return model.keep(std::string(text));
  require(owner, "owner");
  adopt(*owner);
  return text;
}

namespace {

constexpr uint32_t kProducer = 2, kProducerVersion = 3, kModelDomain = 4, kModelDoc = 6, kFunctionDoc = 8,
                   kGraphDoc = 10;

/// A handle for a model that was read.
std::unique_ptr<hone_graph> handle_of(edit::Model model) {
  auto made = std::make_unique<hone_graph>();
  made->adopt(model.owner);
  model.owner = made->keeps;
  made->model = std::move(model);
  return made;
}

/// A handle whose memory is that of another one.
std::unique_ptr<hone_graph> part_of(const hone_graph& graph) {
  auto made = std::make_unique<hone_graph>();
  made->adopt(graph);
  made->model.ir_version = graph.model.ir_version;
  made->model.directory = graph.model.directory;
  return made;
}

edit::Rest* rest_of(hone_graph& graph, hone_graph_word word, uint32_t& number) {
  switch (word) {
    case HONE_GRAPH_DOC:
      number = graph.is_function ? kFunctionDoc : kGraphDoc;
      return graph.is_function ? &graph.model.rest : &graph.model.graph.rest;
    case HONE_GRAPH_DOMAIN: number = kModelDomain; return &graph.model.rest;
    case HONE_GRAPH_PRODUCER: number = kProducer; return &graph.model.rest;
    case HONE_GRAPH_PRODUCER_VERSION: number = kProducerVersion; return &graph.model.rest;
    case HONE_GRAPH_MODEL_DOC: number = kModelDoc; return &graph.model.rest;
    default: return nullptr;
  }
}

std::string* own_text(hone_graph& graph, hone_graph_word word) {
  if (word == HONE_GRAPH_NAME) return &graph.model.graph.name;
  if (word == HONE_GRAPH_OVERLOAD) return &graph.overload;
  if (word == HONE_GRAPH_DOMAIN && graph.is_function) return &graph.domain;
  return nullptr;
}

void require_word(hone_graph_word word) {
  if (word < HONE_GRAPH_NAME || word > HONE_GRAPH_MODEL_DOC)
    throw ArgumentError(fmt::format("word is {}", static_cast<int>(word)), "it is one of hone_graph_word");
}

void require_opset(int64_t opset) {
  if (opset < 1) throw ArgumentError(fmt::format("opset is {}", opset), "the first version of ONNX's operators is 1");
}

void require_function(const hone_graph& graph) {
  if (!graph.is_function) throw hone::Error("the graph is no function", "hone_graph_create_function() makes one");
}

/// Words of models stand nowhere in a function.
void require_place(const hone_graph& graph, hone_graph_word word) {
  if (graph.is_function && word >= HONE_GRAPH_PRODUCER)
    throw hone::Error("a function has no producer and no model's documentation", "ask the model's graph");
}

}  // namespace

hone_status hone_graph_create(int64_t opset, hone_graph** graph) {
  return edited([&] {
    require(graph, "graph");
    require_opset(opset);
    constexpr int64_t kIrVersion = 10;
    *graph = handle_of(edit::new_model("graph", opset, kIrVersion)).release();
  });
}

hone_status hone_graph_create_from_file(const char* onnx_path, hone_graph** graph) {
  return edited([&] {
    require(onnx_path, "onnx_path");
    require(graph, "graph");
    *graph = handle_of(edit::open_model(onnx_path)).release();
  });
}

hone_status hone_graph_create_from_memory(const void* bytes, size_t size, const char* folder, hone_graph** graph) {
  return edited([&] {
    require(bytes, "bytes");
    require(graph, "graph");
    const hone::Blob copy = hone::Blob::copy(std::span(static_cast<const std::byte*>(bytes), size));
    *graph = handle_of(edit::read_model(copy, folder == nullptr ? "" : folder)).release();
  });
}

hone_status hone_graph_create_copy(const hone_graph* graph, int contents, hone_graph** copy) {
  return edited([&] {
    require(graph, "graph");
    require(copy, "copy");
    auto made = part_of(*graph);
    made->is_function = graph->is_function;
    made->domain = graph->domain;
    made->overload = graph->overload;
    made->model.opsets = graph->model.opsets;
    made->model.rest = graph->model.rest;
    if (contents != 0) {
      made->model.graph = edit::deep_copy(graph->model.graph);
      made->model.functions = graph->model.functions;
      for (edit::Function& function : made->model.functions)
        for (edit::Node& node : function.nodes) node = edit::deep_copy(node);
      made->parameters = graph->parameters;
    } else {
      made->model.graph.name = graph->model.graph.name;
      made->model.graph.rest = graph->model.graph.rest;
    }
    *copy = made.release();
  });
}

hone_status hone_graph_create_from_body(const hone_graph* graph, size_t node, size_t attribute, size_t index,
                                        hone_graph** body) {
  return edited([&] {
    require(graph, "graph");
    require(body, "body");
    const edit::Node& of = hone::capi::node_of(*graph, node);
    require_index(attribute, of.attributes.size(), "attribute");
    const auto& bodies = of.attributes[attribute].bodies;
    require_index(index, bodies.size(), "body");
    auto made = part_of(*graph);
    made->model.opsets = graph->model.opsets;
    made->model.graph = edit::deep_copy(*bodies[index]);
    *body = made.release();
  });
}

hone_status hone_graph_create_function(const char* domain, const char* name, int64_t opset, hone_graph** function) {
  return edited([&] {
    require(domain, "domain");
    require(name, "name");
    require(function, "function");
    require_opset(opset);
    auto made = handle_of(edit::new_model(name, opset, 0));
    made->is_function = true;
    made->domain = domain;
    *function = made.release();
  });
}

hone_status hone_graph_create_from_function(const hone_graph* graph, size_t index, hone_graph** function) {
  return edited([&] {
    require(graph, "graph");
    require(function, "function");
    require_index(index, graph->model.functions.size(), "function");
    edit::FunctionParts parts = edit::parts_of(graph->model.functions[index]);
    auto made = part_of(*graph);
    made->is_function = true;
    made->domain = std::move(parts.domain);
    made->overload = std::move(parts.overload);
    made->parameters = std::move(parts.parameters);
    made->model.graph = std::move(parts.model.graph);
    made->model.opsets = std::move(parts.model.opsets);
    made->model.rest = std::move(parts.model.rest);
    made->adopt(parts.model.added);
    *function = made.release();
  });
}

void hone_graph_destroy(hone_graph* graph) { hone::capi::destroy(graph, "graph"); }

hone_status hone_graph_bytes(hone_graph* graph, const void** bytes, size_t* size) {
  return edited([&] {
    require(graph, "graph");
    require(bytes, "bytes");
    require(size, "size");
    if (graph->is_function) throw hone::Error("a function is no model", "put it into one: hone_graph_put_function()");
    const edit::Rope encoded = edit::encode(graph->model);
    if (encoded.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      throw hone::Error(fmt::format("the model has {} bytes; a file of ONNX has at most 2 GiB", encoded.size()),
                        "write it with its weights in another file: hone_graph_save()");
    graph->file = encoded.text();
    *bytes = graph->file.data();
    *size = graph->file.size();
  });
}

hone_status hone_graph_save(const hone_graph* graph, const char* onnx_path, const hone_graph_save_options* options) {
  return edited([&] {
    require(graph, "graph");
    require(onnx_path, "onnx_path");
    edit::SaveRules rules;
    if (options != nullptr) {
      const auto given = hone::capi::taken(options, "options");
      if (given.data_file != nullptr) rules.external = given.data_file;
      rules.threshold = given.threshold;
    }
    if (graph->is_function) throw hone::Error("a function is no model", "put it into one: hone_graph_put_function()");
    edit::save(graph->model, onnx_path, rules);
  });
}

hone_status hone_graph_text(const hone_graph* graph, hone_graph_word word, const char** text) {
  return edited([&] {
    require(graph, "graph");
    require(text, "text");
    require_word(word);
    require_place(*graph, word);
    auto& changed = const_cast<hone_graph&>(*graph);  // nothing of it changes: the places are looked up alike for both
    uint32_t number = 0;
    if (const std::string* own = own_text(changed, word)) {
      *text = own->c_str();
    } else if (const edit::Rest* rest = rest_of(changed, word, number)) {
      *text = graph->tensor.texts.emplace_back(edit::text_in(*rest, number)).c_str();
    } else {
      *text = "";
    }
  });
}

hone_status hone_graph_set_text(hone_graph* graph, hone_graph_word word, const char* text) {
  return edited([&] {
    require(graph, "graph");
    require(text, "text");
    require_word(word);
    require_place(*graph, word);
    uint32_t number = 0;
    if (std::string* own = own_text(*graph, word)) *own = text;
    else if (edit::Rest* rest = rest_of(*graph, word, number)) edit::set_text(graph->model, *rest, number, text);
  });
}

hone_status hone_graph_ir_version(const hone_graph* graph, int64_t* version) {
  return edited([&] {
    require(graph, "graph");
    require(version, "version");
    *version = graph->model.ir_version;
  });
}

hone_status hone_graph_set_ir_version(hone_graph* graph, int64_t version) {
  return edited([&] {
    require(graph, "graph");
    if (version < 0) throw ArgumentError(fmt::format("version is {}", version));
    graph->model.ir_version = version;
  });
}

size_t hone_graph_opsets(const hone_graph* graph) {
  return counted(graph, [](const hone_graph& of) { return of.model.opsets.size(); });
}

hone_status hone_graph_opset(const hone_graph* graph, size_t index, const char** domain, int64_t* version) {
  return edited([&] {
    require(graph, "graph");
    require(domain, "domain");
    require(version, "version");
    require_index(index, graph->model.opsets.size(), "opset");
    *domain = graph->model.opsets[index].domain.c_str();
    *version = graph->model.opsets[index].version;
  });
}

hone_status hone_graph_set_opset(hone_graph* graph, const char* domain, int64_t version) {
  return edited([&] {
    require(graph, "graph");
    require(domain, "domain");
    if (version < 0) throw ArgumentError(fmt::format("version is {}", version));
    std::vector<edit::Opset>& opsets = graph->model.opsets;
    const std::string_view wanted = hone::onnx::canonical_domain(domain);
    const auto is_wanted = [&](const edit::Opset& each) { return hone::onnx::canonical_domain(each.domain) == wanted; };
    if (version == 0) {
      std::erase_if(opsets, is_wanted);
      return;
    }
    const auto at = std::ranges::find_if(opsets, is_wanted);
    if (at == opsets.end()) opsets.push_back({domain, version, {}});
    else at->version = version;
  });
}

size_t hone_graph_functions(const hone_graph* graph) {
  return counted(graph, [](const hone_graph& of) { return of.model.functions.size(); });
}

hone_status hone_graph_put_function(hone_graph* graph, const hone_graph* function) {
  return edited([&] {
    require(graph, "graph");
    require(function, "function");
    if (graph->is_function) throw hone::Error("a function holds no functions", "put it into the model's graph");
    require_function(*function);
    if (function->model.graph.name.empty())
      throw hone::Error("the function has no name", "hone_graph_set_text() with HONE_GRAPH_NAME");
    edit::FunctionParts parts;
    parts.model = function->model;  // views; nodes are copied by function_of()
    parts.domain = function->domain;
    parts.overload = function->overload;
    parts.parameters = function->parameters;
    graph->adopt(*function);
    edit::Function made = edit::function_of(graph->model, parts);
    for (edit::Function& each : graph->model.functions)
      if (each.name == made.name && each.domain == made.domain && each.overload == made.overload) {
        each = std::move(made);
        return;
      }
    graph->model.functions.push_back(std::move(made));
  });
}

hone_status hone_graph_remove_function(hone_graph* graph, size_t index) {
  return edited([&] {
    require(graph, "graph");
    std::vector<edit::Function>& functions = graph->model.functions;
    require_index(index, functions.size(), "function");
    functions.erase(functions.begin() + static_cast<std::ptrdiff_t>(index));
  });
}

size_t hone_graph_parameters(const hone_graph* graph) {
  return counted(graph, [](const hone_graph& of) { return of.parameters.size(); });
}

hone_status hone_graph_parameter(const hone_graph* graph, size_t index, hone_graph_attribute* parameter) {
  return edited([&] {
    require(graph, "graph");
    require(parameter, "parameter");
    require_index(index, graph->parameters.size(), "parameter");
    hone::capi::tell_attribute(*graph, graph->parameters[index], graph->parameter, parameter);
  });
}

hone_status hone_graph_put_parameter(hone_graph* graph, const hone_graph_attribute* parameter) {
  return edited([&] {
    require(graph, "graph");
    const auto given = hone::capi::taken(parameter, "parameter");
    require(given.name, "parameter->name");
    require_function(*graph);
    edit::Attribute made =
        given.kind == 0 ? edit::Attribute{given.name, 0, {}, {}} : hone::capi::attribute_of(*graph, given);
    if (!made.bodies.empty()) throw hone::Error("a function's parameter is no graph", "put the body into the node");
    const auto at = std::ranges::find(graph->parameters, made.name, &edit::Attribute::name);
    if (at == graph->parameters.end()) graph->parameters.push_back(std::move(made));
    else *at = std::move(made);
  });
}
