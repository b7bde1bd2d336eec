// SPDX-License-Identifier: Apache-2.0
//
// The lines that trtexec prints of a build: "After …: N layers", "Autotuning format combination …", memory totals.
#pragma once

#include "base/log.h"
#include "builder/events/listener.h"

namespace hone {

class LogLines : public BuildListener {
 public:
  /// `log` has to live as long.
  explicit LogLines(const Logger& log) : log_(log) {}

  void shape_assumed(const Value& input, const Dims& dims) override;
  void pass_said(Severity severity, std::string_view line) override;
  void stays_linear(const Value& edge, Layout asked) override;
  void tuning_begun(bool times_are_kept) override;
  void profile_begun(size_t index, size_t count) override;
  void layer_timed(const Layer& layer, const ProfilePoints& points, double seconds) override;
  void candidates_rejected(const Layer& layer) override;
  void tuning_cut_short(size_t by_rule, size_t total) override;
  void head_goes_by_entry(size_t layers, int64_t entries) override;
  void reformats_begun() override;
  void reformat_timed(const Value& value, const Candidate& fastest, const ProfilePoints& points) override;
  void tactics_chosen(const Choice& choice, double seconds) override;
  void reformat_added(const Step& step, Layout from, Layout to) override;
  void lowered(const Profile& profile, double seconds) override;
  void memory_planned(const MemoryUse& memory) override;
  void host_shared(const HostShare& share) override;
  void precision_begun(std::string_view types) override;
  void precision_timed(std::string_view types, double ms, double error) override;
  void precision_refused(std::string_view types, std::string_view reason) override;
  void precision_chosen(std::string_view types) override;
  void finished(const Plan& plan, const CacheUse& cache, double seconds) override;
  void timed_anew(size_t tactics) override;

 private:
  const Logger& log_;
};

}  // namespace hone
