// SPDX-License-Identifier: Apache-2.0
//
// What `hone debug` asks again and again: does this model or engine pass? The answer comes from a command (--check), from a comparison in
// this process (--check-run), or from whoever sits there. Answers are kept in a replay file, so that an interrupted search goes on where it
// stopped: the searches are deterministic, so the same questions come in the same order.
#pragma once

#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tools/companion/narrator.h"
#include "tools/compare/tensor_files.h"
#include "tools/debug/replay.h"

namespace hone {

/// Flags that all of `hone debug` has.
std::vector<CompanionFlag> checker_flags();

class Checker {
 public:
  /// `artifact` is what is checked: "polygraphy_debug.onnx" unless --iter-artifact says otherwise.
  Checker(const Arguments& arguments, const Narrator& narrator, const std::string& artifact);

  const std::string& artifact() const { return artifact_; }
  /// How many more questions are likely to come; -1: not known.
  void expect(int64_t remaining) { remaining_ = remaining; }
  /// Asks about what `make` writes to artifact(). `inputs` are values for a comparison in this process; null: it draws its own. What
  /// throws an Error while it is made counts as a failure. Artefacts are sorted and the intermediate file is removed.
  bool passes(const std::string& what, const std::function<void()>& make, const TensorList* inputs = nullptr);
  /// Prints the counts and, of replayed questions too, the time.
  void finish() const;
  size_t asked() const { return asked_; }
  size_t passed() const { return passed_; }
  /// Of this run alone, without those that the replay answered, in milliseconds an iteration: all, and what the checks took of it.
  Json timing() const;

 private:
  struct Answer {
    bool passed = false;
    int code = 0;
  };
  Answer attempt(const std::function<void()>& make, const TensorList* inputs);
  std::optional<bool> replayed(const std::string& what);
  void begin();
  Answer run(const TensorList* inputs);
  Answer run_command() const;
  Answer run_comparison(const TensorList* inputs) const;
  Answer ask_user() const;
  bool judge(int code, const std::string& output) const;
  bool answer(const std::string& what, const Answer& answer);
  void sort_artifacts(const Answer& answer) const;
  void save_replay(const std::string& path, std::optional<bool> current, const std::string& what) const;

  const Arguments& arguments_;
  const Narrator& narrator_;
  const std::string artifact_;
  std::vector<std::string> command_;
  std::set<int> fail_codes_, ignored_codes_;
  std::vector<std::regex> fail_patterns_;
  DebugAnswers known_;  // replayed, then asked
  size_t replay_ = 0;   // how many of the known ones are still to be given out
  size_t next_known_ = 0, asked_ = 0, passed_ = 0;
  int64_t remaining_ = -1;
  double start_ms_ = 0, check_ms_ = 0;
  size_t checks_ = 0;
};

}  // namespace hone
