// SPDX-License-Identifier: Apache-2.0
//
// The way from a file to a loaded engine, as trtexec goes it: device, model, shapes, timing cache, build, save, load.
// Everything that trtexec needs of the engine passes here and through Query, so that it can move to the C API in one place.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/device.h"
#include "base/log.h"
#include "options/tool_options.h"
#include "runtime/engine.h"

namespace hone {

/// Two voices: the tool's own lines, and the engine's, which carry its tag.
struct Voices {
  explicit Voices(const Logger& tool_log) : tool(tool_log), engine([this](Severity severity, std::string_view text) { tool.write(severity, fmt::format("[HONE] {}", text)); }) {
    engine.set_threshold(tool.threshold());
  }
  Voices(const Voices&) = delete;
  Voices& operator=(const Voices&) = delete;

  const Logger& tool;
  Logger engine;
};

struct OpenDevice {
  const Backend* backend = nullptr;
  std::shared_ptr<Device> device;
};

/// "0", "cpu", "cuda:1". Throws Error when there is none.
OpenDevice open_device(const std::string& name);

using InputShapes = std::map<std::string, Dims>;

class Session {
 public:
  Session(const Options& options, OpenDevice device, const Voices& voices) : options_(options), device_(std::move(device)), voices_(voices) {}

  /// Import, build and, when asked for, save; leaves what load() takes.
  void build();
  /// Reads the plan file, or what build() made, as it will be used.
  void load();

  const std::shared_ptr<const Engine>& engine() const { return engine_; }
  Device& device() const { return *device_.device; }
  const Plan& plan() const { return engine_->plan(); }
  /// Shapes to run with: as asked for, else the profile's opt after a build, else 1 for every dynamic size.
  InputShapes run_shapes() const;
  /// The profile to run with.
  int profile() const;
  /// Time to turn the plan's bytes into an engine once more, in ms; for --timeDeserialize.
  double time_load() const;
  size_t plan_bytes() const { return bytes_.size(); }

 private:
  void load_plan_bytes();
  std::shared_ptr<const Engine> make_engine() const;

  const Options& options_;
  OpenDevice device_;
  const Voices& voices_;
  Blob bytes_;                                 // of the plan
  std::shared_ptr<const Engine> engine_;
};

}  // namespace hone
