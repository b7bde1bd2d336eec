// SPDX-License-Identifier: Apache-2.0
//
// --gen-script in Python: calls of hone.compare.
#include <cmath>

#include "tools/compare/script.h"

namespace hone {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("float('{}')", value);
}
std::string by_name(const ByName& values) {
  return listed(values, "{}", [](const auto& each) { return quoted(each.first) + ": " + number(each.second); });
}

/// "name=value" behind others, where the value is not what it is anyway.
void add(std::string& call, bool wanted, std::string_view name, const std::string& value) {
  if (wanted) call += fmt::format("{}{}={}", call.empty() ? "" : ", ", name, value);
}

std::string limits_text(const CompareRequest& compare) {
  const CompareRequest standard;
  std::string text;
  add(text, compare.metrics != standard.metrics, "metrics", listed(compare.metrics, "[]"));
  add(text, true, "atol", by_name(compare.atol));
  add(text, true, "rtol", by_name(compare.rtol));
  add(text, compare.stat != standard.stat, "stat",
      listed(compare.stat, "{}", [](const auto& each) { return quoted(each.first) + ": " + quoted(each.second); }));
  add(text, compare.quantile != standard.quantile, "quantile", by_name(compare.quantile));
  add(text, compare.index_tolerance != standard.index_tolerance, "index_tolerance", by_name(compare.index_tolerance));
  add(text, compare.l2 != standard.l2, "l2", by_name(compare.l2));
  add(text, compare.cosine != standard.cosine, "cosine_similarity", by_name(compare.cosine));
  add(text, compare.psnr != standard.psnr, "psnr", by_name(compare.psnr));
  add(text, compare.snr != standard.snr, "snr", by_name(compare.snr));
  add(text, !compare.shape_check, "shape_check", "False");
  add(text, compare.infinities_equal, "infinities_equal", "True");
  return text;
}

std::string input_text(const ScriptPlot& plot, const KnownTensor& input) {
  const DrawnInput drawn = drawn_input(input, plot.data);
  std::string text =
      fmt::format("compare.Input({}, {}", listed(input.dims, "[]"), quoted(std::string(numpy_word(input.dtype))));
  if (drawn.contents) return text + fmt::format(", contents={})", listed(*drawn.contents, "[]"));
  if (plot.draws()) text += fmt::format(", {}, {}", number(drawn.range.low), number(drawn.range.high));
  return text + ")";
}

std::string profile_text(const ShapeTriple& triple) {
  return listed(triple.opt, "{}", [&](const auto& each) {
    const auto side = [&](const std::map<std::string, Dims>& shapes) {
      return listed(shapes.contains(each.first) ? shapes.at(each.first) : each.second, "[]");
    };
    return fmt::format("{}: ({}, {}, {})", quoted(each.first), side(triple.min), listed(each.second, "[]"),
                       side(triple.max));
  });
}

/// Files are the first engine's.
std::string run_text(const ScriptPlot& plot, const ScriptRun& run, bool first) {
  const EngineRequest& engine = plot.engine;
  std::string more;
  switch (run.kind) {
    case ScriptRun::Kind::reference: return "compare.reference(MODEL)";
    case ScriptRun::Kind::plan:
      more = quoted(run.path) + ", " + quoted(run.device);
      add(more, engine.profile != 0, "profile", std::to_string(engine.profile));
      return fmt::format("compare.plan({})", more);
    case ScriptRun::Kind::onnxruntime: {
      const std::vector<std::string> providers = plot.arguments.values("--providers");
      const std::string level = plot.arguments.value("--graph-optimization-level");
      more = "MODEL";
      add(more, !providers.empty(), "providers", listed(providers, "[]"));
      add(more, !level.empty(), "level", quoted(level));
      return fmt::format("compare.onnx_runtime({})", more);
    }
    case ScriptRun::Kind::engine: break;
  }
  more = fmt::format("MODEL, {}, {}", quoted(run.device), listed(engine.flags, "[]"));
  if (engine.profiles.empty()) add(more, true, "feeds", "feeds");
  else add(more, true, "profiles", listed(engine.profiles, "[]", profile_text));
  add(more, engine.profile != 0, "profile", std::to_string(engine.profile));
  const std::vector<std::string> libraries = plot.arguments.values("--plugins");
  add(more, !libraries.empty(), "libraries", listed(libraries, "[]"));
  add(more, !engine.load_cache.empty(), "load_cache", quoted(engine.load_cache));
  add(more, first && !engine.save_cache.empty(), "save_cache", quoted(engine.save_cache));
  add(more, first && !engine.save_engine.empty(), "save_plan", quoted(engine.save_engine));
  add(more, first && !engine.save_tactics.empty(), "save_tactics", quoted(engine.save_tactics));
  return fmt::format("compare.engine({})", more);
}

