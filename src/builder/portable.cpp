// SPDX-License-Identifier: Apache-2.0
//
// The graph is stored as it is after the passes, in the text form with its constants outside, so that they are mapped.
#include "builder/portable.h"

#include <algorithm>

#include "builder/build.h"
#include "ir/text.h"
#include "ops/all.h"

namespace hone {
namespace {

ProfileOptions shapes_of(const Profile& profile) {
  ProfileOptions shapes;
  for (const ProfileRange& range : profile.ranges) shapes[range.tensor] = {range.min, range.opt, range.max};
  return shapes;
}

BuildOptions options_of(const Plan& plan) {
  BuildOptions options;
  options.optimization_level = 0;
  options.portable = true;
  options.profiling_verbosity = plan.meta.profiling_verbosity;
  for (const Profile& profile : plan.profiles) options.profiles.push_back(shapes_of(profile));
  for (const IoTensor& io : plan.io)
    (io.is_input ? options.input_formats : options.output_formats).push_back({io.type.dtype, io.type.layout});
  return options;
}

/// The stored graph has debug tensors behind its own outputs: they are marked again by name.
std::vector<std::string> take_debug_outputs(Graph& graph, const Plan& plan) {
  const auto own = static_cast<size_t>(std::ranges::count(plan.io, false, &IoTensor::is_input));
  std::vector<Value*> outputs = graph.outputs();
  std::vector<std::string> names;
  for (size_t i = own; i < outputs.size(); ++i) names.push_back(outputs[i]->name);
  outputs.resize(std::min(own, outputs.size()));
  graph.set_outputs(std::move(outputs));
  return names;
}

/// Whether more is marked than those, as --markUnfusedTensorsAsDebugTensors does.
bool marks_unfused(const Plan& plan, const std::vector<std::string>& named) {
  return std::ranges::any_of(plan.profiles[0].buffers, [&](const BufferSlot& slot) {
    return slot.debug && slot.kind == BufferKind::arena && std::ranges::find(named, slot.name) == named.end();
  });
}

}  // namespace

PortablePart portable_part(const Graph& graph) {
  PortablePart part;
  part.graph = print_with_data(graph, part.constants);
  return part;
}

Plan retarget(const Plan& plan, const Backend& backend, Device& device, const Listeners& listeners,
              const OperatorList& operators) {
  HONE_ASSERT(plan.portable.has_value(), "the plan has no portable part");
  Graph graph =
      with_note([] { return std::string("reading the portable part of the plan"); },
                [&] { return parse_with_data(plan.portable->graph, find_among(operators), plan.portable->constants); });
  graph.name = plan.meta.model;
  TimingCache cache;
  BuildOptions options = options_of(plan);
  options.debug_tensors = take_debug_outputs(graph, plan);
  options.debug_unfused = marks_unfused(plan, options.debug_tensors);
  Plan result = build(std::move(graph), options, backend, device, cache, listeners);
  for (size_t i = 0; i < result.io.size(); ++i) result.io[i].range = plan.io[i].range;
  result.folded = plan.folded;
  result.refit = plan.refit;
  return result;
}

}  // namespace hone
