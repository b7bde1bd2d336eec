// SPDX-License-Identifier: Apache-2.0
//
// `hone process`: trtexec twice, once to build and once to profile, and all the files that explorers read beside the engine, called as
// TREx calls them. Nothing else is started: both run here, with their logs in files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "explore/drawing.h"
#include "options/parse.h"
#include "tools/commands/commands.h"
#include "tools/companion/narrator.h"
#include "tools/trex/archive.h"
#include "tools/trex/log_metadata.h"
#include "tools/trtexec/trtexec.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      .name = "process",
      .takes = "MODEL.onnx | ENGINE OUTDIR [FLAG...]",
      .purpose =
          "Builds an engine, profiles it and draws it. OUTDIR gets MODEL.onnx.engine and, named after it, .build.log, "
          ".build.metadata.json, .graph.json, .profile.log, .profile.json, .profile.metadata.json, .timing.json and "
          ".graph.json.svg; hone report OUTDIR/*.graph.json makes a page of them. Flags of trtexec may leave their "
          "dashes: fp16 shapes=x:1x3x224x224.",
      .flags = {{"--build-engine", Takes::nothing, "", "build; of -b, -p and -d what is given is done, else all", "-b"},
                {"--profile-engine", Takes::nothing, "", "profile", "-p"},
                {"--draw-engine", Takes::nothing, "", "draw", "-d"},
                {"--print-only", Takes::nothing, "", "print the two command lines of trtexec and do nothing"},
                {"--archive", Takes::nothing, "", "put all files into MODEL.onnx.engine.tea, too, a zip archive"},
                {"--dev", Takes::one, "<N>", "the GPU, as --device"},
                {"--memory-clk-freq", Takes::one, "<MHz>",
                 "accepted: clocks stay as they are, as in TREx's last release"},
                {"--compute-clk-freq", Takes::one, "<MHz>", "accepted"},
                {"--power-limit", Takes::one, "<W>", "accepted"},
                {"--dont-lock-clocks", Takes::nothing, "", "accepted"},
                {"--monitor", Takes::nothing, "", "accepted; the profile's log says how steady the machine was"}},
      .least_files = 2,
      .most_files = 1000,
      .trtexec_flags = true};
  return kCommand;
}

/// Standard output and error go to a file while it lives.
class LogFile {
 public:
  explicit LogFile(const std::string& path) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) throw Error(fmt::format("{} cannot be written", path), "choose another folder");
    std::fflush(stdout);
    out_ = dup(STDOUT_FILENO), err_ = dup(STDERR_FILENO);
    dup2(file, STDOUT_FILENO), dup2(file, STDERR_FILENO);
    close(file);
  }
  ~LogFile() {
    std::fflush(stdout);
    dup2(out_, STDOUT_FILENO), dup2(err_, STDERR_FILENO);
    close(out_), close(err_);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

 private:
  int out_ = -1, err_ = -1;
};

/// What is asked for, and what the files are called.
class Process {
 public:
  Process(const Arguments& arguments, const Narrator& narrator) : narrator_(narrator), model_(arguments.file()) {
    const fs::path folder = arguments.files()[1];
    is_model_ = model_.ends_with(".onnx");
    const std::string name = fs::path(model_).filename();
    stem_ = (folder / (is_model_ ? name + ".engine" : name)).string();
    cache_ = (folder / "timing.cache").string();
    for (size_t i = 2; i < arguments.files().size(); ++i) given_.push_back("--" + arguments.files()[i]);
    given_.insert(given_.end(), arguments.trtexec_flags().begin(), arguments.trtexec_flags().end());
    if (arguments.has("--dev")) given_.push_back("--device=" + arguments.value("--dev"));
  }

