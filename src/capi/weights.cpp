// SPDX-License-Identifier: Apache-2.0
//
// The C interface's weights of a model, by name, and the network that a plan keeps for others.
#include <algorithm>

#include "base/state_error.h"
#include "base/text.h"
#include "builder/refit/network.h"
#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/operators/operators.h"
#include "capi/tensor.h"

using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

namespace {

/// One of each name, in the order in which nodes use them.
std::vector<hone::NamedConstant> weights_of(const hone_model& model) {
  std::set<std::string_view> names;
  std::vector<hone::NamedConstant> weights = hone::named_constants(model.graph);
  std::erase_if(weights, [&](const auto& each) { return !names.insert(each.value->name).second; });
  return weights;
}

/// All constants of the name; throws Error where there is none.
std::vector<hone::NamedConstant> find(const hone_model& model, const std::string& name) {
  std::vector<hone::NamedConstant> found;
  std::vector<std::string_view> names;
  const std::vector<hone::NamedConstant> all = hone::named_constants(model.graph);
  for (const hone::NamedConstant& each : all) {
    names.push_back(each.value->name);
    if (each.value->name == name) found.push_back(each);
  }
  if (!found.empty()) return found;
  if (std::ranges::find(model.consumed, name) != model.consumed.end())
    throw hone::Error(fmt::format("the weight {} is not in the network by itself: the import has computed with it, or "
                                  "left out what reads it",
                                  name),
                      "refit with a model that has the other weights: --refitFromOnnx, hone_plan_create_from_refit()");
  throw hone::Error(
      fmt::format("the model has no weight called {}", name),
      names.empty() ? std::string("it has none at all") : fmt::format("the nearest is {}", hone::nearest(name, names)));
}

bool differ(const std::vector<hone::NamedConstant>& constants) {
  const hone::Tensor& first = *constants.front().value->constant;
  return std::ranges::any_of(constants, [&](const hone::NamedConstant& each) {
    const hone::Tensor& tensor = *each.value->constant;
    return tensor.type() != first.type() ||
           (tensor.blob().data() != first.blob().data() && !std::ranges::equal(tensor.bytes(), first.bytes()));
  });
}

/// Why a refit takes no other one; null: it does.
const char* refusal(const hone_model& model, const hone::NamedConstant& weight) {
  if (hone::decides_structure(weight.value->constant->dtype()))
    return "it is a part of the network: sizes, indices and conditions shape the engine, which would be another one";
  const std::string& name = weight.value->name;
  if (model.missing.contains(name)) return nullptr;
  return differ(find(model, name)) ? "several tensors have its name, in bodies of If, Loop or Scan" : nullptr;
}

/// Every result of the nodes that read these, as text: what a weight must not change.
std::string types_behind(hone::Graph& graph, const std::vector<hone::NamedConstant>& constants) {
  std::string text;
  const auto add = [&](hone::Graph& in, const auto& again) -> void {
    for (hone::Node* node : in.nodes()) {
      for (const auto& body : node->bodies) again(*body, again);
      const bool reads = std::ranges::any_of(node->inputs, [&](const hone::Value* input) {
        return std::ranges::find(constants, input, &hone::NamedConstant::value) != constants.end();
      });
      if (!reads) continue;
      in.infer(node);
      for (const hone::Value* output : node->outputs) text += output->type.text() + " ";
    }
  };
  add(graph, add);
  return text;
}

void exchange(hone_model& model, const std::vector<hone::NamedConstant>& constants, const hone::Tensor& tensor) {
  const hone::Tensor present = *constants.front().value->constant;
  const auto put = [&](const hone::Tensor& contents) {
    for (const hone::NamedConstant& each : constants) each.value->constant = contents;
  };
  const std::string& name = constants.front().value->name;
  const std::string before = types_behind(model.graph, constants);
  put(tensor);
  std::string behind;
  try {
    behind = types_behind(model.graph, constants);
  } catch (const hone::Error& error) {
    behind = error.message();
  }
  if (behind == before || model.missing.contains(name)) return;
  put(present);
  types_behind(model.graph, constants);
  throw hone::Error(fmt::format("with other values of {} the network would have other sizes", name),
                    "build a plan of the model that has them");
}

}  // namespace

