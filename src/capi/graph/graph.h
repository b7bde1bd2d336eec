// SPDX-License-Identifier: Apache-2.0
//
// What a hone_graph holds: a model of src/edit, where it is a function the function's parts, and the memory that structs point to which
// programs have filled. Bodies and functions are handles of their own that keep the memory of the model they were copied from.
#pragma once

#include <deque>

#include "capi/guard.h"
#include "edit/changes/pattern.h"
#include "edit/parts.h"
#include "hone/graph.h"

namespace hone::capi {

using Keeps = std::vector<std::shared_ptr<const void>>;

/// Memory behind the pointers of a struct that was filled; the next call of the same function uses it anew.
struct Told {
  std::vector<int64_t> dims, integers;
  std::vector<float> reals;
  std::deque<std::string> texts;
  std::vector<const char*> symbols, inputs, outputs, strings;
  std::vector<size_t> lengths;
  std::string encoded, location;
  hone_graph_tensor tensor = {};
};

}  // namespace hone::capi

struct hone_graph : hone::capi::Handle<hone::capi::Kind::graph> {
  hone_graph() { model.owner = keeps; }

  /// Everything that the other one's messages lie in.
  void adopt(const hone_graph& other);
  void adopt(const std::shared_ptr<const void>& memory);
  /// The bytes, for as long as this graph lives: where they lie in a graph that is kept, as they are, else a copy.
  std::string_view view(const void* bytes, size_t size, const hone_graph* owner);

  std::shared_ptr<hone::capi::Keeps> keeps = std::make_shared<hone::capi::Keeps>();
  hone::edit::Model model;
  bool is_function = false;
  std::string domain, overload;                   // of a function
  std::vector<hone::edit::Attribute> parameters;  // of a function
  std::vector<hone::edit::Match> matches;         // of the last search
  std::string file;                               // what hone_graph_bytes() gave
  mutable hone::capi::Told node, attribute, parameter, tensor;
};

namespace hone::capi {

/// guarded(), and a damaged message inside of a model is the model's fault.
template <typename Body>
hone_status edited(Body&& body) {
  return guarded([&] {
    try {
      body();
    } catch (const protozero::exception& error) {
      throw Error(fmt::format("a message of the graph is damaged: {}", error.what()),
                  "read the model from a whole file");
    }
  });
}

/// A list's length; 0 for what is no graph.
template <typename Count>
size_t counted(const hone_graph* graph, const Count& count) {
  size_t result = 0;
  guarded([&] {
    require(graph, "graph");
    result = count(*graph);
  });
  return result;
}

edit::Node& node_of(hone_graph& graph, size_t index);
const edit::Node& node_of(const hone_graph& graph, size_t index);
std::vector<edit::Value>& list_of(hone_graph& graph, hone_graph_list list);

void tell_weight(const hone_graph& graph, const edit::Weight& weight, Told& told, hone_graph_tensor* tensor);
void tell_attribute(const hone_graph& graph, const edit::Attribute& from, Told& told, hone_graph_attribute* out);
/// The weight that a program gave.
edit::Weight weight_of(hone_graph& graph, const hone_graph_tensor& given);
edit::Attribute attribute_of(hone_graph& graph, const hone_graph_attribute& given);

}  // namespace hone::capi
