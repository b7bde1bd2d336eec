// SPDX-License-Identifier: Apache-2.0
//
// `hone check`: whether an engine gives the same results however programs run it. The first inferences' outputs can be written,
// for another program to hold against a reference.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "options/grammar.h"
#include "perf/consistency.h"
#include "perf/random_input.h"
#include "report/tensors.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/inference.h"
#include "tools/common/input_data.h"
#include "tools/common/npy.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kInferences = 100;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "check",
      "PLAN | MODEL.onnx",
      "Runs an engine as programs do - again and again, on other values, on memory that held something else, with "
      "other "
      "bindings, in two contexts at once, between other shapes - and holds every result against the first one on the "
      "same "
      "values. Exit status 1 where one differs.",
      {{"-s", "<shapes>", "--shapes", "input shapes, name:1x3x224x224[,...]"},
       {"-i", "<name:file[,...]>", "--loadInputs", "input values: raw, .npy or .npz; other inputs get random values"},
       {"-j", "<name:file[,...]>", "", "values of the second set of inputs, which takes turns with the first"},
       {"-n", "<count>", "", "inferences of a kind (default 100; a tenth of that where many run at once)"},
       {"-o", "<folder>", "",
        "write the outputs of the first inferences there as first.NAME.npy and second.NAME.npy"}}};
  return kCommand;
}

/// Host memory for all inputs at these shapes, filled.
std::map<std::string, Buffer> fill_set(const Session& session, ExecutionContext& context, const NamedTexts& files,
                                       uint64_t seed) {
  check_input_files(files, session.plan());
  std::map<std::string, Buffer> values;
  for (const IoTensor& io : session.plan().io) {
    if (!io.is_input || session.engine()->by_value(io.name)) continue;
    const auto bytes = static_cast<size_t>(context.bytes(io.name));
    Buffer buffer(session.device(), std::max<size_t>(bytes, 1), MemoryKind::host);
    const std::span<std::byte> memory(static_cast<std::byte*>(buffer.data()), bytes);
    if (const std::string* file = input_file(files, io.name)) load_values(*file, io, context.shape(io.name), memory);
    else fill_random(io, context.shape(io.name), memory, seed);
    values.emplace(io.name, std::move(buffer));
  }
  return values;
}

NetworkInputs inputs_at(const Session& session, const InputShapes& shapes, const NamedTexts& first,
                        const NamedTexts& second) {
  const std::unique_ptr<ExecutionContext> context = session.engine()->context(session.profile());
  for (const auto& [name, dims] : shapes) context->set_shape(name, dims);
  NetworkInputs inputs{.shapes = shapes, .sets = {}};
  inputs.sets.push_back(fill_set(session, *context, first, kRandomSeed));
  inputs.sets.push_back(fill_set(session, *context, second, kRandomSeed + 1));
  return inputs;
}

/// The smallest and the largest shapes of the profile, where they are not those that run.
std::vector<InputShapes> other_shapes(const Session& session, const InputShapes& shapes) {
  std::vector<InputShapes> others;
  for (const auto end : {&ProfileRange::min, &ProfileRange::max}) {
    InputShapes other = shapes;
    for (const ProfileRange& range : session.plan().profiles[static_cast<size_t>(session.profile())].ranges)
      if (other.contains(range.tensor)) other[range.tensor] = range.*end;
    if (other != shapes) others.push_back(std::move(other));
  }
  return others;
}

void write_outputs(const Consistency& result, const std::string& folder) {
  std::filesystem::create_directories(folder);
  FileNames files;
  for (size_t set = 0; set < result.first.size(); ++set)
    for (const auto& [name, tensor] : result.first[set])
      export_text(
          (std::filesystem::path(folder) / files.take((set == 0 ? "first." : "second.") + name, ".npy")).string(),
          npy_text(tensor.dtype(), tensor.dims(), tensor.bytes()));
}

void print(const Consistency& result, const std::string& file) {
  const Page page;
  page.title(file);
  for (const Situation& situation : result.situations) {
    if (situation.different == 0) {
      page.line(fmt::format("  {:<30}{} inferences, all the same", situation.name, situation.inferences));
      continue;
    }
    page.warning(fmt::format("  {:<30}{} of {} inferences differ, by {:.2g} in {}", situation.name, situation.different,
                             situation.inferences, situation.largest, situation.tensor));
  }
}

Json to_json(const Consistency& result, const std::string& file) {
  Json situations = Json::array();
  for (const Situation& situation : result.situations)
    situations.push_back({{"name", situation.name},
                          {"inferences", situation.inferences},
                          {"different", situation.different},
                          {"largest", std::isfinite(situation.largest) ? Json(situation.largest) : Json("inf")},
                          {"tensor", situation.tensor}});
  return {{"file", file}, {"same", result.good()}, {"situations", situations}};
}

int check(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const auto count = line.has("-n") ? parse_integer(line.value("-n")) : std::optional<int64_t>(kInferences);
  if (!count || *count < 2 || *count > 1'000'000)
    throw Error(fmt::format("-n takes a count from 2 on, not '{}'", line.value("-n")), "for example -n 100");
  const NamedTexts second = line.has("-j") ? read_named({.flag = "-j", .value = line.value("-j")}) : NamedTexts();
  Session session(line.options, open_device(line.options.tool.device), voices);
  if (line.options.tool.load_engine.empty()) session.build();
  session.load();
  const InputShapes shapes = session.run_shapes();
  std::vector<NetworkInputs> inputs;
  inputs.push_back(inputs_at(session, shapes, line.options.tool.load_inputs, second));
  for (const InputShapes& other : other_shapes(session, shapes)) inputs.push_back(inputs_at(session, other, {}, {}));
  const Consistency result = check_consistency(session.engine(), session.profile(), inputs, static_cast<int>(*count));
  if (line.has("-o")) write_outputs(result, line.value("-o"));
  if (line.json) fmt::print("{}\n", to_json(result, line.file).dump(2, ' ', false, Json::error_handler_t::replace));
  else print(result, line.file);
  return result.good() ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_check() { return command(); }

int run_check(Words words) { return run_friendly(command(), words, {}, check); }

}  // namespace hone
