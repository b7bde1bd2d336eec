// SPDX-License-Identifier: Apache-2.0
#include "describe/explain.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

std::string candidate_line(const CandidateRecord& candidate, size_t width, bool chosen) {
  std::string line = fmt::format("{} {:<{}}  ", chosen ? " *" : "  ", candidate.tactic, width);
  if (candidate.ms < 0) return line + (candidate.note.empty() ? "not timed" : candidate.note);
  if (candidate.note == kEstimated) return line + fmt::format("estimated {:.1f} us", 1e3 * candidate.ms);
  line += fmt::format("{:9.4f} ms ±{:.4f}", candidate.ms, candidate.ms * candidate.spread);
  return candidate.note.empty() ? line : line + "  " + candidate.note;
}

void explain_layer(const LayerRecord& record, std::vector<std::string>& lines) {
  size_t width = 0;
  std::vector<const CandidateRecord*> order;
  for (const CandidateRecord& candidate : record.candidates) {
    width = std::max(width, candidate.tactic.size());
    order.push_back(&candidate);
  }
  std::ranges::stable_sort(order, [](const CandidateRecord* a, const CandidateRecord* b) {
    const bool timed_a = a->ms >= 0, timed_b = b->ms >= 0;
    return timed_a != timed_b ? timed_a : timed_a && a->ms < b->ms;
  });
  std::string headline =
      fmt::format("{}    chosen: {}", record.layer, record.chosen.empty() ? "nothing to launch" : record.chosen);
  for (const CandidateRecord* candidate : order)
    if (candidate->tactic == record.chosen && candidate->ms >= 0 && candidate->note != kEstimated)
      headline += fmt::format("    {:.4f} ms", candidate->ms);
  lines.push_back(headline);
  for (const CandidateRecord* candidate : order)
    lines.push_back(candidate_line(*candidate, width, candidate->tactic == record.chosen));
}

}  // namespace

std::vector<std::string> explain_lines(const Plan& plan, std::string_view layer) {
  std::vector<std::string> lines, names;
  for (const LayerRecord& record : plan.log) {
    names.push_back(record.layer);
    if (layer.empty() || record.layer.find(layer) != std::string::npos) explain_layer(record, lines);
  }
  if (lines.empty() && !layer.empty())
    throw Error(fmt::format("--explain: no layer's name contains {}", layer),
                names.empty() ? "the plan holds no build log" : "layers are " + join(names, ", "));
  return lines;
}

}  // namespace hone
