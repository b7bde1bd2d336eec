// SPDX-License-Identifier: Apache-2.0
//
// Steps in execution order, reformats directly before their first reader, views as aliases without a launch.
#include "builder/lower.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash.h"
#include "builder/compile_ahead.h"
#include "builder/details.h"
#include "builder/prepare/by_entry.h"
#include "builder/prepare/debug_tensors.h"
#include "builder/problem.h"
#include "plan/memory.h"

namespace hone {
namespace {

class Lowering {
 public:
  Lowering(const BuildSession& session, const ProfilePoints& points, const Choice& choice, PlanAssets& assets)
      : session_(session),
        points_(points),
        choice_(choice),
        assets_(assets),
        turns_(session.graph, choice.layers),
        ahead_(choice) {}

  Profile run() {
    profile_.ranges = points_.ranges;
    for (const Value* input : session_.graph.inputs())
      buffers_[{input, edges().of_input(input), false}] =
          add_buffer(*input, edges().of_input(input), BufferKind::input);
    // Outputs come first so that what is computed into them may share their memory.
    const std::vector<Value*>& outputs = session_.graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) reserve_output(outputs[i], i >= session_.prepared.outputs);
    const std::vector<int> stages = session_.sizes.stages(choice_.layers);
    for (stage_ = 0; stage_ <= (stages.empty() ? 0 : *std::max_element(stages.begin(), stages.end())); ++stage_)
      for (size_t i = 0; i < stages.size(); ++i)
        if (stages[i] == stage_) lower_layer(choice_.layers[i]);
    // The sizes of a result that lies in another layout than its writer's are known a stage later.
    const auto waits = [&](const Value* output) {
      return session_.sizes.managed(*output) && edges().of_output(output) != Layout::linear;
    };
    if (std::ranges::none_of(outputs, waits)) --stage_;
    rounds_ = 1;
    for (const Value* output : outputs) {
      buffer(output, edges().of_output(output));  // reformats the result if it lies otherwise
    }
    mark_debug_io(profile_, session_.options.debug_tensors);
    if (session_.options.debug_unfused) mark_unfused(profile_);
    profile_.arena_bytes = arena_bytes();
    return std::move(profile_);
  }

 private:
  const EdgeLayouts& edges() const { return session_.edges; }
  Layout buffer_layout(BufferId id) const { return profile_.buffers[static_cast<size_t>(id)].type.layout; }

  BufferId add_buffer(const Value& value, Layout layout, BufferKind kind, BufferId alias = -1) {
    TensorType type = value.type;
    type.layout = layout;
    // A copy in another layout is written by a reformat, when the sizes are known.
    const bool decided = alias < 0 && layout == Layout::linear && session_.sizes.managed(value);
    const bool measured = decided && on_device(value);
    profile_.buffers.push_back(
        {.name = value.name, .type = std::move(type), .kind = kind, .alias = alias, .managed = decided && !measured});
    const auto id = static_cast<BufferId>(profile_.buffers.size() - 1);
    if (measured) add_sizes(value);
    return id;
  }

  /// Behind the buffer of a value whose writer decides its sizes on the device.
  void add_sizes(const Value& value) {
    const Shape most = value.producer->op->traits.most(*value.producer);
    profile_.buffers.back().most = most;
    profile_.buffers.back().sizes = static_cast<BufferId>(profile_.buffers.size());
    profile_.buffers.push_back(
        {.name = value.name + " (sizes)", .type = {DType::i64, Shape{Dim(static_cast<int64_t>(most.rank()))}}});
  }

  /// Whether something else than the reference writes a value whose sizes its writer decides.
  bool on_device(const Value& value) const {
    const auto writes = [&](const Layer& layer) {
      return session_.sizes.measurable(layer.region) && layer.region.outputs[0] == &value;
    };
    const auto layer = std::ranges::find_if(choice_.layers, writes);
    return layer != choice_.layers.end() &&
           layer->candidates[static_cast<size_t>(layer->chosen)].tactic.source != "reference";
  }

