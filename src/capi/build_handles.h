// SPDX-License-Identifier: Apache-2.0
//
// What the opaque types of the C interface's build side hold.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "builder/options.h"
#include "capi/handle.h"
#include "capi/texts.h"
#include "hone/tools.h"
#include "onnx/importer.h"
#include "precision/running_plan.h"
#include "tuner/timing_cache.h"

struct hone_timing_cache : hone::capi::Handle<hone::capi::Kind::timing_cache> {
  std::shared_ptr<hone::TimingCache> cache = std::make_shared<hone::TimingCache>();
  std::string text;
};
struct hone_network : hone::capi::Handle<hone::capi::Kind::network> {
  int opset = 0;
  std::vector<std::string> nodes, constants, inputs, outputs;  // messages of the wire format
  std::string file;
};
struct hone_options : hone::capi::Handle<hone::capi::Kind::options> {
  hone::BuildOptions build = {};
  bool own_profiles = false;                           // those of `build` come from hone_options_add_profile()
  std::map<std::string, hone::IoFormat> formats = {};  // of inputs and outputs, by name
  std::shared_ptr<hone::TimingCache> cache;            // the program's
  hone_progress progress = {};
  hone_timed_fn timed = nullptr;
  void* timed_user = nullptr;
  hone::Sample sample = {};                       // what --best compares engines on
  std::map<std::string, std::string> notes = {};  // for PlanMeta
};
struct hone_model : hone::capi::Handle<hone::capi::Kind::model> {
  hone_model(hone::Graph network = {}, std::vector<std::string> alive = {}, std::vector<std::string> gone = {})
      : graph(std::move(network)), live(std::move(alive)), folded(std::move(gone)) {}
  explicit hone_model(hone::ImportedModel imported)
      : graph(std::move(imported.graph)),
        live(std::move(imported.live)),
        folded(std::move(imported.folded)),
        consumed(std::move(imported.consumed)) {}
  /// Throws StateError while weights are missing.
  void require_whole() const;

  hone::Graph graph;
  std::vector<std::string> live, folded, consumed;  // see ImportedModel
  std::set<std::string> missing = {};               // weights that a plan came without
  bool of_plan = false;                             // the network that a plan keeps: what shapes it stays
  std::shared_ptr<hone::capi::Texts> texts = std::make_shared<hone::capi::Texts>();
};
