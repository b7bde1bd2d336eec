// SPDX-License-Identifier: Apache-2.0
//
// --gen-script: a program that does what the command line asks for, in Python over hone.compare or in C++ over hone/compare.hpp, for those
// who want to see how it is done or to go on from there.
#pragma once

#include <fmt/format.h>

#include "base/text.h"
#include "tools/compare/run_flags.h"

namespace hone {

/// `data` is what inputs are drawn from; `plan_device`: where the plan that the command line names runs, "" where it names a model.
ExitStatus write_script(const Arguments& arguments, const ModelFace& face, const std::string& plan_device,
                        const InputRequest& data, const Narrator& narrator);

/// What the program shall do, apart from the language.
struct ScriptRun {
  enum class Kind { engine, plan, reference, onnxruntime } kind;
  std::string name, path, device;  // path: of a plan
};

struct ScriptPlot {
  const Arguments& arguments;
  std::string model;                // the file
  std::vector<std::string> marked;  // outputs; empty: the model's own
  std::vector<KnownTensor> inputs;
  InputRequest data;
  EngineRequest engine;
  ComparisonRequest comparison;
  std::vector<ScriptRun> runs;

  bool draws() const {
    return !arguments.has("--load-inputs") && !arguments.has("--data-loader-cmd") &&
           !arguments.has("--data-loader-script");
  }
  std::string command() const { return "hone run " + join(arguments.words(), " "); }
};

/// A program's text. Throws UsageError for what the language has no way to.
std::string python_script(const ScriptPlot& plot);
std::string cpp_script(const ScriptPlot& plot);

/// A literal of Python or C++: both read JSON's.
inline std::string quoted(const std::string& text) { return Json(text).dump(); }

/// "[a, b]", with these ends.
template <typename List, typename Text>
std::string listed(const List& list, std::string_view ends, const Text& text) {
  std::vector<std::string> parts;
  for (const auto& each : list) parts.push_back(text(each));
  return fmt::format("{}{}{}", ends[0], join(parts, ", "), ends[1]);
}
inline std::string listed(const std::vector<std::string>& texts, std::string_view ends) {
  return listed(texts, ends, quoted);
}
inline std::string listed(const Dims& dims, std::string_view ends) {
  return listed(dims, ends, [](int64_t size) { return std::to_string(size); });
}

}  // namespace hone