std::string feeds_text(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  if (arguments.has("--load-inputs"))
    return fmt::format("compare.load_inputs({}, INPUTS)", listed(arguments.values("--load-inputs"), "[]"));
  if (arguments.has("--data-loader-cmd"))
    return fmt::format("compare.loaded_by_program({}, INPUTS)", quoted(arguments.value("--data-loader-cmd")));
  if (arguments.has("--data-loader-script"))
    return fmt::format("compare.loaded_by_script({})", quoted(arguments.value("--data-loader-script")));
  return fmt::format("[compare.draw(INPUTS, seed={} + i) for i in range({})]", plot.data.seed, plot.data.iterations);
}

std::string judged_text(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  std::string text, call = "results, LIMITS";
  if (arguments.has("--validate")) text += "    good &= compare.valid(results)\n";
  if (plot.runs.size() < 2 && !arguments.has("--load-outputs")) return text;
  add(call, plot.comparison.pairs != "first", "pairs", quoted(plot.comparison.pairs));
  add(call, plot.comparison.fail_fast, "fail_fast", "True");
  add(call, plot.comparison.average, "average", "True");
  add(call, plot.comparison.allow_unmatched, "allow_unmatched", "True");
  add(call, arguments.has("--allow-prefix"), "allow_prefix", "True");
  const std::vector<TopPlaces> places = postprocess_request(arguments);
  add(call, !places.empty(), "postprocess", listed(places, "[]", [](const TopPlaces& each) {
        return fmt::format("({}, {}, {})", quoted(each.output), each.count, each.axis);
      }));
  return text + fmt::format("    good &= compare.agree({})\n", call);
}

}  // namespace

std::string python_script(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  std::string model = quoted(plot.model);
  add(model, !plot.marked.empty(), "outputs", listed(plot.marked, "[]"));
  add(model, arguments.has("--external-data-dir"), "folder", quoted(arguments.value("--external-data-dir")));
  std::string text = fmt::format(
      "#!/usr/bin/env python3\n# Written by: {}\n\"\"\"Runs the model by each of the runners below on the same inputs, "
      "and "
      "compares what they give. Exit 0: they agree; 1: they do not.\"\"\"\n\nimport sys\n\nfrom hone import "
      "compare\n\nMODEL = compare.Model({})\nINPUTS = {{\n",
      plot.command(), model);
  for (const KnownTensor& input : plot.inputs)
    text += fmt::format("    {}: {},\n", quoted(input.name), input_text(plot, input));
  text += fmt::format("}}\nLIMITS = compare.Limits({})\n\n\ndef main():\n    feeds = {}\n    runs = {{\n",
                      limits_text(plot.comparison.compare), feeds_text(plot));
  bool first = true;
  for (const ScriptRun& run : plot.runs) {
    text += fmt::format("        {}: {},\n", quoted(run.name), run_text(plot, run, first));
    if (run.kind == ScriptRun::Kind::engine) first = false;
  }
  text +=
      "    }\n    results = [(name, [run(feed) for feed in feeds]) for name, run in runs.items()]\n    good = True\n";
  const auto keep = [&](std::string_view flag, std::string_view call, std::string_view what) {
    if (arguments.has(flag))
      text += fmt::format("    compare.{}({}, {})\n", call, quoted(arguments.value(flag, ".")), what);
  };
  keep("--save-inputs", "save_inputs", "feeds");
  keep("--save-input-blob", "save_blobs", "feeds");
  keep("--save-outputs", "save_outputs", "results");
  if (arguments.has("--time"))
    text += fmt::format("    for name, run in runs.items():\n        compare.timed(name, run, feeds, warm_up={})\n",
                        arguments.integer("--warm-up", 0));
  if (arguments.has("--load-outputs"))
    text += fmt::format("    results += compare.load_outputs({})\n", listed(arguments.values("--load-outputs"), "[]"));
  return text + judged_text(plot) +
         "    return 0 if good else 1\n\n\nif __name__ == \"__main__\":\n    sys.exit(main())\n";
}

}  // namespace hone
