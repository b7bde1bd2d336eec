// SPDX-License-Identifier: Apache-2.0
//
// What the opaque types of the C interface's build side hold.
#pragma once

#include "builder/events/listener.h"
#include "builder/options.h"
#include "hone/hone.h"
#include "ir/graph.h"
#include "precision/running_plan.h"

struct hone_options {
  hone::BuildOptions build;
  // What only programs that link all of Hone can set.
  hone::BuildListener* listener = nullptr;  // told beside the log
  hone::Sample sample = {};                 // what --best compares engines on
};
struct hone_model {
  hone::Graph graph;
  std::vector<std::string> live, folded;  // see ImportedModel
};
