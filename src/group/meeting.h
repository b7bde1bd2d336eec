// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of one start find each other: in a folder. Rank 0 holds a lock there as long as it lives, so that what an earlier start
// left behind is not taken for this one; each start has a folder of its own below, which its ranks write their names into.
#pragma once

#include <string>
#include <vector>

#include "group/ranks.h"

namespace hone {

/// Its locks end with it.
struct LockFile {
  LockFile() = default;
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  int descriptor = -1;
};

class Meeting {
 public:
  /// Waits for all ranks, each of which says `hello`. Throws GroupError, saying on every rank that is there which are not, which says
  /// something else, or which is there twice.
  Meeting(const Rank& rank, const std::string& hello, int timeout_ms);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// A new folder of this start, the same one for all ranks that ask for the name.
  std::string folder(const std::string& name) const;

 private:
  void open_session();
  void find_session();
  void say(const std::string& hello) const;
  void wait_for_all(const std::string& hello) const;

  Rank rank_;
  std::string home_;     // of all starts
  std::string session_;  // of this one
  int timeout_ms_;
  LockFile lock_;
};

/// Where ranks of one machine meet when they are told of no place.
std::string meeting_folder(const Rank& rank);

}  // namespace hone
