// SPDX-License-Identifier: Apache-2.0
//
// What happens while a plan is made. The builder tells and prints nothing: log lines, the progress bar and the records that a
// plan keeps are listeners.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "tensor/tensor.h"

namespace hone {

struct Candidate;
struct Choice;
struct Layer;
struct Plan;
struct Profile;
struct ProfilePoints;
struct Step;
struct Value;

/// What an engine needs between its layers, at the profile's largest shapes.
struct MemoryUse {
  size_t inputs = 0, outputs = 0;  // tensors of the network
  size_t blocks = 0;               // buffers that share the memory
  int64_t bytes = 0;
};

/// Steps that the host runs because no source of the device takes them, and what an inference copies for them.
struct HostShare {
  size_t layers = 0, of = 0;
  int64_t bytes_to_host = 0, bytes_from_host = 0;
};

/// What a build took from its timing cache and added to it.
struct CacheUse {
  size_t entries = 0, added = 0;  // `added` are among the entries
  size_t hits = 0;                // since the cache was made
};

/// Every event comes on the thread that builds, in the order below; those from profile_begun() to host_shared() once for each
/// profile. What is handed over is the builder's own, and lives until the event returns.
class BuildListener {
 public:
  BuildListener() = default;
  virtual ~BuildListener() = default;
  BuildListener(const BuildListener&) = delete;
  BuildListener& operator=(const BuildListener&) = delete;

  /// Nothing was said about an input of dynamic sizes: it gets these.
  virtual void shape_assumed(const Value& /*input*/, const Dims& /*dims*/) {}
  /// A line of a pass about the graph.
  virtual void pass_said(Severity /*severity*/, std::string_view /*line*/) {}
  /// An input or output is no image, so it does not lie as asked for.
  virtual void stays_linear(const Value& /*edge*/, Layout /*asked*/) {}
  /// So many layers at the head of the network go entry by entry: a batch of this size does not fit into the device's last cache.
  virtual void head_goes_by_entry(size_t /*layers*/, int64_t /*entries*/) {}
  /// The graph is final. Whether times go to a file behind the build.
  virtual void tuning_begun(bool /*times_are_kept*/) {}

  /// `index` counts from 0.
  virtual void profile_begun(size_t /*index*/, size_t /*count*/) {}
  /// The layer's candidates have their times, or notes that say why they have none; its refusals are complete. Seconds that all
  /// of it took. The layer with most to gain comes first.
  virtual void layer_timed(const Layer& /*layer*/, const ProfilePoints& /*points*/, double /*seconds*/) {}
  /// Every candidate was wrong or failed: the reference will run the layer.
  virtual void candidates_rejected(const Layer& /*layer*/) {}
  /// Layers that are through, views among them, and all of the profile.
  virtual void tuning_advanced(size_t /*done*/, size_t /*total*/) {}
  /// The build was told to stop, or its budget is spent: so many layers of all got a tactic by rule, not by time.
  virtual void tuning_cut_short(size_t /*by_rule*/, size_t /*total*/) {}
  /// What follows are the reformats that the choice may need.
  virtual void reformats_begun() {}
  /// The fastest way to bring a value from one layout to another, as it was timed.
  virtual void reformat_timed(const Value& /*value*/, const Candidate& /*fastest*/, const ProfilePoints& /*points*/) {}
  /// Every layer has its tactic. Seconds from the first reformat.
  virtual void tactics_chosen(const Choice& /*choice*/, double /*seconds*/) {}
  /// The choice pays for a reformat here.
  virtual void reformat_added(const Step& /*step*/, Layout /*from*/, Layout /*to*/) {}
  /// Steps and buffers are written down. Seconds of compiling kernels and packing weights.
  virtual void lowered(const Profile& /*profile*/, double /*seconds*/) {}
  /// The memory of that profile.
  virtual void memory_planned(const MemoryUse& /*memory*/) {}
  /// Only where there are such steps.
  virtual void host_shared(const HostShare& /*share*/) {}

  /// With BuildOptions::best the network is built several times, and all of the above comes for each: the next one computes in
  /// these types.
  virtual void precision_begun(std::string_view /*types*/) {}
  /// Its engine has run: milliseconds of an inference, and how far the results are from those in FP32, relatively.
  virtual void precision_timed(std::string_view /*types*/, double /*ms*/, double /*error*/) {}
  /// It cannot be built or does not run.
  virtual void precision_refused(std::string_view /*types*/, std::string_view /*reason*/) {}
  virtual void precision_chosen(std::string_view /*types*/) {}

  /// The plan is complete but for its last check. Seconds of the whole build.
  virtual void finished(const Plan& /*plan*/, const CacheUse& /*cache*/, double /*seconds*/) {}
  /// A refit had to time so many tactics that its plan knows no times of.
  virtual void timed_anew(size_t /*tactics*/) {}
};

/// Everybody who is told, in order. None is owned.
class Listeners {
 public:
  Listeners() = default;
  Listeners(std::initializer_list<BuildListener*> all) : all_(all) {}

  /// Null is nobody.
  Listeners with(BuildListener* another) const {
    Listeners more;
    more.all_.reserve(all_.size() + 1);
    more.all_ = all_;
    if (another != nullptr) more.all_.push_back(another);
    return more;
  }
  /// listeners.tell(&BuildListener::tuning_advanced, done, total)
  template <typename... Parameters, typename... Arguments>
  void tell(void (BuildListener::*event)(Parameters...), const Arguments&... arguments) const {
    for (BuildListener* listener : all_) (listener->*event)(arguments...);
  }

 private:
  std::vector<BuildListener*> all_;
};

}  // namespace hone
