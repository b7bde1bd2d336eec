// SPDX-License-Identifier: Apache-2.0
//
// `hone check`: whether an engine gives the same results however programs run it. The first inferences' outputs can be written,
// for another program to hold against a reference.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "options/grammar.h"
#include "report/tensors.h"
#include "tensor/layout.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/inference.h"
#include "tools/common/input_data.h"
#include "tools/common/terminal.h"
#include "tools/files/npy.h"

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

/// A set of values for all inputs at these shapes.
struct ValueSet {
  int shapes, set;
  const NamedTexts& files;
  uint64_t seed;
};

/// Shapes of all inputs, in the engine's order.
Dims dims_at(const NetworkTensor& input, const InputShapes& shapes) {
  const auto found = shapes.find(input.name);
  return found == shapes.end() ? input.dims : found->second;
}

void give(hone_check* to, const Session& session, const InputShapes& shapes, const ValueSet& values) {
  check_input_files(values.files, session.tensors());
  for (const NetworkTensor& io : session.tensors()) {
    if (!io.is_input || io.by_value) continue;
    const Dims dims = dims_at(io, shapes);
    AlignedBuffer bound(static_cast<size_t>(byte_size(io.dtype, dims, io.layout)));
    AlignedBuffer linear(static_cast<size_t>(byte_size(io.dtype, dims)));
    const std::span<std::byte> memory(bound.data(), bound.size());
    if (const std::string* file = input_file(values.files, io.name)) load_values(*file, io, dims, memory);
    else fill_random(io.random_input(), dims, memory, values.seed);
    convert_layout(bound.data(), linear.data(), io.dtype, dims, io.layout, Layout::linear);
    const auto value = make<hone_value>(hone_value_create_tensor, static_cast<hone_dtype>(io.dtype), dims.data(),
                                        static_cast<int>(dims.size()), linear.data());
    check(hone_check_set_input(to, values.shapes, values.set, io.name.c_str(), value.get()));
  }
}

/// The smallest and the largest shapes of the profile, where they are not those that run.
std::vector<InputShapes> other_shapes(const Session& session, const InputShapes& shapes) {
  std::vector<InputShapes> others;
  for (const auto end : {&InputRange::min, &InputRange::max}) {
    InputShapes other = shapes;
    for (const InputRange& range : session.profiles()[static_cast<size_t>(session.profile())].ranges)
      if (other.contains(range.input)) other[range.input] = range.*end;
    if (other != shapes) others.push_back(std::move(other));
  }
  return others;
}

void write_outputs(const hone_check* checked, const Session& session, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> outputs;
  for (const NetworkTensor& io : session.tensors())
    if (!io.is_input && io.ranked && !is_object(io.dtype)) outputs.push_back(io.name);
  std::ranges::sort(outputs);
  FileNames files;
  for (int set = 0; set < 2; ++set)
    for (const std::string& name : outputs) {
      const auto value = make<hone_value>(hone_value_create_from_check, checked, set, name.c_str());
      const Tensor tensor = tensor_of(value.get());
      const std::string file = files.take((set == 0 ? "first." : "second.") + name, ".npy");
      export_text((std::filesystem::path(folder) / file).string(),
                  npy_text(tensor.dtype(), tensor.dims(), tensor.bytes()));
    }
}

using Situations = std::vector<hone_situation>;

Situations situations_of(const hone_check* checked) {
  Situations situations;
  for (size_t i = 0; i < hone_check_situations(checked); ++i)
    situations.push_back(ask<hone_situation>(hone_check_situation, checked, i));
  return situations;
}

bool all_same(const Situations& situations) {
  return std::ranges::all_of(situations, [](const hone_situation& each) { return each.different == 0; });
}

void print(const Situations& situations, const std::string& file) {
  const Page page;
  page.title(file);
  for (const hone_situation& situation : situations) {
    if (situation.different == 0) {
      page.line(fmt::format("  {:<30}{} inferences, all the same", situation.name, situation.inferences));
      continue;
    }
    page.warning(fmt::format("  {:<30}{} of {} inferences differ, by {:.2g} in {}", situation.name, situation.different,
                             situation.inferences, situation.largest, situation.tensor));
  }
}

Json to_json(const Situations& situations, const std::string& file) {
  Json list = Json::array();
  for (const hone_situation& situation : situations)
    list.push_back({{"name", situation.name},
                    {"inferences", situation.inferences},
                    {"different", situation.different},
                    {"largest", std::isfinite(situation.largest) ? Json(situation.largest) : Json("inf")},
                    {"tensor", situation.tensor}});
  return {{"file", file}, {"same", all_same(situations)}, {"situations", list}};
}

int check_engine(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const auto count = line.has("-n") ? parse_integer(line.value("-n")) : std::optional<int64_t>(kInferences);
  if (!count || *count < 2 || *count > 1'000'000)
    throw Error(fmt::format("-n takes a count from 2 on, not '{}'", line.value("-n")), "for example -n 100");
  const NamedTexts second = line.has("-j") ? read_named({.flag = "-j", .value = line.value("-j")}) : NamedTexts();
  Session session(line.options, make_device(line.options.tool.device), voices);
  if (line.options.tool.load_engine.empty()) session.build();
  session.load();
  const auto checked = make<hone_check>(hone_check_create, session.engine(), session.profile());
  std::vector<InputShapes> shapes{session.run_shapes()};
  std::ranges::copy(other_shapes(session, shapes[0]), std::back_inserter(shapes));
  const NamedTexts none;
  for (int at = 0; const InputShapes& each : shapes) {
    give(checked.get(), session, each, {at, 0, at == 0 ? line.options.tool.load_inputs : none, kRandomSeed});
    give(checked.get(), session, each, {at, 1, at == 0 ? second : none, kRandomSeed + 1});
    ++at;
  }
  check(hone_check_run(checked.get(), static_cast<int>(*count)));
  const Situations situations = situations_of(checked.get());
  if (line.has("-o")) write_outputs(checked.get(), session, line.value("-o"));
  if (line.json) fmt::print("{}\n", to_json(situations, line.file).dump(2, ' ', false, Json::error_handler_t::replace));
  else print(situations, line.file);
  return all_same(situations) ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_check() { return command(); }

int run_check(Words words) { return run_friendly(command(), words, {}, check_engine); }

}  // namespace hone
