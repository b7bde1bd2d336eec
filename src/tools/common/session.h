// SPDX-License-Identifier: Apache-2.0
//
// The way from a file to a loaded engine, as trtexec goes it: device, model, shapes, timing cache, build, save, load.
// Goes through the C interface, as any program can.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "options/tool_options.h"
#include "tools/common/build_phases.h"
#include "tools/common/plan_view.h"
#include "tools/common/progress.h"

namespace hone {

/// Two voices: the tool's own lines, and the engine's, which carry a tag where logs are read by programs.
struct Voices {
  explicit Voices(const Logger& tool_log, std::string_view tag)
      : tool(tool_log), engine([this, tag](Severity severity, std::string_view text) {
          if (progress != nullptr) progress->clear();
          tool.write(severity, fmt::format("{}{}", tag, text));
        }) {
    engine.set_threshold(tool.threshold());
  }
  Voices(const Voices&) = delete;
  Voices& operator=(const Voices&) = delete;

  const Logger& tool;
  Logger engine;
  mutable Progress* progress = nullptr;  // to be cleared before a line of the engine
};

/// The device of --device. Where several inference streams (--infStreams) compute on its cores, each gets its share of them,
/// unless HONE_THREADS says how many: the workers of the device are those of one stream.
Owned<hone_device> device_for_streams(const Options& options);
/// A device by its name; 0 workers: what the name or the environment says.
Owned<hone_device> make_device(const std::string& name, int workers = 0);

class Session {
 public:
  Session(const Options& options, Owned<hone_device> device, const Voices& voices)
      : options_(options), device_(std::move(device)), voices_(voices) {}

  /// Import, build and, when asked for, save; leaves what load() takes.
  void build();
  /// Reads the plan file, which load() takes too, unless it was given one that was read.
  void read();
  void take(PlanFile file) { file_ = std::move(file); }
  /// Takes what another one built or read, for a device of its own.
  void take(const Session& other);
  /// With --refit: --dumpRefit, --refitFromOnnx and --timeRefit, as asked for, on what build() or read() left.
  void refit();
  /// Makes an engine of what build() or read() left, as it will be used; reads the plan file when neither was called.
  void load();

  // From load() on.
  const hone_engine* engine() const { return engine_.get(); }
  hone_device* device() const { return device_.get(); }
  const hone_plan* plan() const { return running_plan_.get(); }  ///< as the engine runs it
  const std::vector<NetworkTensor>& tensors() const { return tensors_; }
  const std::vector<PlanProfile>& profiles() const { return profiles_; }
  /// Shapes to run with: as asked for, else the profile's opt after a build, else 1 for every dynamic size.
  InputShapes run_shapes() const;
  /// The profile to run with.
  int profile() const;
  /// Time to turn the plan's bytes into an engine once more, in ms; for --timeDeserialize.
  double time_load() const;
  size_t plan_bytes() const { return plan_bytes_; }
  /// Whether Ctrl-C cut the build short.
  bool interrupted() const { return interrupted_; }
  /// What build() spent its time on.
  const std::vector<TimedPhase>& build_phases() const { return build_phases_; }

 private:
  void save_plan();
  void list_weights() const;
  void refit_from_model();
  void time_refit() const;
  void monitor_memory(std::string_view phase) const;

  const Options& options_;
  Owned<hone_device> device_;
  const Voices& voices_;
  Owned<hone_model> model_;  // what was built, while it may be needed again
  PlanFile file_;            // until read()
  Owned<hone_plan> plan_;
  size_t plan_bytes_ = 0;  // of the file, or of what it would be
  Owned<hone_engine> engine_;
  Owned<hone_plan> running_plan_;
  std::vector<NetworkTensor> tensors_;
  std::vector<PlanProfile> profiles_;
  bool interrupted_ = false;
  std::vector<TimedPhase> build_phases_;
};

}  // namespace hone