  /// The slot of an output or debug tensor; a computed value behind a chain of views is written there directly.
  void reserve_output(const Value* output, bool debug) {
    const Layout layout = edges().of_output(output);
    const BufferId slot = add_buffer(*output, layout, debug ? BufferKind::arena : BufferKind::output);
    profile_.buffers[static_cast<size_t>(slot)].debug = debug;
    reserved_[output] = slot;
    if (layout != Layout::linear || session_.sizes.managed(*output) || session_.sizes.sized_by_data(output->type.shape))
      return;
    const Value* value = output;
    while (const Layer* layer = view_of(value)) {
      const Value* source = layer->region.inputs[0];
      if (reserved_.contains(source) || source->producer == nullptr || session_.sizes.managed(*source) ||
          session_.graph.is_output(source))
        return;
      reserved_[source] = slot;
      value = source;
    }
  }

  const Layer* view_of(const Value* value) const {
    for (const Layer& layer : choice_.layers)
      if (layer.region.is_view && layer.region.outputs[0] == value) return &layer;
    return nullptr;
  }

  /// A fresh buffer for a value that is about to be written in this layout; where that goes by entry and other layers read it, an entry
  /// of one.
  BufferId write_buffer(const Value& value, Layout layout) {
    if (!by_entry()) return write_whole(value, layout);
    return turns_.seen_outside(value) ? add_entry_of(value, layout, write_whole(value, layout))
                                      : add_entry(value, layout);
  }

  bool by_entry() const { return rounds_ > 1; }

  /// A buffer for one entry, which nobody needs in the next round.
  BufferId add_entry(const Value& value, Layout layout, BufferId alias = -1) {
    TensorType type = entry_type(value.type);
    type.layout = layout;
    profile_.buffers.push_back({.name = value.name, .type = std::move(type), .alias = alias});
    return buffers_[{&value, layout, true}] = static_cast<BufferId>(profile_.buffers.size() - 1);
  }
  BufferId add_entry_of(const Value& value, Layout layout, BufferId batch) {
    const BufferId id = add_entry(value, layout, batch);
    profile_.buffers.back().entry = true;
    return id;
  }

  BufferId write_whole(const Value& value, Layout layout) {
    const auto reserved = reserved_.find(&value);
    const bool in_output =
        reserved != reserved_.end() && always_same_bytes(value.type.shape, layout, buffer_layout(reserved->second));
    // A kernel sees its own layout, also where the output is declared in another one of the same bytes.
    const bool own_slot = in_output && session_.graph.is_output(&value) && layout == buffer_layout(reserved->second);
    const BufferId id =
        own_slot ? reserved->second : add_buffer(value, layout, BufferKind::arena, in_output ? reserved->second : -1);
    buffers_[{&value, layout, false}] = id;
    return id;
  }

  /// The value's buffer in the layout asked for; inserts a reformat when it lies otherwise.
  BufferId buffer(const Value* value, Layout layout) {
    if (const auto at = buffers_.find({value, layout, by_entry()}); at != buffers_.end()) return at->second;
    const auto [have, source] = source_of(value, layout);
    if (have == layout) return source;
    if (!always_same_bytes(value->type.shape, have, layout) || needs_own_slot(value, layout, source))
      return add_reformat(value, have, layout);
    if (by_entry()) return add_entry(*value, layout, source);
    return buffers_[{value, layout, false}] = add_buffer(*value, layout, BufferKind::arena, source);
  }

