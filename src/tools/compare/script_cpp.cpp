// SPDX-License-Identifier: Apache-2.0
//
// --gen-script in C++: calls of hone/compare.hpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "tools/compare/script.h"

namespace hone {
namespace {

std::string number(double value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return std::isnan(value) ? "NAN" : value > 0 ? "INFINITY" : "-INFINITY";
}
std::string by_name(const ByName& values) {
  return listed(values, "{}",
                [](const auto& each) { return fmt::format("{{{}, {}}}", quoted(each.first), number(each.second)); });
}

/// ".name = value" behind others, where the value is not what it is anyway.
void add(std::string& list, bool wanted, std::string_view name, const std::string& value) {
  if (wanted) list += fmt::format("{}.{} = {}", list.empty() ? "" : ", ", name, value);
}

std::string_view constant_of(const KnownTensor& input) {
  constexpr std::array<std::pair<DType, std::string_view>, 13> kTypes{{{DType::f64, "HONE_F64"},
                                                                       {DType::f32, "HONE_F32"},
                                                                       {DType::f16, "HONE_F16"},
                                                                       {DType::bf16, "HONE_BF16"},
                                                                       {DType::i64, "HONE_I64"},
                                                                       {DType::i32, "HONE_I32"},
                                                                       {DType::i16, "HONE_I16"},
                                                                       {DType::i8, "HONE_I8"},
                                                                       {DType::u64, "HONE_U64"},
                                                                       {DType::u32, "HONE_U32"},
                                                                       {DType::u16, "HONE_U16"},
                                                                       {DType::u8, "HONE_U8"},
                                                                       {DType::boolean, "HONE_BOOL"}}};
  const auto* found = std::ranges::find(kTypes, input.dtype, &std::pair<DType, std::string_view>::first);
  if (found == kTypes.end())
    throw UsageError(
        fmt::format("input {} is {}, which programs in C++ do not make", input.name, numpy_word(input.dtype)),
        "--gen-script run.py makes all types");
  return found->second;
}

std::string limits_text(const CompareRequest& compare) {
  const CompareRequest standard;
  std::string text;
  add(text, compare.metrics != standard.metrics, "metrics", listed(compare.metrics, "{}"));
  add(text, true, "atol", by_name(compare.atol));
  add(text, true, "rtol", by_name(compare.rtol));
  add(text, compare.stat != standard.stat, "stat", listed(compare.stat, "{}", [](const auto& each) {
        return fmt::format("{{{}, {}}}", quoted(each.first), quoted(each.second));
      }));
  add(text, compare.quantile != standard.quantile, "quantile", by_name(compare.quantile));
  add(text, compare.index_tolerance != standard.index_tolerance, "index_tolerance", by_name(compare.index_tolerance));
  add(text, compare.l2 != standard.l2, "l2", by_name(compare.l2));
  add(text, compare.cosine != standard.cosine, "cosine_similarity", by_name(compare.cosine));
  add(text, compare.psnr != standard.psnr, "psnr", by_name(compare.psnr));
  add(text, compare.snr != standard.snr, "snr", by_name(compare.snr));
  add(text, !compare.shape_check, "shape_check", "false");
  add(text, compare.infinities_equal, "infinities_equal", "true");
  return text;
}

std::string input_text(const ScriptPlot& plot, const KnownTensor& input) {
  const DrawnInput drawn = drawn_input(input, plot.data);
  std::string text = fmt::format("{{{}, {}", listed(input.dims, "{}"), constant_of(input));
  if (drawn.contents) return text + fmt::format(", 0, 1, {}}}", listed(*drawn.contents, "{}"));
  if (plot.draws()) text += fmt::format(", {}, {}", number(drawn.range.low), number(drawn.range.high));
  return text + "}";
}

std::string profile_text(const ShapeTriple& triple) {
  return listed(triple.opt, "{}", [&](const auto& each) {
    const auto side = [&](const std::map<std::string, Dims>& shapes) {
      return listed(shapes.contains(each.first) ? shapes.at(each.first) : each.second, "{}");
    };
    return fmt::format("{{{}, {}, {}, {}}}", quoted(each.first), side(triple.min), listed(each.second, "{}"),
                       side(triple.max));
  });
}

/// Files are the first engine's.
std::string run_text(const ScriptPlot& plot, const ScriptRun& run, bool first) {
  const EngineRequest& engine = plot.engine;
  switch (run.kind) {
    case ScriptRun::Kind::reference: return "compare::reference(model)";
    case ScriptRun::Kind::plan:
      return fmt::format("compare::plan({}, {}, {})", quoted(run.path), quoted(run.device), engine.profile);
    case ScriptRun::Kind::onnxruntime:
      return fmt::format("compare::onnx_runtime(model, {}, {})", quoted(plot.arguments.value("--onnxrt-lib")),
                         onnxruntime_request(plot.arguments).optimization);
    case ScriptRun::Kind::engine: break;
  }
  std::string more;
  add(more, !engine.flags.empty(), "flags", listed(engine.flags, "{}"));
  add(more, !engine.profiles.empty(), "profiles", listed(engine.profiles, "{}", profile_text));
  add(more, engine.profile != 0, "profile", std::to_string(engine.profile));
  add(more, engine.profiles.empty(), "feeds", "feeds");
  const std::vector<std::string> libraries = plot.arguments.values("--plugins");
  add(more, !libraries.empty(), "libraries", listed(libraries, "{}"));
  add(more, !engine.load_cache.empty(), "load_cache", quoted(engine.load_cache));
  add(more, first && !engine.save_cache.empty(), "save_cache", quoted(engine.save_cache));
  add(more, first && !engine.save_engine.empty(), "save_plan", quoted(engine.save_engine));
  add(more, first && !engine.save_tactics.empty(), "save_tactics", quoted(engine.save_tactics));
  return fmt::format("compare::engine(model, {}, {{{}}})", quoted(run.device), more);
}

/// What compare_files.hpp reads and writes.
void check_files(const Arguments& arguments) {
  for (const char* flag : {"--load-inputs", "--load-outputs", "--save-inputs", "--save-outputs"})
    for (const std::string& path : arguments.values(flag))
      if (path.ends_with(".npz") || path.ends_with(".safetensors"))
        throw UsageError(fmt::format("{} {}: programs in C++ have no archives", flag, path),
                         "name JSON, a folder or name:file.npy (hone data merge makes JSON of archives), or let "
                         "--gen-script write run.py");
  if (arguments.has("--data-loader-script"))
    throw UsageError("--data-loader-script is not written into a program in C++", "--gen-script run.py has it");
}

std::string feeds_text(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  if (arguments.has("--load-inputs"))
    return fmt::format("  const std::vector<compare::Feed> feeds = compare::load_inputs({}, inputs);\n",
                       listed(arguments.values("--load-inputs"), "{}"));
  if (arguments.has("--data-loader-cmd"))
    return fmt::format("  const std::vector<compare::Feed> feeds = compare::loaded_by_program({}, inputs);\n",
                       quoted(arguments.value("--data-loader-cmd")));
  return fmt::format(
      "  std::vector<compare::Feed> feeds;\n  for (unsigned i = 0; i < {}; ++i) feeds.push_back(compare::draw(inputs, "
      "{} + "
      "i));\n",
      plot.data.iterations, plot.data.seed);
}

std::string judged_text(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  std::string text, rules;
  if (arguments.has("--validate")) text += "  good &= compare::valid(results);\n";
  if (plot.runs.size() < 2 && !arguments.has("--load-outputs")) return text;
  add(rules, plot.comparison.pairs != "first", "pairs", quoted(plot.comparison.pairs));
  add(rules, plot.comparison.fail_fast, "fail_fast", "true");
  add(rules, plot.comparison.average, "average", "true");
  add(rules, plot.comparison.allow_unmatched, "allow_unmatched", "true");
  add(rules, arguments.has("--allow-prefix"), "allow_prefix", "true");
  const std::vector<TopPlaces> places = postprocess_request(arguments);
  add(rules, !places.empty(), "postprocess", listed(places, "{}", [](const TopPlaces& each) {
        return fmt::format("{{{}, {}, {}}}", quoted(each.output), each.count, each.axis);
      }));
  return text + fmt::format("  good &= compare::agree(results, {{{}}}, {{{}}});\n",
                            limits_text(plot.comparison.compare), rules);
}

}  // namespace

std::string cpp_script(const ScriptPlot& plot) {
  const Arguments& arguments = plot.arguments;
  check_files(arguments);
  std::string model = quoted(plot.model);
  if (!plot.marked.empty() || arguments.has("--external-data-dir")) model += ", " + listed(plot.marked, "{}");
  if (arguments.has("--external-data-dir")) model += ", " + quoted(arguments.value("--external-data-dir"));
  const bool onnxruntime =
      std::ranges::find(plot.runs, ScriptRun::Kind::onnxruntime, &ScriptRun::kind) != plot.runs.end();
  std::string text = fmt::format(
      "// Written by: {}\n//\n// Runs the model by each of the runners below on the same inputs, and compares what "
      "they give. "
      "Exit 0: they agree; 1: they do not.\n// Build: g++ -std=c++20 FILE $(pkg-config --cflags --libs hone)\n#include "
      "<hone/compare_files.hpp>\n{}\nnamespace compare = hone::compare;\n\nint main() try {{\n  const compare::Model "
      "model{{{}}};\n  const compare::Inputs inputs{{\n",
      plot.command(), onnxruntime ? "#include <hone/compare_onnxruntime.hpp>\n" : "", model);
  for (const KnownTensor& input : plot.inputs)
    text += fmt::format("      {{{}, {}}},\n", quoted(input.name), input_text(plot, input));
  text += "  };\n" + feeds_text(plot) + "  const std::vector<std::pair<std::string, compare::Run>> runs{\n";
  bool first = true;
  for (const ScriptRun& run : plot.runs) {
    text += fmt::format("      {{{}, {}}},\n", quoted(run.name), run_text(plot, run, first));
    if (run.kind == ScriptRun::Kind::engine) first = false;
  }
  text +=
      "  };\n  compare::Results results;\n  for (const auto& [name, run] : runs) results.emplace_back(name, "
      "compare::all(run, feeds));\n  bool good = true;\n";
  const auto keep = [&](std::string_view flag, std::string_view call, std::string_view what) {
    if (arguments.has(flag))
      text += fmt::format("  compare::{}({}, {});\n", call, quoted(arguments.value(flag, ".")), what);
  };
  keep("--save-inputs", "save_inputs", "feeds");
  keep("--save-input-blob", "save_blobs", "feeds");
  keep("--save-outputs", "save_outputs", "results");
  if (arguments.has("--time"))
    text += fmt::format("  for (const auto& [name, run] : runs) compare::timed(name, run, feeds, {});\n",
                        arguments.integer("--warm-up", 0));
  if (arguments.has("--load-outputs"))
    text += fmt::format("  compare::load_outputs({}, results);\n", listed(arguments.values("--load-outputs"), "{}"));
  return text + judged_text(plot) +
         "  return good ? 0 : 1;\n} catch (const std::exception& error) {\n  std::fprintf(stderr, \"%s\\n\", "
         "error.what());\n  return 1;\n}\n";
}

}  // namespace hone
