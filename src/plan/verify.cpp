// SPDX-License-Identifier: Apache-2.0
//
// What must hold before a plan may run: every index points somewhere, aliases lead to roots, ranges are ordered, and no
// step reads a buffer that nothing wrote.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/checked.h"
#include "base/limits.h"
#include "plan/turns.h"

namespace hone {
namespace {

void verify_buffers(const Profile& profile) {
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const BufferSlot& slot = profile.buffers[i];
    HONE_CHECK(slot.alias >= -1 && slot.alias < static_cast<BufferId>(i),
               "buffer {} shares the memory of {}, which does not come before it", i, slot.alias);
    const bool blocked = channel_block(slot.type.layout) > 1;
    HONE_CHECK(slot.type.shape.rank() <= kMaxRank && (!blocked || slot.type.shape.rank() >= 3),
               "buffer {} has rank {} in the layout {}", i, slot.type.shape.rank(), name_of(slot.type.layout));
    if (slot.type.shape.is_static()) require_sizes(slot.type.shape.values());
    const bool needs_host = is_object(slot.type.dtype) || !slot.type.ranked;
    HONE_CHECK(slot.managed || !needs_host, "buffer {} of {} is not managed", i, slot.type.text());
    HONE_CHECK(!slot.managed || (slot.alias < 0 && slot.type.layout == Layout::linear),
               "buffer {} is managed, but shares memory or is not linear", i);
    HONE_CHECK(!slot.managed || slot.kind != BufferKind::input || is_object(slot.type.dtype),
               "the network input in buffer {} is managed", i);
  }
}

/// A measured buffer and that of its sizes are results of one step, and nothing else writes either.
void verify_measured(const Profile& profile) {
  std::vector<int> roles(profile.buffers.size(), 0);
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const BufferSlot& slot = profile.buffers[i];
    if (!slot.most) continue;
    const bool plain = !slot.managed && slot.alias < 0 && slot.kind != BufferKind::input && slot.type.ranked &&
                       slot.type.layout == Layout::linear && slot.most->rank() == slot.type.shape.rank();
    HONE_CHECK(plain && slot.sizes >= 0 && slot.sizes < static_cast<BufferId>(profile.buffers.size()),
               "the measured buffer {} of {} is not a plain one", i, slot.type.text());
    const BufferSlot& sizes = profile.buffers[static_cast<size_t>(slot.sizes)];
    const Shape shape{Dim(static_cast<int64_t>(slot.most->rank()))};
    HONE_CHECK(sizes.kind == BufferKind::arena && sizes.alias < 0 && !sizes.managed && !sizes.most &&
                   sizes.type.dtype == DType::i64 && sizes.type.layout == Layout::linear && sizes.type.shape == shape,
               "buffer {} of {} cannot hold the sizes of buffer {}", slot.sizes, sizes.type.text(), i);
    ++roles[i], ++roles[static_cast<size_t>(slot.sizes)];
    int writers = 0;
    for (const Step& step : profile.steps) {
      const auto writes = [&](BufferId id) { return std::ranges::count(step.outputs, id); };
      HONE_CHECK(writes(static_cast<BufferId>(i)) == writes(slot.sizes),
                 "step {} writes one of the buffers {} and {}, of which one holds the other's sizes", step.name, i,
                 slot.sizes);
      writers += static_cast<int>(writes(slot.sizes));
    }
    HONE_CHECK(writers == 1, "the measured buffer {} is written {} times", i, writers);
  }
  HONE_CHECK(std::ranges::all_of(roles, [](int count) { return count <= 1; }), "two buffers share their sizes");
}

void verify_steps(const Plan& plan, const Profile& profile) {
  std::set<BufferId> written;
  const auto count = static_cast<BufferId>(profile.buffers.size());
  const auto root = [&](BufferId id) {
    while (profile.buffers[static_cast<size_t>(id)].alias >= 0) id = profile.buffers[static_cast<size_t>(id)].alias;
    return id;
  };
  int32_t stage = 0;
  for (const Step& step : profile.steps) {
    HONE_CHECK(step.stage == stage || step.stage == stage + 1, "step {} of stage {} follows one of stage {}", step.name,
               step.stage, stage);
    stage = step.stage;
    for (const BufferId id : step.inputs) {
      HONE_CHECK(id >= 0 && id < count, "step {} reads buffer {} of {}", step.name, id, count);
      const bool ready =
          profile.buffers[static_cast<size_t>(root(id))].kind == BufferKind::input || written.contains(root(id));
      HONE_CHECK(ready, "step {} reads buffer {} before it is written", step.name, id);
    }
    for (const BufferId id : step.outputs) {
      HONE_CHECK(id >= 0 && id < count, "step {} writes buffer {} of {}", step.name, id, count);
      HONE_CHECK(profile.buffers[static_cast<size_t>(root(id))].kind != BufferKind::input || step.code < 0,
                 "step {} writes a network input", step.name);
      written.insert(root(id));
    }
    for (const int32_t id : step.constants)
      HONE_CHECK(id >= 0 && id < static_cast<int32_t>(plan.constants.size()), "step {} uses constant {} of {}",
                 step.name, id, plan.constants.size());
    HONE_CHECK(step.code >= -1 && step.code < static_cast<int32_t>(plan.blobs.size()), "step {} has code {} of {}",
               step.name, step.code, plan.blobs.size());
  }
  std::set<std::string_view> names;
  for (BufferId id = 0; id < count; ++id) {
    const BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
    if (!slot.debug) continue;
    HONE_CHECK(!slot.name.empty() && names.insert(slot.name).second,
               "the name of the debug tensor '{}' is missing or not its own", slot.name);
    HONE_CHECK(profile.buffers[static_cast<size_t>(root(id))].kind == BufferKind::input || written.contains(root(id)),
               "nothing writes the debug tensor {}", slot.name);
  }
}

