// SPDX-License-Identifier: Apache-2.0
//
// Whether dividing a model makes it faster on cards. Of an inference of few rows, which is what ranks are the least help for: it reads every
// weight once and waits for each collective. With more rows, arithmetic is added, which is divided as weights are.
#pragma once

#include "edit/model.h"

namespace hone::edit {

struct CardRates {
  double bytes_per_ms = 4.3e9;  // an H200 reads its memory so fast
  double collective_ms = 0.01;  // assumed, for two cards on NVLink, until bench/ranks.py cards has measured it
};

struct ShardEstimate {
  double whole_ms = 0, rank_ms = 0;
  int64_t collectives = 0;  // of an inference
  bool slower() const { return rank_ms > whole_ms; }
};

ShardEstimate estimate_shard(const Model& whole, const Model& rank, const CardRates& rates = {});

}  // namespace hone::edit