void hone_model::require_whole() const {
  if (missing.empty()) return;
  constexpr size_t kShown = 3;
  std::vector<std::string> names(missing.begin(), missing.end());
  names.resize(std::min(names.size(), kShown));
  std::string text = hone::join(names, ", ");
  if (missing.size() > kShown) text += fmt::format(" and {} more", missing.size() - kShown);
  throw hone::StateError(fmt::format("weights are missing: {}", text),
                         "the plan came without weights; give them with hone_model_set_weight()");
}

size_t hone_model_weights(const hone_model* model) {
  size_t count = 0;
  guarded([&] {
    require(model, "model");
    count = weights_of(*model).size();
  });
  return count;
}

hone_status hone_model_weight(const hone_model* model, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(model, "model");
    const std::vector<hone::NamedConstant> weights = weights_of(*model);
    require_index(index, weights.size(), "weight");
    hone::capi::describe(weights[index].value->name, weights[index].value->type, true, tensor);
  });
}

hone_status hone_model_weight_details(const hone_model* model, size_t index, hone_weight* weight) {
  return guarded([&] {
    require(model, "model");
    const std::vector<hone::NamedConstant> weights = weights_of(*model);
    require_index(index, weights.size(), "weight");
    const hone::NamedConstant& found = weights[index];
    const hone::Tensor& tensor = *found.value->constant;
    hone_weight told{.name = found.value->name.c_str(),
                     .node = found.node->name.c_str(),
                     .role = hone::weight_role(*found.node, found.operand).data(),
                     .dtype = static_cast<hone_dtype>(tensor.dtype()),
                     .bytes = static_cast<int64_t>(tensor.bytes().size()),
                     .missing = model->missing.contains(found.value->name),
                     .refusal = refusal(*model, found)};
    hone::capi::copy_dims(tensor.dims(), told.dims, &told.rank);
    hone::capi::fill(weight, "weight", told);
  });
}

size_t hone_model_missing_weights(const hone_model* model) {
  size_t count = 0;
  guarded([&] {
    require(model, "model");
    count = model->missing.size();
  });
  return count;
}

hone_status hone_model_weight_data(const hone_model* model, const char* name, const void** data, size_t* bytes) {
  return guarded([&] {
    require(model, "model");
    require(name, "name");
    require(data, "data");
    require(bytes, "bytes");
    const hone::Tensor& tensor = *find(*model, name).front().value->constant;
    HONE_CHECK(!hone::is_object(tensor.dtype()), "{} holds {}, which are no bytes", name,
               hone::name_of(tensor.dtype()));
    if (model->missing.contains(name))
      throw hone::StateError(fmt::format("the weight {} is missing", name),
                             "the plan came without weights; hone_model_set_weight() gives it");
    *data = tensor.bytes().data();
    *bytes = tensor.bytes().size();
  });
}

hone_status hone_model_set_weight(hone_model* model, const char* name, const void* data, size_t bytes) {
  return guarded([&] {
    require(model, "model");
    require(name, "name");
    require(data, "data");
    const std::vector<hone::NamedConstant> constants = find(*model, name);
    const hone::Tensor& present = *constants.front().value->constant;
    HONE_CHECK(!hone::is_object(present.dtype()), "{} holds {}, which are no bytes", name,
               hone::name_of(present.dtype()));
    const char* why = model->of_plan || constants.size() > 1 ? refusal(*model, constants.front()) : nullptr;
    if (why != nullptr) throw hone::Error(fmt::format("the weight {} cannot be exchanged: {}", name, why));
    if (present.bytes().size() != bytes)
      throw ArgumentError(fmt::format("bytes is {}, the weight {} has {}", bytes, name, present.bytes().size()));
    const std::span<const std::byte> contents(static_cast<const std::byte*>(data), bytes);
    exchange(*model, constants, hone::Tensor(present.dtype(), present.dims(), hone::Blob::copy(contents)));
    model->missing.erase(name);
  });
}

hone_status hone_model_create_from_plan(const hone_plan* plan, hone_model** model) {
  return guarded([&] {
    require(plan, "plan");
    require(model, "model");
    const hone::OperatorList operators = hone::capi::program_operators();
    hone::capi::require_operators(*plan->plan, operators);
    hone::KeptNetwork kept = hone::kept_network(*plan->plan, operators);
    const hone::RefitPart& part = *plan->plan->refit;
    auto made = std::make_unique<hone_model>(hone::ImportedModel{
        .graph = std::move(kept.graph), .live = part.live, .folded = part.folded, .consumed = part.consumed});
    made->missing = std::move(kept.missing);
    made->of_plan = true;
    *model = made.release();
  });
}