void verify_entry(const Profile& profile, size_t id) {
  const BufferSlot& slot = profile.buffers[id];
  HONE_CHECK(slot.alias >= 0 && !slot.debug && !slot.most, "buffer {} is an entry of nothing", id);
  const BufferSlot& batch = profile.buffers[static_cast<size_t>(slot.alias)];
  TensorType one = batch.type;
  HONE_CHECK(one.ranked && one.shape.rank() > 0 && !batch.most && entry_of(profile, slot.alias) < 0,
             "buffer {} is an entry of no batch", id);
  one.shape[0] = Dim(1);
  HONE_CHECK(slot.type == one, "buffer {} of {} is no entry of {}", id, slot.type.text(), batch.type.text());
}

/// Only steps that go by entry may see entries; those that take turns see batches of one size, and at least one of them.
void verify_entries(const Profile& profile) {
  for (size_t id = 0; id < profile.buffers.size(); ++id)
    if (profile.buffers[id].entry) verify_entry(profile, id);
  for (size_t s = 0, end = 0; s < profile.steps.size(); s = end) {
    end = turns_end(profile.steps, s);
    std::set<std::string> counts;
    for (const BufferId id : entries_in(profile, s, end))
      counts.insert(profile.buffers[static_cast<size_t>(batch_of(profile, id))].type.shape[0].text());
    const Step& step = profile.steps[s];
    HONE_CHECK(counts.size() == (step.by_entry ? 1 : 0), "step {} works on entries of {} batches", step.name,
               counts.size());
  }
}

/// Users bind memory for what is declared: exactly that is what steps read and write there. Sizes are compared when symbols
/// have values.
void verify_interface(const Plan& plan, const Profile& profile) {
  size_t count = 0;
  for (const BufferSlot& slot : profile.buffers) count += slot.kind != BufferKind::arena && slot.alias < 0 ? 1 : 0;
  HONE_CHECK(count == plan.io.size(), "the plan has {} buffers for {} inputs and outputs", count, plan.io.size());
  for (const IoTensor& io : plan.io) {
    const auto kind = io.is_input ? BufferKind::input : BufferKind::output;
    const auto matches = [&](const BufferSlot& slot) {
      return slot.kind == kind && slot.name == io.name && slot.alias < 0;
    };
    const auto slot = std::find_if(profile.buffers.begin(), profile.buffers.end(), matches);
    HONE_CHECK(slot != profile.buffers.end() &&
                   std::find_if(slot + 1, profile.buffers.end(), matches) == profile.buffers.end(),
               "the plan has no single buffer for {}", io.name);
    const TensorType &type = io.type, &inside = slot->type;
    HONE_CHECK(type.dtype == inside.dtype && type.layout == inside.layout && type.ranked == inside.ranked &&
                   type.shape.rank() == inside.shape.rank(),
               "{} is declared as {} but is {} inside", io.name, type.text(), inside.text());
  }
}

void verify_ranges(const Plan& plan, const Profile& profile) {
  for (const ProfileRange& range : profile.ranges) {
    const auto io = std::find_if(plan.io.begin(), plan.io.end(),
                                 [&](const IoTensor& t) { return t.is_input && t.name == range.tensor; });
    HONE_CHECK(io != plan.io.end(), "a shape range names {}, which is no input", range.tensor);
    const size_t rank = io->type.shape.rank();
    HONE_CHECK(range.min.size() == rank && range.opt.size() == rank && range.max.size() == rank,
               "the shape range of {} has another rank", range.tensor);
    for (size_t i = 0; i < rank; ++i)
      HONE_CHECK(0 <= range.min[i] && range.min[i] <= range.opt[i] && range.opt[i] <= range.max[i],
                 "the shape range of {} is not ordered at axis {}", range.tensor, i);
  }
}

void verify_throughput(const PlanThroughput& found) {
  constexpr int32_t kMost = 1024;  // streams of a benchmark, workers of a device
  const auto is_figure = [](double value) { return std::isfinite(value) && value >= 0; };
  HONE_CHECK(
      found.streams >= 1 && found.streams <= kMost && found.workers >= 0 && found.workers <= kMost && found.rows >= 1,
      "the plan's throughput is of {} streams, {} workers and {} rows", found.streams, found.workers, found.rows);
  HONE_CHECK(is_figure(found.rows_per_second) && is_figure(found.median_ms) && is_figure(found.p99_ms),
             "the plan's throughput is no number of rows a second");
}

}  // namespace

void verify(const Plan& plan) {
  HONE_CHECK(!plan.profiles.empty(), "the plan has no profile");
  std::set<std::string_view> names;
  for (const IoTensor& io : plan.io)
    HONE_CHECK(names.insert(io.name).second, "two inputs or outputs of the plan are called '{}'", io.name);
  HONE_CHECK(plan.weights == WeightStorage::everywhere || plan.refit.has_value(),
             "the plan has neither weights nor what it takes to get them back");
  if (plan.throughput) verify_throughput(*plan.throughput);
  for (const Profile& profile : plan.profiles) {
    verify_buffers(profile);
    verify_steps(plan, profile);
    verify_measured(profile);
    verify_entries(profile);
    verify_ranges(plan, profile);
    HONE_CHECK(profile.arena_bytes >= 0, "the plan asks for {} bytes of activations", profile.arena_bytes);
    verify_interface(plan, profile);
  }
}

}  // namespace hone