  /// What a layer finds of a value, and its layout; of a batch it finds an entry, in the layout wanted if there is such.
  std::pair<Layout, BufferId> source_of(const Value* value, Layout wanted) {
    const auto find = [&](bool entry, std::optional<Layout> layout) {
      return std::ranges::find_if(buffers_, [&](const auto& known) {
        const auto& [of, lies, one] = known.first;
        return of == value && one == entry && (!layout || lies == *layout);
      });
    };
    auto source = by_entry() ? find(false, wanted) : buffers_.end();
    if (source == buffers_.end()) {
      if (source = find(by_entry(), {}); source != buffers_.end())
        return {std::get<Layout>(source->first), source->second};
      source = find(false, {});
    }
    HONE_ASSERT(source != buffers_.end(), "{} is read before it is written", value->label());
    const Layout layout = std::get<Layout>(source->first);
    return {layout, add_entry_of(*value, layout, source->second)};
  }

  bool needs_own_slot(const Value* value, Layout layout, BufferId source) const {
    return !by_entry() && session_.graph.is_output(value) && layout == edges().of_output(value) &&
           root(source) != reserved_.at(value);
  }

  BufferId root(BufferId id) const {
    while (profile_.buffers[static_cast<size_t>(id)].alias >= 0) id = profile_.buffers[static_cast<size_t>(id)].alias;
    return id;
  }

  BufferId add_reformat(const Value* value, Layout from, Layout to) {
    const auto at = choice_.reformats.find({value, from, to, by_entry()});
    HONE_ASSERT(at != choice_.reformats.end(), "no reformat of {} from {} to {}", value->label(), name_of(from),
                name_of(to));
    const BufferId in = buffers_.at({value, from, by_entry()});
    const BufferId out = by_entry() ? add_entry(*value, to) : write_whole(*value, to);
    Step step{.name = fmt::format("Reformatting CopyNode for {} {}",
                                  session_.graph.is_output(value) ? "Output Tensor" : "Input Tensor", value->label()),
              .origin = {},
              .kind = "Reformat"};
    step.details = {{"Origin", std::string("REFORMAT")}};
    finish_step(step, *at->second.problem, at->second.candidate, {in}, {out});
    session_.listeners.tell(&BuildListener::reformat_added, step, from, to);
    return out;
  }

  void finish_step(Step& step, const Problem& problem, const Candidate& candidate, std::vector<BufferId> inputs,
                   std::vector<BufferId> outputs) {
    const Compiled compiled = ahead_.compiled(problem, candidate);
    step.source = candidate.tactic.source;
    step.tactic = candidate.tactic.name;
    step.tactic_params = candidate.tactic.params;
    step.inputs = std::move(inputs);
    step.outputs = std::move(outputs);
    for (const Tensor& constant : compiled.constants) step.constants.push_back(assets_.constant(constant));
    step.code = assets_.blob(compiled.code);
    step.tuned_ms = candidate.timing.ms * static_cast<double>(rounds_);
    note_traffic(step);
    step.stage = stage_;
    step.by_entry = by_entry();
    if (by_entry()) step.details.set("Batch", std::string("entry by entry"));
    profile_.steps.push_back(step);
  }

  /// What a step reads and writes at the least, or what travels to the host that runs it and back, as far as the input shapes
  /// decide it.
  void note_traffic(Step& step) const {
    const auto bytes = [&](const std::vector<BufferId>& ids) {
      int64_t total = 0;
      for (const BufferId id : ids) {
        const BufferSlot& slot = profile_.buffers[static_cast<size_t>(id)];
        if (!slot.managed && !session_.sizes.sized_by_data(slot.type.shape))
          total += byte_size(slot.type.dtype, slot.type.shape.evaluate(points_.opt), slot.type.layout);
      }
      return total;
    };
    if (step.source == "reference" && !session_.device.host_accessible()) {
      step.details.set("BytesToHost", bytes(step.inputs));
      step.details.set("BytesFromHost", bytes(step.outputs));
      return;
    }
    int64_t total = (bytes(step.inputs) + bytes(step.outputs)) * rounds_;
    for (const int32_t id : step.constants) total += static_cast<int64_t>(assets_.bytes_of(id));
    step.details.set("Bytes", total);
  }

