// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/python_patterns.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/file.h"
#include "tools/common/python.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

/// Its arguments: the script, the model, where the answer goes, and to replace the plugin and where the new model goes.
constexpr const char* kProgram = R"PY(
import importlib, importlib.util, json, re, sys, types
try:
    import onnx_graphsurgeon as gs
    import onnx
except ImportError:
    import hone.graph as gs
    sys.modules["onnx_graphsurgeon"], onnx = gs, None
try:
    import polygraphy.mod
except ImportError:
    mod, package = types.ModuleType("polygraphy.mod"), types.ModuleType("polygraphy")
    mod.lazy_import = lambda name, *rest, **more: importlib.import_module(re.split("[<>=!~]", name)[0])
    package.mod = mod
    sys.modules.update({"polygraphy": package, "polygraphy.mod": mod})
script, model, answer = sys.argv[1:4]
spec = importlib.util.spec_from_file_location("pattern", script)
pattern = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pattern)
def graph():
    return gs.import_onnx(onnx.load(model) if onnx else model)
if len(sys.argv) == 4:
    told = {**pattern.get_plugin_metadata(), "instances": pattern.get_matching_subgraphs(graph()) or []}
elif not hasattr(pattern, "replace_with_plugin"):
    told = {}
else:
    changed, plugin = graph(), json.load(open(sys.argv[4]))
    tensors, count = changed.tensors(), 0
    for instance in plugin["instances"]:
        ends = [[tensors[name] for name in instance[side]] for side in ("inputs", "outputs")]
        count += bool(pattern.replace_with_plugin(graph=changed, input_tensors=ends[0], output_tensors=ends[1],
                                                  attrs=instance.get("attributes"), op=plugin["op"]))
    if onnx: onnx.save(gs.export_onnx(changed), sys.argv[5])
    else: gs.save(changed, sys.argv[5])
    told = {"count": count}
json.dump(told, open(answer, "w"), default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))
)PY";

Json answer_of(const std::string& script, std::vector<std::string> arguments, const ScratchFolder& scratch) {
  const std::string answer = scratch.file("answer.json");
  arguments.insert(arguments.begin() + 2, answer);
  const std::string command = python_command(kProgram, arguments) + " >&2";  // what the script prints is no result
  if (std::system(command.c_str()) != 0)                                     // NOLINT(concurrency-mt-unsafe)
    throw StatusError(
        ExitStatus::no_file, fmt::format("{} failed, as said above", script),
        "it needs python3 on the PATH with onnx and onnx_graphsurgeon, or with hone; or write it as pattern.json");
  return parse_json(read_file(answer), script);
}

}  // namespace

Json python_matches(const std::string& script, const std::string& model) {
  const ScratchFolder scratch;
  return answer_of(script, {script, model}, scratch);
}

std::optional<size_t> python_replaces(const std::string& script, const std::string& model, const Json& plugin,
                                      const std::string& result) {
  const ScratchFolder scratch;
  const std::string wanted = scratch.file("plugin.json");
  write_file(wanted, plugin.dump());
  const Json answer = answer_of(script, {script, model, wanted, result}, scratch);
  if (!answer.contains("count")) return std::nullopt;
  return static_cast<size_t>(integer_member(answer, "count"));
}

}  // namespace hone
