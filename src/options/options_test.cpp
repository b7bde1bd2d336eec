// SPDX-License-Identifier: Apache-2.0
//
// The table against the list of all names; the grammars and their errors; shapes left out; the blocks against transcripts
// in tests/cli/blocks (NAME.args, one argument per line, gives NAME.expected).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "options/blocks.h"
#include "options/documents.h"
#include "options/flag.h"
#include "options/parse.h"

namespace hone {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCli = "tests/cli/";

CommandLine parse(std::vector<std::string> arguments) { return parse_command_line(arguments); }

/// The options of a command line that must be right.
Options accept(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--onnx=m.onnx");
  CommandLine line = parse(arguments);
  EXPECT_THAT(line.errors, IsEmpty());
  return line.options;
}

/// The only error of a command line that must be wrong.
std::string refuse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--onnx=m.onnx");
  const CommandLine line = parse(arguments);
  EXPECT_EQ(line.errors.size(), 1u) << "for " << arguments.back();
  return line.errors.empty() ? "" : line.errors.front();
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  lines.pop_back();
  return lines;
}

TEST(FlagTable, KnowsEveryFlagOfEveryRelease) {
  size_t names = 0;
  for (const std::string& name : lines_of(kCli + "flags.txt")) {
    if (name.starts_with('#')) continue;
    ++names;
    const bool look_alike = std::ranges::any_of(look_alikes(), [&](const LookAlike& row) { return row.name == name; });
    EXPECT_TRUE(find_flag(name) != nullptr || look_alike) << name;
  }
  EXPECT_EQ(names, 166u);
}

/// What a user sees of a command line before anything runs: option blocks, warnings, errors.
std::string seen(const CommandLine& line) {
  std::string text;
  for (const std::string& warning : line.warnings) text += "[W] " + warning + "\n";
  for (const std::string& error : line.errors) text += "[E] " + error + "\n";
  for (const std::string& block : option_blocks(line.options)) text += block + "\n";
  return text;
}

struct FlagRow {
  std::vector<std::string> arguments;
  std::string expected;
};