  bool is_model() const { return is_model_; }
  std::vector<std::string> build_words() const {
    return with_given({"--verbose", "--onnx=" + model_, "--saveEngine=" + stem_,
                       "--exportLayerInfo=" + stem_ + ".graph.json", "--timingCacheFile=" + cache_,
                       "--profilingVerbosity=detailed", "--skipInference"});
  }
  std::vector<std::string> profile_words() const {
    return with_given({"--verbose", "--noDataTransfers", "--useCudaGraph", "--separateProfileRun", "--useSpinWait",
                       "--loadEngine=" + (is_model_ ? stem_ : model_), "--exportTimes=" + stem_ + ".timing.json",
                       "--exportProfile=" + stem_ + ".profile.json", "--exportLayerInfo=" + stem_ + ".graph.json",
                       "--timingCacheFile=" + cache_, "--profilingVerbosity=detailed"});
  }
  void build() {
    narrator_.info("Building the engine: {}", stem_);
    const std::string log = run(build_words(), stem_ + ".build.log");
    if (fs::exists(stem_)) files_.push_back(stem_);
    keep(".build.metadata.json", build_metadata(log));
    add(".graph.json");
  }
  void profile() {
    narrator_.info("Profiling the engine: {}", is_model_ ? stem_ : model_);
    const std::string log = run(profile_words(), stem_ + ".profile.log");
    keep(".profile.metadata.json", profile_metadata(log));
    for (const char* ending : {".graph.json", ".profile.json", ".timing.json"}) add(ending);
  }
  void draw() {
    const std::string graph = stem_ + ".graph.json", profile = stem_ + ".profile.json";
    const EngineRows engine =
        read_engine(fs::path(stem_).filename(), read_file(graph), fs::exists(profile) ? read_file(profile) : "", {});
    keep(".graph.json.svg", drawing_svg(draw_engine(engine, {}), engine.title));
  }
  void archive() { write_archive(stem_ + ".tea", files_); }

 private:
  std::vector<std::string> with_given(std::vector<std::string> words) const {
    words.insert(words.end(), given_.begin(), given_.end());
    return words;
  }
  /// What trtexec said.
  std::string run(const std::vector<std::string>& words, const std::string& log) {
    int status = 1;
    {
      const LogFile file(log);
      status = run_trtexec(words, "trtexec " + join(words, " "));
    }
    files_.push_back(log);
    std::string text = read_file(log);
    if (status != 0) throw Error(first_error(text), fmt::format("all that was said stands in {}", log));
    return text;
  }
  static std::string first_error(const std::string& log) {
    for (const std::string_view line : split(log, '\n'))
      if (const size_t at = line.find("] [E] "); at != std::string_view::npos) return std::string(line.substr(at + 6));
    return "trtexec failed";
  }
  void add(const char* ending) {
    const std::string file = stem_ + ending;
    if (std::ranges::find(files_, file) == files_.end() && fs::exists(file)) files_.push_back(file);
  }
  void keep(const char* ending, const std::string& text) {
    write_file(stem_ + ending, text);
    add(ending);
  }

  const Narrator& narrator_;
  std::string model_, stem_, cache_;
  bool is_model_ = true;
  std::vector<std::string> given_, files_;
};

/// Before any file is written.
void check_words(const std::vector<std::string>& words) {
  const CommandLine line = parse_command_line(words);
  if (!line.errors.empty()) throw UsageError(line.errors.front(), "flags are those of trtexec, with or without dashes");
}

ExitStatus process(const Arguments& arguments) {
  const Narrator narrator(arguments);
  Process work(arguments, narrator);
  const bool some =
      arguments.has("--build-engine") || arguments.has("--profile-engine") || arguments.has("--draw-engine");
  const auto wanted = [&](std::string_view flag) { return !some || arguments.has(flag); };
  const bool build = wanted("--build-engine") && work.is_model(), profile = wanted("--profile-engine");
  if (build) check_words(work.build_words());
  if (profile) check_words(work.profile_words());
  if (arguments.has("--print-only")) {
    if (build) fmt::print("trtexec {}\n", join(work.build_words(), " "));
    if (profile) fmt::print("trtexec {}\n", join(work.profile_words(), " "));
    return ExitStatus::passed;
  }
  need_file(arguments.file());
  fs::create_directories(arguments.files()[1]);
  if (build) work.build();
  if (profile) work.profile();
  if (wanted("--draw-engine")) work.draw();
  if (arguments.has("--archive")) work.archive();
  narrator.info("Artefacts are in {}", arguments.files()[1]);
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_process() { return friendly<command>(); }

int run_process(Words words) { return run_companion(command(), words, process); }

}  // namespace hone
