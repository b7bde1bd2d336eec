// SPDX-License-Identifier: Apache-2.0
//
// Whoever reads trtexec's log by program finds the same lines here, so their texts are those of the original.
#include "builder/events/log_lines.h"

#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "builder/tune.h"
#include "tensor/layout.h"

namespace hone {
namespace {

std::string type_text(const TensorType& type) {
  return type.dtype == DType::f32 ? "Float" : std::string(name_of(type.dtype));
}

std::string strides_text(const Value& value, Layout layout, const SymbolValues& opt) {
  if (!value.type.ranked || value.type.element != nullptr) return value.type.text();
  if (is_blocked(layout)) return fmt::format("{}({})", type_text(value.type), name_of(layout));
  const Dims dims = value.type.shape.evaluate(opt);
  return fmt::format("{}({})", type_text(value.type), join_dims(layout_strides(dims, layout), ","));
}

std::string formats_text(const Layer& layer, const Tactic& tactic, const SymbolValues& opt) {
  std::vector<std::string> in, out;
  for (size_t i = 0; i < layer.region.inputs.size(); ++i)
    in.push_back(strides_text(*layer.region.inputs[i], tactic.in[i], opt));
  for (size_t i = 0; i < layer.region.outputs.size(); ++i)
    out.push_back(strides_text(*layer.region.outputs[i], tactic.out[i], opt));
  return join(in, ", ") + " -> " + join(out, ", ");
}

uint64_t tactic_number(const Tactic& tactic) { return hash64(tactic.text()); }

std::string family_of(const Tactic& tactic) { return tactic.source + "." + tactic.name; }

uint32_t family_number(const std::string& family) { return static_cast<uint32_t>(hash64(family)); }

/// The candidates of one combination of layouts, and the fastest of them.
void log_combination(const std::string& layer, std::span<const Candidate* const> candidates, double seconds,
                     const Logger& log) {
  const Candidate* fastest = nullptr;
  std::string runner;
  for (const Candidate* candidate : candidates) {
    const std::string family = family_of(candidate->tactic);
    if (family != runner)
      log.verbose("--------------- Timing Runner: {} ({}[0x{:08x}])", layer, family, family_number(family));
    runner = family;
    if (candidate->timing.ms < 0) {
      log.verbose("Tactic Name: {} Tactic: 0x{:016x} {}", candidate->tactic.text(), tactic_number(candidate->tactic),
                  candidate->timing.note);
      continue;
    }
    log.verbose("Tactic Name: {} Tactic: 0x{:016x} Time: {:g}", candidate->tactic.text(),
                tactic_number(candidate->tactic), candidate->timing.ms);
    if (fastest == nullptr || candidate->timing.ms < fastest->timing.ms) fastest = candidate;
  }
  if (fastest == nullptr) return;
  const std::string family = family_of(fastest->tactic);
  log.verbose("{} ({}[0x{:08x}]) profiling completed in {:g} seconds. Fastest Tactic: 0x{:016x} Time: {:g}", layer,
              family, family_number(family), seconds, tactic_number(fastest->tactic), fastest->timing.ms);
  log.verbose(">>>>>>>>>>>>>>> Chose Runner Type: {} Tactic: 0x{:016x}", family, tactic_number(fastest->tactic));
}

std::string tensors_text(const Profile& profile, const std::vector<BufferId>& ids) {
  std::vector<std::string> texts;
  for (const BufferId id : ids) {
    const BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
    std::vector<std::string> dims;
    for (const Dim& dim : slot.type.shape) dims.push_back(dim.is_constant() ? dim.text() : "-1");
    texts.push_back(fmt::format("{} ({}[{}])", slot.name, type_text(slot.type), join(dims, ",")));
  }
  return join(texts, ", ");
}

void log_layers(const Profile& profile, const Logger& log) {
  log.verbose("Engine Layer Information:");
  for (const Step& step : profile.steps)
    log.verbose("Layer({}.{}): {}, {} -> {}", step.source, step.tactic, step.name, tensors_text(profile, step.inputs),
                tensors_text(profile, step.outputs));
}

}  // namespace

void LogLines::shape_assumed(const Value& input, const Dims& dims) {
  log_.warning(
      "Dynamic dimensions required for input: {}, but no shapes were provided. Automatically overriding shape to: "
      "{}",
      input.name, join_dims(dims));
}

void LogLines::pass_said(Severity severity, std::string_view line) {
  if (log_.enabled(severity)) log_.write(severity, line);
}

void LogLines::stays_linear(const Value& edge, Layout asked) {
  log_.warning("{} has rank {}: it stays linear, {} is for images", edge.label(), edge.type.shape.rank(),
               name_of(asked));
}

void LogLines::tuning_begun(bool times_are_kept) {
  log_.info("{}", times_are_kept
                      ? "Global timing cache in use. Profiling results in this builder pass will be stored."
                      : "Local timing cache in use. Profiling results in this builder pass will not be stored.");
}

void LogLines::profile_begun(size_t index, size_t count) {
  log_.verbose("Constructing optimization profile number {} [{}/{}].", index, index + 1, count);
}

void LogLines::layer_timed(const Layer& layer, const ProfilePoints& points, double seconds) {
  if (!log_.enabled(Severity::verbose)) return;
  const std::string name = layer.region.name();
  log_.verbose("=============== Computing costs for {}", name);
  std::map<std::string, std::vector<const Candidate*>> by_format;
  for (const Candidate& candidate : layer.candidates)
    by_format[formats_text(layer, candidate.tactic, points.opt)].push_back(&candidate);
  for (const auto& [formats, candidates] : by_format) {
    log_.verbose("*************** Autotuning format combination: {} ***************", formats);
    log_combination(name, candidates, seconds, log_);
  }
  for (const Candidates::Refusal& refusal : layer.refusals)
    log_.verbose("Skipping {}: {}", refusal.tactic, refusal.reason);
}

void LogLines::candidates_rejected(const Layer& layer) {
  for (const Candidate& candidate : layer.candidates)
    log_.warning("{}: {} {}", layer.region.name(), candidate.tactic.text(), candidate.timing.note);
}

void LogLines::tuning_cut_short(size_t by_rule, size_t total) {
  log_.warning("Tuning ended early: the tactics of {} of {} layers are chosen by rule, not by time.", by_rule, total);
}

void LogLines::head_goes_by_entry(size_t layers, int64_t entries) {
  log_.info("{} layers at the head of the network go entry by entry: a batch of {} does not fit into the last cache.",
            layers, entries);
}

void LogLines::reformats_begun() { log_.verbose("=============== Computing reformatting costs"); }

void LogLines::reformat_timed(const Value& value, const Candidate& fastest, const ProfilePoints& points) {
  const Tactic& tactic = fastest.tactic;
  log_.verbose("*************** Autotuning Reformat: {} -> {} ***************",
               strides_text(value, tactic.in[0], points.opt), strides_text(value, tactic.out[0], points.opt));
  log_.verbose("Tactic: 0x{:016x} Time: {:g}", tactic_number(tactic), fastest.timing.ms);
}

void LogLines::tactics_chosen(const Choice&, double seconds) {
  log_.info("Formats and tactics selection completed in {:g} seconds.", seconds);
}

void LogLines::reformat_added(const Step& step, Layout from, Layout to) {
  log_.verbose("Adding reformat layer: {} from {} to {}", step.name, name_of(from), name_of(to));
}

void LogLines::lowered(const Profile& profile, double seconds) {
  log_.verbose("Kernels compiled and weights laid out in {:g} seconds.", seconds);
  log_.verbose("After reformat layers: {} layers", profile.steps.size());
}

void LogLines::memory_planned(const MemoryUse& memory) {
  log_.verbose("Total number of blocks in pre-optimized block assignment: {}", memory.blocks);
  log_.info("Detected {} inputs and {} output network tensors.", memory.inputs, memory.outputs);
  log_.info("Total Activation Memory: {}", memory.bytes);
}

void LogLines::host_shared(const HostShare& share) {
  log_.info("{} of {} layers run on the host; an inference copies {} bytes there and {} bytes back.", share.layers,
            share.of, share.bytes_to_host, share.bytes_from_host);
}

void LogLines::precision_begun(std::string_view types) { log_.info("Best: building with {}.", types); }

void LogLines::precision_timed(std::string_view types, double ms, double error) {
  log_.info("Best: {} takes {:.4g} ms, relative error {:.2g}.", types, ms, error);
}

void LogLines::precision_refused(std::string_view types, std::string_view reason) {
  log_.warning("Best: {} is left out: {}", types, reason);
}

void LogLines::precision_chosen(std::string_view types) { log_.info("Best: {} is taken.", types); }

void LogLines::finished(const Plan& plan, const CacheUse& cache, double seconds) {
  log_.info("Engine generation completed in {:g} seconds.", seconds);
  log_.verbose("Timing cache: {} entries, {} of them new, served {} hits since creation.", cache.entries, cache.added,
               cache.hits);
  log_layers(plan.profiles.back(), log_);
}

void LogLines::timed_anew(size_t tactics) {
  log_.warning("{} tactics were timed anew: the plan has no times of them for this machine or for these weights.",
               tactics);
}

}  // namespace hone
