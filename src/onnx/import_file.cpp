// SPDX-License-Identifier: Apache-2.0
//
// A model of a file or of memory: imported, with what the parser says of the file, or diagnosed.
#include "onnx/diagnosis/diagnosis.h"
#include "onnx/fixed_sizes.h"
#include "onnx/folded_nodes.h"
#include "onnx/summary.h"
#include "onnx/walk.h"

namespace hone {
namespace onnx {
namespace {

ImportedModel import_from(Bytes bytes, std::shared_ptr<const void> owner, const Logger& log,
                          const std::string& directory, const std::string& name, const OperatorList& operators,
                          WeightPlaces places = WeightPlaces::aligned,
                          std::shared_ptr<const MappedFile> file = nullptr) {
  const ModelProto model = parse_model(bytes);
  OnnxSummary summary = summarize(model);
  print_summary(name, summary, log);
  ModelData data(std::move(owner), directory, places, std::move(file));
  const Rules rules(model, operators);
  Importer importer(model, data, log, rules);
  Graph graph = importer.run();
  for (SymbolValues fixed = fixed_sizes(graph); !fixed.empty(); fixed = fixed_sizes(graph))
    graph = graph.specialize(fixed);
  std::vector<std::string> live = live_names(*model.graph);  // run() refuses a model without graph
  std::vector<std::string> folded = folded_nodes(live, graph);
  std::vector<std::string> consumed = consumed_weights(*model.graph, graph);
  return {std::move(graph), std::move(summary), importer.take_nodes(),
          std::move(live),  std::move(folded),  std::move(consumed)};
}

Diagnosis diagnose_from(Bytes bytes, std::shared_ptr<const void> owner, const std::string& directory,
                        const OperatorList& operators) {
  const ModelProto none;
  const Rules no_rules(none, {});
  Diagnoser early(none, no_rules);  // of what keeps a model from being walked over
  std::optional<ModelProto> model;
  std::optional<Rules> rules;
  if (!early.attempt(ProblemKind::file, {}, [&] { model = parse_model(bytes); })) return early.take();
  if (!early.attempt(ProblemKind::graph, {}, [&] { rules.emplace(*model, operators); })) return early.take();
  Diagnoser diagnoser(*model, *rules);
  ModelData data(std::move(owner), directory);
  Importer(*model, data, silent_logger(), *rules, &diagnoser).run();
  return diagnoser.take();
}

}  // namespace
}  // namespace onnx

ImportedModel import_onnx(const std::string& path, const Logger& log, const OperatorList& operators) {
  return with_note([&] { return fmt::format("importing {}", path); },
                   [&] {
                     const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
                     const size_t slash = path.rfind('/');
                     return onnx::import_from(file->bytes(), file, log,
                                              slash == std::string::npos ? "." : path.substr(0, slash + 1), path,
                                              operators, WeightPlaces::aligned, file);
                   });
}

ImportedModel import_onnx_bytes(const Blob& bytes, const Logger& log, const std::string& directory,
                                const OperatorList& operators, WeightPlaces places) {
  return onnx::import_from(bytes.bytes(), std::make_shared<const Blob>(bytes), log, directory, "(memory)", operators,
                           places);
}

Diagnosis diagnose_onnx(const std::string& path, const OperatorList& operators) {
  return with_note([&] { return fmt::format("diagnosing {}", path); },
                   [&] {
                     const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
                     const size_t slash = path.rfind('/');
                     return onnx::diagnose_from(
                         file->bytes(), file, slash == std::string::npos ? "." : path.substr(0, slash + 1), operators);
                   });
}

Diagnosis diagnose_onnx_bytes(const Blob& bytes, const std::string& directory, const OperatorList& operators) {
  return onnx::diagnose_from(bytes.bytes(), std::make_shared<const Blob>(bytes), directory, operators);
}

}  // namespace hone