/// Rows "arguments => what is expected" of a file.
std::vector<FlagRow> flag_rows(const std::string& path) {
  std::vector<FlagRow> rows;
  for (const std::string& line : lines_of(path)) {
    if (line.starts_with('#')) continue;
    const size_t arrow = line.find(" => ");
    EXPECT_NE(arrow, std::string::npos) << line;
    FlagRow row{{}, line.substr(arrow + 4)};
    for (const std::string_view word : split(std::string_view(line).substr(0, arrow), ' '))
      row.arguments.emplace_back(word);
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(FlagTable, HasATestOfTheEffectOfEveryFlag) {
  std::set<std::string> tested;
  for (const char* file : {"flag_effects.txt", "flag_runs.txt"})
    for (const FlagRow& row : flag_rows(kCli + file))
      for (const std::string& argument : row.arguments) tested.insert(argument.substr(0, argument.find('=')));
  for (const std::string& name : lines_of(kCli + "flags.txt"))
    EXPECT_TRUE(name.starts_with('#') || tested.contains(name)) << name;
  for (const Flag& flag : flag_table()) EXPECT_TRUE(tested.contains(std::string(flag.name))) << flag.name;
}

TEST(FlagTable, RowsHaveTheEffectsThatTheTestDataSay) {
  for (FlagRow& row : flag_rows(kCli + "flag_effects.txt")) {
    const auto names_model = [](const std::string& argument) {
      return std::ranges::any_of(std::array{"--onnx=", "--loadEngine=", "--uff=", "--model=", "--deploy="},
                                 [&](const char* flag) { return argument.starts_with(flag); });
    };
    if (std::ranges::none_of(row.arguments, names_model)) row.arguments.insert(row.arguments.begin(), "--onnx=m.onnx");
    const CommandLine line = parse(row.arguments);
    const std::string text = seen(line);
    const bool silent = row.expected == "[none]",
               refused = row.expected.starts_with("[E]") || row.expected.starts_with("did you mean");
    EXPECT_THAT(text, HasSubstr(silent ? "" : row.expected)) << "for " << join(row.arguments, " ");
    EXPECT_EQ(line.errors.empty(), !refused) << text;
    EXPECT_TRUE(!silent || line.warnings.empty()) << text;
  }
}

TEST(FlagTable, HasEachNameOnceAndHelpForAll) {
  std::set<std::string_view> names;
  for (const Flag& flag : flag_table()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_TRUE(flag.set != nullptr || !flag.instead.empty() || flag.name == "--help" || flag.name == "--profile" ||
                flag.name == "--refPair")
        << flag.name << " does nothing and does not say so";
    EXPECT_THAT(help_text(), HasSubstr(std::string(flag.name)));
  }
}

TEST(Documents, AreCurrent) {
  EXPECT_EQ(read_file("docs/flags.md"), flags_page()) << "write it anew: hone help flags > docs/flags.md";
}

TEST(Compat, FollowsTheDefaultsOfRelease11) {
  const Options options = accept({"--compat=11"});
  EXPECT_FALSE(options.perf.data_transfers);
  EXPECT_TRUE(options.perf.use_graph && options.perf.spin_wait && options.tool.separate_profile_run &&
              options.tool.strongly_typed);
  EXPECT_TRUE(accept({"--includeDataTransfers", "--compat=11"}).perf.data_transfers);
  EXPECT_THAT(refuse({"--fp16", "--compat=11"}),
              testing::AllOf(HasSubstr("Unknown option: --fp16"), HasSubstr("release 11 has dropped --fp16")));
  EXPECT_THAT(refuse({"--compat=12"}), HasSubstr("Unknown compat: 12"));
}

TEST(Compat, ReadsUnitsAndFormatsAsTheReleaseDoes) {
  EXPECT_EQ(accept({"--memPoolSize=workspace:1024MiB", "--compat=8.6"}).build.workspace_bytes, int64_t{1} << 30);
  EXPECT_EQ(accept({"--memPoolSize=workspace:1024MiB", "--compat=10"}).build.workspace_bytes, 1024);
  EXPECT_EQ(accept({"--memPoolSize=workspace:2K", "--compat=8.6"}).build.workspace_bytes, int64_t{2} << 20);
  EXPECT_EQ(accept({"--memPoolSize=workspace:2K"}).build.workspace_bytes, int64_t{2} << 10);
  const auto formats = accept({"--inputIOFormats=chw+hwc8,hwc", "--compat=11"}).build.input_formats;
  ASSERT_EQ(formats.size(), 2u);
  EXPECT_FALSE(formats[0].dtype.has_value()) << "the model's type";
  EXPECT_EQ(formats[1].layout, Layout::channels_last);
  EXPECT_THAT(refuse({"--inputIOFormats=fp16:chw", "--compat=11"}), HasSubstr("Invalid TensorFormat fp16:chw"));
}

TEST(Compat, ShowsTheBuildBlockOfTheRelease) {
  const auto shown = [](const std::string& release, const std::string& label) {
    return seen(parse({"--onnx=m", "--compat=" + release})).find("\n" + label) != std::string::npos;
  };
  EXPECT_TRUE(shown("8.6", "Max batch: ") && shown("8.6", "minTiming: ") && shown("8.6", "Heuristic: ") &&
              !shown("8.6", "MaxTactics: "));
  EXPECT_TRUE(!shown("10", "Max batch: ") && shown("10", "Strip weights: ") && shown("10", "MaxTactics: ") &&
              shown("10", "LayerPrecisions: "));
  EXPECT_TRUE(shown("11", "Decomposable Attentions: ") && !shown("11", "LayerPrecisions: ") &&
              !shown("11", "Separate profiling: ") && shown("11", "Input(s)s format: CHW") &&
              shown("11", "Accuracy Algorithm: L0") && shown("11", "ONNX kADJUST_FOR_DLA flag: ") &&
              shown("11", "Loaded static plugins:"));
  EXPECT_TRUE(shown("10", "Runtime Platform: Same As Build") && shown("10", "Weight Streaming Budget: 100.000000%") &&
              shown("10", "Plugins:") && !shown("10", "Accuracy Algorithm: "));
  EXPECT_EQ(seen(parse({"--loadEngine=p", "--compat=10"})).find("=== Build Options ==="), std::string::npos);
}

TEST(Parse, SplitsAtTheFirstEqualsSign) { EXPECT_EQ(accept({"--saveEngine=a=b.plan"}).tool.save_engine, "a=b.plan"); }

TEST(Parse, ReadsNumbersAsStoiDoes) {
  EXPECT_EQ(accept({"--iterations=10x"}).perf.iterations, 10);
  EXPECT_EQ(accept({"--warmUp= 2.5"}).perf.warm_up_ms, 2.5);
  EXPECT_THAT(refuse({"--iterations=many"}), HasSubstr("stoi: --iterations=\"many\""));
}

TEST(Parse, TakesASwitchWhateverItsValue) {
  const CommandLine line = parse({"--onnx=m", "--fp16=false"});
  EXPECT_TRUE(line.options.build.fp16);
  EXPECT_THAT(line.warnings, Contains(HasSubstr("--fp16 is a switch")));
}

TEST(Parse, RefusesASecondCopyOfASingleFlag) {
  EXPECT_THAT(refuse({"--iterations=5", "--iterations=6"}), HasSubstr("Unknown option: --iterations 6"));
}

TEST(Parse, SaysWhatIsLeftOverAndWhatWasMeant) {
  EXPECT_THAT(refuse({"--saveEngin=m.plan"}),
              testing::AllOf(HasSubstr("Unknown option: --saveEngin m.plan"), HasSubstr("--saveEngine")));
  EXPECT_THAT(refuse({"--noDataTransfer"}), HasSubstr("--noDataTransfers"));
  EXPECT_THAT(refuse({" "}), HasSubstr("trailing blank after a backslash"));
  EXPECT_THAT(refuse({"–-memPoolSize=workspace:1"}),
              testing::AllOf(HasSubstr("Unknown option"), HasSubstr("U+2013"), HasSubstr("--memPoolSize")));
  EXPECT_EQ(parse({"--onnx=m", "model-02.plan", "--trt"}).errors.size(), 2u);
}

TEST(Parse, MissesTheModelFirst) {
  const CommandLine line = parse({"model-02.plan", "--trt", "--verbose"});
  ASSERT_EQ(line.errors.size(), 1u);
  EXPECT_THAT(line.errors[0], testing::AllOf(HasSubstr("Model missing or format not recognized"),
                                             HasSubstr("--loadEngine=model-02.plan")));
}

TEST(Parse, HelpWinsOverErrors) { EXPECT_TRUE(parse({"--iterations=many", "-h"}).help); }

TEST(Parse, WarnsOfOldSpellingsAndForwardsThem) {
  const CommandLine line = parse({"--onnx=m", "--streams=2", "--workspace=64", "--buildOnly", "--nvtxMode=verbose"});
  EXPECT_EQ(line.options.perf.streams, 2);
  EXPECT_EQ(line.options.build.workspace_bytes, 64 << 20);
  EXPECT_TRUE(line.options.tool.skip_inference);
  EXPECT_EQ(line.options.build.profiling_verbosity, "detailed");
  EXPECT_EQ(line.warnings.size(), 4u);
}

TEST(Parse, SaysWhatHappensInsteadOfWhatIsNotThere) {
  EXPECT_THAT(parse({"--onnx=m", "--useDLACore=0"}).warnings, ElementsAre(HasSubstr("no DLA")));
  EXPECT_THAT(parse({"--onnx=m", "--maxAuxStreams=4"}).warnings,
              ElementsAre(HasSubstr("--maxAuxStreams is accepted, but")));
}

TEST(Parse, RefusesWhatExcludesEachOther) {
  EXPECT_THAT(refuse({"--loadEngine=a", "--saveEngine=b"}),
              HasSubstr("Incompatible load and save engine options selected"));
  EXPECT_THAT(refuse({"--fp8", "--int8"}), HasSubstr("Invalid usage, fp8 and int8 aren't allowed"));
  EXPECT_THAT(refuse({"--batch=4"}), HasSubstr("Please use --optShapes and --shapes"));
  EXPECT_THAT(refuse({"--useRuntime=lean"}), HasSubstr("requires --useRuntime=full."));
  EXPECT_THAT(refuse({"--sparsity=some"}), HasSubstr("Unknown sparsity mode: some"));
  EXPECT_THAT(refuse({"--percentile=90,101"}), HasSubstr("not in [0,100]"));
  EXPECT_THAT(parse({"--uff=m.uff"}).errors, ElementsAre(HasSubstr("retired")));
}

TEST(Grammar, NamesEndAtTheLastColonOrAtTheirQuote) {
  EXPECT_EQ(accept({"--shapes=input:0:1x3"}).tool.shapes.at("input:0"), (Dims{1, 3}));
  EXPECT_EQ(accept({"--shapes='input:0':4x10"}).tool.shapes.at("input:0"), (Dims{4, 10}));
  EXPECT_EQ(accept({"--loadInputs='data':C:\\dir\\d.bin"}).tool.load_inputs[0].second, "C:\\dir\\d.bin");
  EXPECT_THAT(refuse({"--shapes='input:1x3"}), HasSubstr("Found invalid number of 's"));
}

TEST(Grammar, ShapesMayBeScalarsAndBlanksMayFollowCommas) {
  const ShapeMap shapes = accept({"--shapes=len:scalar, x:1x128,y:"}).tool.shapes;
  EXPECT_THAT(shapes, ElementsAre(testing::Pair("len", IsEmpty()), testing::Pair("x", ElementsAre(1, 128)),
                                  testing::Pair("y", IsEmpty())));
}

TEST(Grammar, ACaretStandsUnderTheOffendingSize) {
  EXPECT_THAT(refuse({"--shapes=x:1xfour"}), HasSubstr("\n  --shapes=x:1xfour\n               ^"));
}

TEST(Grammar, PoolsTakeBinaryUnits) {
  for (const std::string size : {"1024MiB", "1024", "1024M", "1G", "1048576K", "1073741824B"})
    EXPECT_EQ(accept({"--memPoolSize=workspace:" + size}).build.workspace_bytes, int64_t{1} << 30) << size;
  EXPECT_THAT(refuse({"--memPoolSize=workspace:1X"}), HasSubstr("invalid unit specifier 'X'"));
  EXPECT_THAT(refuse({"--memPoolSize=cache:1"}), HasSubstr("Unknown memory pool: cache"));
  EXPECT_THAT(refuse({"--memPoolSize=workspace:-1"}), HasSubstr("Negative memory pool size"));
}

TEST(Grammar, IoFormatsNameTypeAndLayouts) {
  const auto formats = accept({"--inputIOFormats=fp16:chw+hwc8,int64:chw"}).tool.input_formats;
  ASSERT_EQ(formats.size(), 2u);
  EXPECT_THAT(formats[0].formats, ElementsAre("chw", "hwc8"));
  const auto bound = accept({"--outputIOFormats=fp16:dla_linear+chw2,bool:chw"}).build.output_formats;
  ASSERT_EQ(bound.size(), 2u);
  EXPECT_EQ(bound[0].dtype, DType::f16);
  EXPECT_EQ(bound[0].layout, Layout::blocked2);
  EXPECT_EQ(bound[1].dtype, DType::boolean);
  EXPECT_THAT(refuse({"--inputIOFormats=int4:chw"}), HasSubstr("cannot be int4"));
  EXPECT_THAT(refuse({"--inputIOFormats=chw"}), HasSubstr("Invalid IOFormat chw"));
  EXPECT_THAT(refuse({"--inputIOFormats=fp99:chw"}), HasSubstr("Invalid DataType fp99"));
  EXPECT_THAT(refuse({"--outputIOFormats=fp32:wch"}), HasSubstr("Invalid TensorFormat wch"));
}

TEST(Grammar, SignedListsNeedTheirSigns) {
  EXPECT_THAT(accept({"--tacticSources=-CUDNN,+cublas"}).build.disabled_sources, ElementsAre("onednn", "cudnn"));
  EXPECT_THAT(refuse({"--tacticSources=CUDNN"}), HasSubstr("Tactic source must be prefixed with +"));
  EXPECT_THAT(refuse({"--tacticSources=+MAGIC"}), HasSubstr("Unknown tactic source: MAGIC"));
  EXPECT_THAT(refuse({"--tacticSources=+CUDNN,-CUDNN"}), HasSubstr("Cannot enable and disable CUDNN"));
  EXPECT_THAT(refuse({"--preview=+x"}), HasSubstr("Unknown preview feature: x"));
}

struct Triple {
  std::string min, opt, max;  // typed; empty: not given
  int64_t expected_min, expected_opt, expected_max;
  size_t warnings;
};

TEST(Shapes, MissingMembersOfAProfileAreFilled) {
  const Triple kTriples[] = {{"", "4", "", 4, 4, 4, 2},  {"1", "", "", 1, 1, 1, 2},  {"", "", "8", 8, 8, 8, 2},
                             {"1", "4", "", 1, 4, 4, 1}, {"", "4", "8", 4, 4, 8, 1}, {"1", "", "8", 1, 8, 8, 1},
                             {"1", "4", "8", 1, 4, 8, 0}};
  for (const Triple& triple : kTriples) {
    std::vector<std::string> arguments{"--onnx=m"};
    if (!triple.min.empty()) arguments.push_back("--minShapes=x:" + triple.min);
    if (!triple.opt.empty()) arguments.push_back("--optShapes=x:" + triple.opt);
    if (!triple.max.empty()) arguments.push_back("--maxShapes=x:" + triple.max);
    const CommandLine line = parse(arguments);
    ASSERT_THAT(line.errors, IsEmpty());
    const ShapeRange& range = line.options.build.profiles.at(0).at("x");
    EXPECT_THAT(range.min, ElementsAre(triple.expected_min));
    EXPECT_THAT(range.opt, ElementsAre(triple.expected_opt));
    EXPECT_THAT(range.max, ElementsAre(triple.expected_max));
    EXPECT_EQ(line.warnings.size(), triple.warnings);
    EXPECT_THAT(line.options.tool.shapes.at("x"), ElementsAre(triple.expected_opt));
  }
}

TEST(Shapes, AShapeToRunIsAlsoBuiltWhenNothingElseIsSaid) {
  const Options options = accept({"--shapes=y:2x4", "--optShapes=x:3"});
  EXPECT_THAT(options.build.profiles.at(0).at("y").min, ElementsAre(2, 4));
  EXPECT_THAT(accept({"--shapes=y:2x4"}).build.profiles.at(0).at("y").max, ElementsAre(2, 4));
  EXPECT_TRUE(accept({}).build.profiles.empty());
}

TEST(Shapes, ProfilesTakeTheFlagsBehindThem) {
  const Options options =
      accept({"--profile=1", "--optShapes=x:8", "--profile=0", "--minShapes=x:1", "--optShapes=x:2", "--useProfile=1"});
  ASSERT_EQ(options.build.profiles.size(), 2u);
  EXPECT_THAT(options.build.profiles[0].at("x").max, ElementsAre(2));
  EXPECT_THAT(options.tool.shapes.at("x"), ElementsAre(8));
  EXPECT_THAT(refuse({"--profile=0", "--optShapes=x:2", "--profile=2", "--optShapes=x:3"}),
              HasSubstr("Found invalid or missing shape spec at"));
  EXPECT_THAT(refuse({"--profile=0", "--optShapes=x:2", "--verbose", "--minShapes=x:1"}),
              HasSubstr("without --profile are not allowed"));
}

TEST(Shapes, AreRefusedWhenOutOfOrderOrIncomplete) {
  EXPECT_THAT(refuse({"--minShapes=x:4", "--optShapes=x:4", "--maxShapes=x:1"}), HasSubstr("tensor x"));
  EXPECT_THAT(refuse({"--minShapes=a:1", "--optShapes=a:1,b:1"}), HasSubstr("--minShapes does not name the tensor b"));
}

TEST(Blocks, AreThoseOfTheTranscripts) {
  for (const auto& entry : std::filesystem::directory_iterator(kCli + "blocks")) {
    if (entry.path().extension() != ".args") continue;
    const CommandLine line = parse(lines_of(entry.path()));
    EXPECT_THAT(line.errors, IsEmpty());
    std::filesystem::path expected = entry.path();
    EXPECT_EQ(option_blocks(line.options), lines_of(expected.replace_extension(".expected"))) << entry.path();
  }
}

}  // namespace
}  // namespace hone
