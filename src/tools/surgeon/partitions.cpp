// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "edit/changes/pieces.h"
#include "edit/file.h"
#include "hone/diagnosis.h"
#include "tensor/json.h"
#include "tools/common/api.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct Diagnostic {
  hone_severity severity = HONE_LOG_ERROR;
  hone_problem problem = HONE_PROBLEM_GRAPH;
  int64_t node = -1;
  std::string name, op, domain, text, hint;
};

struct DiagnosedNode {
  std::string name;
  bool supported = false;
};

struct DestroyDiagnosis {
  void operator()(hone_diagnosis* diagnosis) const { hone_diagnosis_destroy(diagnosis); }
};

class Diagnosis {
 public:
  explicit Diagnosis(const std::string& path) {
    hone_diagnosis* made = nullptr;
    check(hone_diagnosis_create_from_file(path.c_str(), &made));
    diagnosis_.reset(made);
  }
  std::vector<Diagnostic> entries() const {
    std::vector<Diagnostic> list;
    for (size_t i = 0; i < hone_diagnosis_entries(diagnosis_.get()); ++i) {
      const auto raw = ask<hone_diagnostic>(hone_diagnosis_entry, diagnosis_.get(), i);
      list.push_back({raw.severity, raw.problem, raw.node, raw.name, raw.op, raw.domain, raw.text, raw.hint});
    }
    return list;
  }
  std::vector<DiagnosedNode> nodes() const {
    std::vector<DiagnosedNode> list;
    for (size_t i = 0; i < hone_diagnosis_nodes(diagnosis_.get()); ++i) {
      const auto raw = ask<hone_diagnosed_node>(hone_diagnosis_node, diagnosis_.get(), i);
      list.push_back({raw.name, raw.supported != 0});
    }
    return list;
  }

 private:
  std::unique_ptr<hone_diagnosis, DestroyDiagnosis> diagnosis_;
};

std::string operator_of(const Diagnostic& entry) {
  return entry.domain.empty() ? entry.op : entry.domain + "." + entry.op;
}

std::string reason_of(const Diagnostic& entry) {
  return entry.hint.empty() ? entry.text : fmt::format("{} ({})", entry.text, entry.hint);
}

/// Rows of columns, a line of '-' below the first.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = "===== Summary =====\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i)
      line += fmt::format("{}{:<{}}", i == 0 ? "" : " | ", rows[r][i], i + 1 < rows[r].size() ? widths[i] : 0);
    text += line + "\n";
    if (r == 0) text += std::string(line.size(), '-') + "\n";
  }
  return text;
}

/// Each refused node with the way to it: nodes inside of functions and bodies behind those that hold them.
std::vector<std::vector<std::string>> rows_by_node(const std::vector<Diagnostic>& refused,
                                                   const std::vector<DiagnosedNode>& nodes) {
  std::vector<std::vector<std::string>> rows{{"Stack trace", "Operator", "Node", "Reason"}};
  for (const Diagnostic& entry : refused) {
    const bool inside = entry.node >= 0 && nodes[static_cast<size_t>(entry.node)].name != entry.name;
    rows.push_back(
        {inside ? nodes[static_cast<size_t>(entry.node)].name : "", operator_of(entry), entry.name, reason_of(entry)});
  }
  return rows;
}

/// Refused nodes of one operator for one reason are one row.
std::vector<std::vector<std::string>> rows_by_operator(const std::vector<Diagnostic>& refused,
                                                       const std::vector<size_t>& place) {
  std::vector<std::vector<std::string>> rows{{"Operator", "Count", "Reason", "Nodes"}};
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<size_t>>> groups;
  for (const Diagnostic& entry : refused) {
    const std::pair key(operator_of(entry), reason_of(entry));
    auto at =
        std::ranges::find(groups, key, &std::pair<std::pair<std::string, std::string>, std::vector<size_t>>::first);
    if (at == groups.end()) at = groups.insert(groups.end(), {key, {}});
    if (entry.node >= 0) at->second.push_back(place[static_cast<size_t>(entry.node)]);
  }
  for (auto& [key, list] : groups) {
    std::ranges::sort(list);
    std::string ranges;
    for (const size_t node : list) ranges += fmt::format("{}[{}, {}]", ranges.empty() ? "" : ", ", node, node + 1);
    rows.push_back({key.first, std::to_string(std::max<size_t>(list.size(), 1)), key.second, "[" + ranges + "]"});
  }
  return rows;
}

