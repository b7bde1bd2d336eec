// SPDX-License-Identifier: Apache-2.0
//
// `hone convert`: a model in another form. ONNX becomes a plan or another ONNX file (outputs marked, shapes inferred, FP16) here; files of
// frameworks are first made ONNX by the Python package, whose converters need the frameworks themselves.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/engine_build.h"
#include "tools/compare/inputs.h"
#include "tools/compare/run_flags.h"
#include "tools/compare/save_face.h"
#include "tools/surgeon/network_view.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFrameworkEndings[] = {".pb",  ".keras", ".h5",  ".hdf5",   ".tflite", ".pt2",
                                                  ".pt",  ".pth",   ".pkl", ".pickle", ".joblib", ".json",
                                                  ".ubj", ".lgb",   ".bst", ".txt"};

const CompanionCommand& command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made{
        "convert",
        "MODEL",
        "Makes a plan, or another ONNX file, of an ONNX model; and ONNX of a framework's file (a SavedModel folder, "
        ".keras, .h5, .tflite, "
        ".pt2, .pkl, ...), which the Python package and the framework read. The output's name says what it becomes, or "
        "--convert-to.",
        {{"--output", Takes::one, "<file>", "what is written: .plan, .engine or .onnx", "-o"},
         {"--convert-to", Takes::one, "<form>",
          "onnx, plan (trt is the same) or onnx-like-network: what engines are built of, to look at"},
         {"--keep-io-types", Takes::nothing, "", "with --fp-to-fp16: inputs and outputs stay in FP32"},
         {"--opset", Takes::one, "<number>", "of a framework's file: the operator set of the ONNX model"},
         {"--outputs", Takes::some, "<tensor...>", "of a frozen graph (.pb)"},
         {"--signature", Takes::one, "<name>", "of a SavedModel (default serving_default)"},
         {"--example", Takes::one, "<file>", "rows (.csv, .pkl) whose columns a pipeline's inputs are like"},
         {"--cpu", Takes::nothing, "", "build the plan for the processor"},
         {"--cuda", Takes::nothing, "", "build the plan for the GPU"}},
        1,
        1,
        true};
    for (const std::vector<CompanionFlag>& more : {model_flags(), engine_flags(), data_flags()})
      for (const CompanionFlag& flag : more)
        if (flag.name != "--save-engine" && flag.name != "--save-inputs" && flag.name != "--data-loader-cmd" &&
            flag.name != "--iterations" && flag.name != "--save-onnx")
          made.flags.push_back(flag);
    made.flags =
        with_accepted(std::move(made.flags), {AcceptedFlags::data, AcceptedFlags::model, AcceptedFlags::network,
                                              AcceptedFlags::builder, AcceptedFlags::tensorflow});
    return made;
  }();
  return kCommand;
}

enum class Form { onnx, plan, network };

const char* word_of(Form form) {
  switch (form) {
    case Form::onnx: return "onnx";
    case Form::plan: return "plan";
    case Form::network: break;
  }
  return "network";
}

Form form_of(const Arguments& arguments, const std::string& output) {
  const std::string asked = arguments.value("--convert-to");
  if (asked == "onnx") return Form::onnx;
  if (asked == "plan" || asked == "trt" || asked == "engine") return Form::plan;
  if (asked == "onnx-like-trt-network" || asked == "onnx-like-network") return Form::network;
  if (!asked.empty())
    throw UsageError(fmt::format("--convert-to {}: there is no such form", asked), "onnx, plan or onnx-like-network");
  const std::string ending = fs::path(output).extension().string();
  if (ending == ".onnx") return Form::onnx;
  if (ending == ".plan" || ending == ".engine" || ending == ".trt") return Form::plan;
  throw UsageError(fmt::format("{} does not say by its name what it shall become", output),
                   "name it .plan or .onnx, or add --convert-to");
}

bool is_framework_file(const std::string& path) {
  if (fs::is_directory(path)) return true;
  const std::string ending = fs::path(path).extension().string();
  return std::ranges::find(kFrameworkEndings, ending) != std::end(kFrameworkEndings);
}

/// What the program exits with; 127: there is none.
int run_python(const std::vector<std::string>& words) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error("python3 cannot be started");
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Beside a build's programs lies the package, which nobody has installed.
void find_package() {
  std::error_code none;
  const fs::path package = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "python";
  if (!fs::exists(package / "hone/convert", none)) return;
  const char* old = std::getenv("PYTHONPATH");
  const std::string path = old == nullptr || *old == 0 ? package.string() : fmt::format("{}:{}", old, package.string());
  setenv("PYTHONPATH", path.c_str(), 1);
}

