// SPDX-License-Identifier: Apache-2.0
//
// Which tactic each layer of an engine has, kept so that another build makes the same choices: Polygraphy's form of a replay, and beside
// it the times that the choices follow from. Building with those times measures nothing and chooses alike.
#pragma once

#include <map>
#include <string>

#include "tensor/json.h"
#include "tools/common/api.h"

namespace hone {

/// `cache` holds the times of the plan's build; null: the choices alone are kept, and cannot be replayed.
std::string tactics_json(const hone_plan* plan, hone_timing_cache* cache);
/// The times of a replay. Throws StatusError where the file is none.
Owned<hone_timing_cache> replay_times(const std::string& path);

struct LayerTactic {
  std::string implementation, tactic;
  std::vector<std::string> inputs, outputs;
  std::string text() const;
  friend bool operator==(const LayerTactic&, const LayerTactic&) = default;
};
using TacticReplay = std::map<std::string, LayerTactic>;
/// Of Polygraphy's files too, where tactics are numbers.
TacticReplay read_replay(const std::string& path);
TacticReplay replay_of(const hone_plan* plan);

}  // namespace hone
