// SPDX-License-Identifier: Apache-2.0
//
// The C interface's golden values: a model's graph as the importer left it, evaluated node by node.
#include <algorithm>

#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "ir/graph.h"

using hone::StateError;
using hone::capi::guarded;
using hone::capi::require;

struct hone_reference : hone::capi::Handle<hone::capi::Kind::reference> {
  hone::Graph graph;
  std::map<std::string, hone::Tensor, std::less<>> inputs, outputs = {};
};

namespace {

bool fits(const hone::Shape& shape, const hone::Dims& dims) {
  bool same = shape.rank() == dims.size();
  for (size_t i = 0; same && i < dims.size(); ++i) same = !shape[i].is_constant() || shape[i].value() == dims[i];
  return same;
}

}  // namespace

hone_status hone_reference_create(const hone_model* model, hone_reference** reference) {
  return guarded([&] {
    require(model, "model");
    require(reference, "reference");
    model->require_whole();
    auto made = std::make_unique<hone_reference>();
    made->graph = model->graph.clone();
    *reference = made.release();
  });
}

hone_status hone_reference_set_input(hone_reference* reference, const char* input, const hone_value* value) {
  return guarded([&] {
    require(reference, "reference");
    require(input, "input");
    require(value, "value");
    const auto& inputs = reference->graph.inputs();
    const auto found = std::ranges::find(inputs, std::string_view(input), &hone::Value::name);
    HONE_CHECK(found != inputs.end(), "the model has no input called '{}'", input);
    const hone::TensorType &wanted = (*found)->type, given = value->tensor.type();
    HONE_CHECK(wanted.dtype == given.dtype, "input {} holds {}, the value {}", input, wanted.text(), given.text());
    if (!hone::is_container(wanted.dtype) && wanted.ranked)
      HONE_CHECK(fits(wanted.shape, value->tensor.dims()), "input {} is {}, the value {}", input, wanted.text(),
                 given.text());
    reference->inputs.insert_or_assign(input, value->tensor);
  });
}

hone_status hone_reference_run(hone_reference* reference) {
  return guarded([&] {
    require(reference, "reference");
    std::vector<hone::Tensor> values;
    for (const hone::Value* input : reference->graph.inputs()) {
      const auto found = reference->inputs.find(input->name);
      if (found == reference->inputs.end())
        throw StateError(fmt::format("input {} has no value", input->name), "call hone_reference_set_input()");
      values.push_back(found->second);
    }
    const std::vector<hone::Tensor> results = hone::evaluate(reference->graph, values);
    std::map<std::string, hone::Tensor, std::less<>> outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs.insert_or_assign(reference->graph.outputs()[i]->name, results[i]);
    reference->outputs = std::move(outputs);
  });
}

hone_status hone_value_create_from_reference(const hone_reference* reference, const char* output, hone_value** value) {
  return guarded([&] {
    require(reference, "reference");
    require(output, "output");
    require(value, "value");
    if (reference->outputs.empty()) throw StateError("the reference has not run", "call hone_reference_run() first");
    const auto found = reference->outputs.find(output);
    HONE_CHECK(found != reference->outputs.end(), "there is no output called '{}'", output);
    *value = new hone_value(found->second);
  });
}

void hone_reference_destroy(hone_reference* reference) { hone::capi::destroy(reference, "reference"); }