  bool touches_data_sizes(const Region& region) const {
    const auto sized = [&](const Value* value) {
      return session_.sizes.managed(*value) || session_.sizes.sized_by_data(value->type.shape);
    };
    for (const Node* node : region.nodes)
      for (const auto* list : {&node->inputs, &node->outputs})
        if (std::any_of(list->begin(), list->end(),
                        [&](const Value* value) { return value != nullptr && sized(value); }))
          return true;
    return false;
  }

  void lower_layer(const Layer& layer) {
    const Region& region = layer.region;
    rounds_ = region.rounds;
    Step step{.name = region.name(), .origin = region.origin(), .kind = layer_kind(region)};
    step.details = layer_details(region);
    if (region.is_view) return lower_view(layer, std::move(step));
    const Candidate& candidate = layer.candidates[static_cast<size_t>(layer.chosen)];
    std::vector<BufferId> inputs, outputs;
    for (size_t i = 0; i < region.inputs.size(); ++i)
      inputs.push_back(buffer(region.inputs[i], candidate.tactic.in[i]));
    for (size_t i = 0; i < region.outputs.size(); ++i)
      outputs.push_back(write_buffer(*region.outputs[i], candidate.tactic.out[i]));
    if (const BufferId sizes = profile_.buffers[static_cast<size_t>(outputs[0])].sizes; sizes >= 0)
      outputs.push_back(sizes);
    if (!touches_data_sizes(region))
      if (const int64_t flops = flops_of(region, points_.opt); flops != 0) step.details.set("Flops", flops);
    with_note([&] { return fmt::format("compiling {} with {}", step.name, candidate.tactic.text()); },
              [&] { finish_step(step, *layer.problem, candidate, std::move(inputs), std::move(outputs)); });
  }

  void lower_view(const Layer& layer, Step step) {
    const Value* value = layer.region.outputs[0];
    const BufferId in = buffer(layer.region.inputs[0], Layout::linear);
    const auto reserved = reserved_.find(value);
    const bool own_slot =
        reserved != reserved_.end() && session_.graph.is_output(value) && edges().of_output(value) == Layout::linear;
    if (own_slot && root(in) != reserved->second) return copy_view(layer, std::move(step), in, reserved->second);
    const BufferId out = own_slot ? reserved->second : add_buffer(*value, Layout::linear, BufferKind::arena, in);
    buffers_[{value, Layout::linear, false}] = out;
    step.source = "view";
    step.tactic = "alias";
    step.inputs = {in};
    step.outputs = {out};
    step.stage = stage_;
    profile_.steps.push_back(std::move(step));
  }

  /// A network output that is another input's or output's data under a new shape has to be copied.
  void copy_view(const Layer& layer, Step step, BufferId in, BufferId out) {
    const Precision allowed;
    Problem problem = make_problem(layer.region, points_.opt, session_.device.info(), allowed);
    problem.targets = session_.options.targets;
    for (const TacticSource* source : session_.backend.sources) {
      Candidates offers;
      source->propose(problem, offers);
      for (const Tactic& tactic : offers.offers())
        if (tactic.in == std::vector{Layout::linear} && tactic.out == std::vector{Layout::linear}) {
          finish_step(step, problem, {.tactic = tactic, .source = source, .key = {}, .timing = {}, .timed_now = false},
                      {in}, {out});
          buffers_[{layer.region.outputs[0], Layout::linear, false}] = out;
          return;
        }
    }
    throw InternalError("no source copies " + step.name);
  }

  /// At the max point, as far as the input shapes determine it.
  int64_t arena_bytes() const {
    Lifetimes live = lifetimes(profile_);
    for (size_t id = 0; id < profile_.buffers.size(); ++id)
      if (const int32_t request = live.request_of_buffer[id]; request >= 0) {
        const TensorType& type = profile_.buffers[id].type;
        const Shape& shape = profile_.buffers[id].most.value_or(type.shape);
        if (session_.sizes.sized_by_data(shape)) continue;
        int64_t& bytes = live.requests[static_cast<size_t>(request)].bytes;
        bytes = std::max(bytes, byte_size(type.dtype, shape.evaluate(points_.max), type.layout));
      }
    return plan_memory(live.requests).bytes;
  }

