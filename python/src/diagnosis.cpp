// SPDX-License-Identifier: Apache-2.0
//
// Diagnoses of models: everything at once, as tuples.
#include "binding.h"

namespace hone::python {
namespace {

using Entry = std::tuple<int, int, int64_t, nb::object, nb::object, nb::object, nb::object, nb::object>;
using Node = std::tuple<nb::object, nb::object, nb::object, bool>;
using Told = std::tuple<std::vector<Entry>, std::vector<Node>, std::vector<std::vector<size_t>>>;

Told told(const Handle<hone_diagnosis>& diagnosis) {
  Told all;
  auto& [entries, nodes, runs] = all;
  for (size_t i = 0; i < hone_diagnosis_entries(diagnosis.get()); ++i) {
    auto raw = sized<hone_diagnostic>();
    check(hone_diagnosis_entry(diagnosis.get(), i, &raw));
    entries.emplace_back(raw.severity, raw.problem, raw.node, text(raw.name), text(raw.op), text(raw.domain),
                         text(raw.text), text(raw.hint));
  }
  for (size_t i = 0; i < hone_diagnosis_nodes(diagnosis.get()); ++i) {
    auto raw = sized<hone_diagnosed_node>();
    check(hone_diagnosis_node(diagnosis.get(), i, &raw));
    nodes.emplace_back(text(raw.name), text(raw.op), text(raw.domain), raw.supported != 0);
  }
  for (size_t i = 0; i < hone_diagnosis_runs(diagnosis.get()); ++i) {
    const size_t* members = nullptr;
    size_t count = 0;
    check(hone_diagnosis_run(diagnosis.get(), i, &members, &count));
    runs.emplace_back(members, members + count);
  }
  return all;
}

}  // namespace

void add_diagnosis(nb::module_& module) {
  using Diagnosis = Handle<hone_diagnosis>;
  module.def(
      "diagnose_file",
      [](const std::string& path) { return told(Diagnosis::make(hone_diagnosis_create_from_file, path.c_str())); },
      "Entries, nodes and runs of a file.");
  module.def(
      "diagnose_bytes",
      [](nb::bytes bytes, const std::optional<std::string>& folder) {
        return told(Diagnosis::make(hone_diagnosis_create_from_memory, bytes.data(), bytes.size(),
                                    folder ? folder->c_str() : nullptr));
      },
      nb::arg(), nb::arg().none(), "The same of the bytes of a file.");
}

}  // namespace hone::python