/// Where sorting puts each node of the file.
std::vector<size_t> places(const edit::Model& file, const edit::Pieces& pieces) {
  std::unordered_map<std::string, size_t> by_result;
  const auto result = [](const edit::Node& node) {
    const auto named = std::ranges::find_if(node.outputs, [](const std::string& name) { return !name.empty(); });
    return named == node.outputs.end() ? std::string() : *named;
  };
  for (size_t i = 0; i < pieces.nodes(); ++i) by_result.emplace(result(pieces.node(i)), i);
  std::vector<size_t> place;
  for (const edit::Node& node : file.graph.nodes) place.push_back(by_result.at(result(node)));
  return place;
}

std::vector<std::string> write_parts(const edit::Pieces& pieces, const std::vector<bool>& taken,
                                     const std::string& folder) {
  fs::create_directories(folder);
  std::vector<std::string> written;
  for (size_t start = 0; start < taken.size();) {
    size_t end = start;
    edit::Part part;
    while (end < taken.size() && taken[end] == taken[start]) part.push_back(end++);
    const std::string name =
        fmt::format("{}_subgraph-nodes-{}-{}.onnx", taken[start] ? "supported" : "unsupported", start, end - 1);
    edit::save(pieces.piece(part, edit::Pieces::Types::where_known), (fs::path(folder) / name).string());
    written.push_back(name);
    start = end;
  }
  return written;
}

Json entry_json(const Diagnostic& entry) {
  return {{"node", entry.node},
          {"name", entry.name},
          {"operator", operator_of(entry)},
          {"reason", entry.text},
          {"hint", entry.hint}};
}

}  // namespace

std::optional<int> tell_refused(const std::string& path, const PartitionRequest& request) {
  need_file(path);
  const Diagnosis diagnosis(path);
  std::vector<Diagnostic> refused;
  for (Diagnostic& entry : diagnosis.entries()) {
    if (entry.severity != HONE_LOG_ERROR) continue;
    if (entry.problem == HONE_PROBLEM_FILE)
      throw StatusError(ExitStatus::no_file, fmt::format("{} is no ONNX model: {}", path, entry.text), entry.hint);
    refused.push_back(std::move(entry));
  }
  if (refused.empty() && !request.writes_parts) return std::nullopt;
  const std::vector<DiagnosedNode> nodes = diagnosis.nodes();
  std::string text = "All nodes of the model are supported.\n";
  std::vector<std::string> written;
  if (request.writes_parts) {
    const edit::Model file = edit::open_model(path);
    const edit::Pieces pieces(file);
    const std::vector<size_t> place = places(file, pieces);
    std::vector<bool> taken(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) taken[place[i]] = nodes[i].supported;
    if (!refused.empty()) text = table(rows_by_operator(refused, place));
    written = write_parts(pieces, taken, request.folder);
    write_file((fs::path(request.folder) / "results.txt").string(), text);
  } else {
    text = table(rows_by_node(refused, nodes));
  }
  if (request.json) {
    Json json{{"supported", refused.empty()}, {"refused", Json::array()}, {"files", written}};
    for (const Diagnostic& entry : refused) json["refused"].push_back(entry_json(entry));
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", text);
    if (!written.empty()) fmt::print("{} files are in {}\n", written.size() + 1, request.folder);
  }
  return refused.empty() ? 0 : 1;
}

}  // namespace hone