  const BuildSession& session_;
  const ProfilePoints& points_;
  const Choice& choice_;
  PlanAssets& assets_;
  const Turns turns_;
  CompileAhead ahead_;
  Profile profile_;
  int stage_ = 0;
  int64_t rounds_ = 1;  // of the layer that is lowered
  std::map<std::tuple<const Value*, Layout, bool>, BufferId>
      buffers_;                                          // of a value in a layout, or of one of its entries
  std::unordered_map<const Value*, BufferId> reserved_;  // values that live in an output's memory
};

}  // namespace

namespace {

/// From here on the constants of a model are too many to be held twice.
constexpr int64_t kLargeModelBytes = int64_t{1} << 30;
/// Below this a place in a file is not worth its page.
constexpr size_t kSpilledBytes = 1 << 20;

int64_t constant_bytes(const Graph& graph) {
  std::set<const Value*> counted;
  int64_t bytes = 0;
  for (const Node* node : graph.nodes())
    for (const Value* input : node->inputs)
      if (input != nullptr && input->is_constant() && counted.insert(input).second)
        bytes += static_cast<int64_t>(input->constant->bytes().size());
  return bytes;
}

MemoryUse memory_use(const BuildSession& session, const Profile& profile) {
  const auto blocks = std::ranges::count_if(
      profile.buffers, [](const BufferSlot& slot) { return slot.kind == BufferKind::arena && slot.alias < 0; });
  return {.inputs = session.graph.inputs().size(),
          .outputs = session.prepared.outputs,
          .blocks = static_cast<size_t>(blocks),
          .bytes = profile.arena_bytes};
}

HostShare host_share(const Profile& profile) {
  HostShare share{.of = profile.steps.size()};
  for (const Step& step : profile.steps) {
    if (!step.details.has("BytesToHost")) continue;
    ++share.layers;
    share.bytes_to_host += step.details.integer("BytesToHost");
    share.bytes_from_host += step.details.integer("BytesFromHost");
  }
  return share;
}

}  // namespace

PlanAssets::PlanAssets(Plan& plan, const Graph& model)
    : plan_(plan), large_(constant_bytes(model) > kLargeModelBytes) {}

int32_t PlanAssets::constant(const Tensor& tensor) {
  const auto [at, fresh] = constants_.try_emplace(tensor.type().text() + hash_hex(tensor.bytes()),
                                                  static_cast<int32_t>(plan_.constants.size()));
  if (fresh && large_ && tensor.bytes().size() >= kSpilledBytes)
    plan_.constants.emplace_back(tensor.dtype(), tensor.dims(), spill_.keep(tensor.blob()));
  else if (fresh) plan_.constants.push_back(tensor);
  return at->second;
}

int32_t PlanAssets::blob(const Blob& blob) {
  const auto [at, fresh] = blobs_.try_emplace(hash_hex(blob.bytes()), static_cast<int32_t>(plan_.blobs.size()));
  if (fresh) plan_.blobs.push_back(blob);
  return at->second;
}

Profile lower(const BuildSession& session, const ProfilePoints& points, const Choice& choice, PlanAssets& assets) {
  const double start = now_ms();
  Profile profile = Lowering(session, points, choice, assets).run();
  const Listeners& listeners = session.listeners;
  listeners.tell(&BuildListener::lowered, profile, seconds_since(start));
  listeners.tell(&BuildListener::memory_planned, memory_use(session, profile));
  if (const HostShare share = host_share(profile); share.layers > 0) listeners.tell(&BuildListener::host_shared, share);
  return profile;
}

}  // namespace hone
