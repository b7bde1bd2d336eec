// SPDX-License-Identifier: Apache-2.0
//
// The C interface's graphs: what changes them as wholes.
#include <algorithm>

#include "capi/graph/graph.h"
#include "edit/changes/change.h"
#include "edit/changes/clean.h"
#include "edit/changes/fold.h"
#include "edit/infer.h"

using hone::capi::ArgumentError;
using hone::capi::edited;
using hone::capi::require;
using hone::capi::require_index;
namespace edit = hone::edit;

namespace {

/// What a function keeps of its message are no fields of a model: while it is read as one they are put aside.
template <typename Body>
void as_model(hone_graph& graph, const Body& body) {
  edit::Rest kept;
  if (graph.is_function) kept.swap(graph.model.rest);
  try {
    body();
  } catch (...) {
    if (graph.is_function) graph.model.rest.swap(kept);
    throw;
  }
  if (graph.is_function) graph.model.rest.swap(kept);
}

}  // namespace

hone_status hone_graph_rename(hone_graph* graph, const char* from, const char* to) {
  return edited([&] {
    require(graph, "graph");
    require(from, "from");
    require(to, "to");
    edit::rename(graph->model, from, to);
  });
}

hone_status hone_graph_replace_uses(hone_graph* graph, const char* from, const char* to) {
  return edited([&] {
    require(graph, "graph");
    require(from, "from");
    require(to, "to");
    const edit::Index index(graph->model.graph);
    edit::need_tensor(graph->model.graph, index, from);
    edit::need_tensor(graph->model.graph, index, to);
    edit::replace_uses(graph->model.graph, from, to);
  });
}

hone_status hone_graph_cleanup(hone_graph* graph, size_t* removed) {
  return edited([&] {
    require(graph, "graph");
    require(removed, "removed");
    *removed = edit::clean(graph->model);
  });
}

hone_status hone_graph_sort(hone_graph* graph) {
  return edited([&] {
    require(graph, "graph");
    edit::sort_nodes(graph->model);
  });
}

hone_status hone_graph_fold(hone_graph* graph, const hone_graph_fold_options* options, size_t* folded) {
  return edited([&] {
    require(graph, "graph");
    require(folded, "folded");
    edit::FoldRules rules;
    std::unordered_set<std::string> excluded;
    if (options != nullptr) {
      const auto given = hone::capi::taken(options, "options");
      rules.shapes = given.keep_shapes == 0;
      if (given.most_bytes < 0) throw ArgumentError(fmt::format("options->most_bytes is {}", given.most_bytes));
      if (given.most_bytes > 0) rules.most_bytes = given.most_bytes;
      if (given.excluded != nullptr) {
        for (size_t i = 0; i < given.excluded_count; ++i) {
          require(given.excluded[i], "options->excluded");
          excluded.insert(given.excluded[i]);
        }
        rules.excludes = [&](const edit::Node& node) {
          return std::ranges::any_of(node.outputs, [&](const std::string& name) { return excluded.contains(name); });
        };
      }
    }
    as_model(*graph, [&] {
      edit::constants_to_weights(graph->model);
      *folded = edit::fold_constants(graph->model, rules).folded;
    });
  });
}

hone_status hone_graph_infer_shapes(hone_graph* graph, int values, size_t* changed) {
  return edited([&] {
    require(graph, "graph");
    require(changed, "changed");
    as_model(*graph, [&] { *changed = edit::infer_shapes(graph->model, values != 0); });
  });
}

hone_status hone_graph_match(hone_graph* graph, const char* pattern, size_t* count) {
  return edited([&] {
    require(graph, "graph");
    require(pattern, "pattern");
    require(count, "count");
    graph->matches = edit::find_matches(graph->model.graph, edit::parse_pattern(pattern));
    *count = graph->matches.size();
  });
}

hone_status hone_graph_match_nodes(const hone_graph* graph, size_t match, const size_t** nodes, size_t* count) {
  return edited([&] {
    require(graph, "graph");
    require(nodes, "nodes");
    require(count, "count");
    require_index(match, graph->matches.size(), "match");
    *nodes = graph->matches[match].nodes.data();
    *count = graph->matches[match].nodes.size();
  });
}

hone_status hone_graph_match_tensor(const hone_graph* graph, size_t match, const char* name, const char** tensor) {
  return edited([&] {
    require(graph, "graph");
    require(name, "name");
    require(tensor, "tensor");
    require_index(match, graph->matches.size(), "match");
    const auto& tensors = graph->matches[match].tensors;
    const auto at = tensors.find(name);
    if (at == tensors.end())
      throw hone::Error(fmt::format("the pattern names no tensor {}", name), "give the name without its $ or #");
    *tensor = at->second.c_str();
  });
}

hone_status hone_graph_replace(hone_graph* graph, const char* pattern, const char* by, size_t* count) {
  return edited([&] {
    require(graph, "graph");
    require(pattern, "pattern");
    require(by, "by");
    require(count, "count");
    *count = edit::replace_matches(graph->model, edit::parse_pattern(pattern), edit::parse_pattern(by));
  });
}
