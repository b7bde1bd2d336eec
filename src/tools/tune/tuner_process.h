// SPDX-License-Identifier: Apache-2.0
//
// The other side of `hone tune --in-process`: a process that is given keys and tells what became of them. It may end by itself, or be
// ended because it takes too long; then it is started anew, and what it was at is known.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tensor/json.h"

namespace hone {

class TunerProcess {
 public:
  /// Starts this program with the words behind `hone tune`. Reads its first line. Throws Error where it says what is wrong, or cannot be
  /// started.
  explicit TunerProcess(std::vector<std::string> words);
  TunerProcess(const TunerProcess&) = delete;
  TunerProcess& operator=(const TunerProcess&) = delete;
  ~TunerProcess();

  const Json& greeting() const { return greeting_; }
  pid_t process() const { return process_; }
  void send(const std::string& key);
  /// Its next line; nothing where it has ended, or `seconds` have passed and it was ended: how() says which. Below 0: waits as long as it
  /// takes.
  std::optional<Json> next(double seconds);
  /// "killed by signal 11", "exit status 1", "took longer than 60 s".
  const std::string& how() const { return how_; }

 private:
  void end(double seconds);

  pid_t process_ = -1;
  int input_ = -1, output_ = -1;
  std::string pending_, how_;
  Json greeting_;
};

}  // namespace hone