/// The framework's file as ONNX.
void convert_framework(const Arguments& arguments, const std::string& input, const std::string& output,
                       const Narrator& narrator) {
  find_package();
  const int found = run_python(
      {"python3", "-c",
       "import importlib.util, sys\ntry:\n  sys.exit(0 if importlib.util.find_spec('hone.convert') else 86)\n"
       "except ImportError as error:\n  print(error, file=sys.stderr)\n  sys.exit(86)"});
  if (found == 127)
    throw StatusError(
        ExitStatus::no_backend, fmt::format("{} is a framework's file, and there is no python3 to read it", input),
        "install Python, the framework and the package hone; or export the model to ONNX where it was made");
  if (found != 0)
    throw StatusError(
        ExitStatus::no_backend,
        fmt::format("{} is a framework's file, and Python lacks the package hone with its converters", input),
        "install the wheel of hone into this Python; or export the model to ONNX where it was made");
  std::vector<std::string> words{"python3", "-m", "hone.convert", input, "-o", output};
  for (const char* flag : {"--opset", "--input-shapes", "--outputs", "--signature", "--example"}) {
    if (!arguments.has(flag)) continue;
    words.emplace_back(flag);
    for (std::string& value : arguments.values(flag)) words.push_back(std::move(value));
  }
  narrator.info("Starting {}", join(words, " "));
  const int status = run_python(words);
  if (status == 0 && fs::exists(output)) return;
  const auto known = status >= 1 && status <= 4 ? static_cast<ExitStatus>(status) : ExitStatus::failed;
  throw StatusError(known, fmt::format("{} could not be made ONNX", input), "python3 -m hone.convert says above why");
}

/// A program over TensorRT's Python interface, as hone template writes it: it takes the plan's name.
ExitStatus run_network_script(const std::string& script, const std::string& output, const Narrator& narrator) {
  narrator.info("Starting hone trt-env -- python3 {} {}", script, output);
  std::error_code none;
  const int status =
      run_python({fs::read_symlink("/proc/self/exe", none).string(), "trt-env", "--", "python3", script, output});
  if (status == 0 && fs::exists(output)) return ExitStatus::passed;
  if (status == 0)
    throw Error(fmt::format("{} ran and wrote no {}", script, output),
                "hone template trt-network writes a script that takes the plan's name as its argument");
  throw StatusError(status == 127 ? ExitStatus::no_backend : ExitStatus::failed, fmt::format("{} failed", script),
                    "what it says is above");
}

/// A file that goes when this does.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() {
    std::error_code none;
    if (!path.empty()) fs::remove(path, none);
  }
};

void write_plan(const Arguments& arguments, const ModelFace& face, const std::string& output,
                const Narrator& narrator) {
  EngineRequest request = engine_request(arguments, narrator);
  request.device = arguments.has("--cpu") ? "cpu" : arguments.has("--cuda") ? "cuda:0" : best_device();
  request.save_engine = output;
  std::vector<TensorList> samples;
  const InputRequest inputs = input_request(arguments);
  if (arguments.has("--load-inputs")) samples = load_inputs(arguments.values("--load-inputs"), face.inputs);
  else samples.push_back(draw_inputs(resolved_inputs(face, inputs, narrator), inputs, 0, narrator, false));
  const auto device = open_device_named(request.device);
  build_plan(face, request, *device, samples, narrator);
}

ExitStatus convert(const Arguments& arguments) {
  const Narrator narrator(arguments);
  refuse_python(arguments);
  if (!arguments.has("--output")) throw UsageError("no file to write is given", "-o model.plan or -o model.onnx");
  const std::string output = arguments.value("--output");
  const Form form = form_of(arguments, output);
  std::string input = arguments.file();
  need_file(input);
  if (fs::exists(output) && fs::equivalent(input, output))
    throw UsageError(fmt::format("{} would overwrite what it is made of", output), "name another file");
  if (input.ends_with(".py") && form == Form::plan) return run_network_script(input, output, narrator);
  TemporaryFile made;
  if (is_framework_file(input)) {
    const bool last = form == Form::onnx && !arguments.has("--fp-to-fp16") && !output_marks(arguments).any();
    if (!last) made.path = fmt::format("{}.{}.onnx", output, getpid());
    convert_framework(arguments, input, last ? output : made.path, narrator);
    if (last) return ExitStatus::passed;
    input = made.path;
  } else if (!is_onnx_file(input)) {
    throw StatusError(ExitStatus::no_file,
                      fmt::format("{} is no ONNX model and no framework's file that is known", input),
                      "plans cannot be converted; give the model that the plan was made of");
  }
  const ModelFace face = face_of(arguments, input, narrator);
  if (form == Form::onnx) {
    narrator.info("Saving ONNX model to: {}", output);
    save_face(arguments, face, output);
  } else if (form == Form::network) {
    narrator.info("Saving the network to: {}", output);
    save_network_view(face.bytes, face.folder, output, narrator.engine_log());
  } else {
    write_plan(arguments, face, output, narrator);
  }
  write_json_result(arguments, Json{{"written", output}, {"form", word_of(form)}}.dump());
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_convert() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_convert(Words words) { return run_companion(command(), words, convert); }

}  // namespace hone
