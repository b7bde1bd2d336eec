// SPDX-License-Identifier: Apache-2.0
//
// What a user may ask to be told. A plain struct: the rows of options/table.cpp fill it, report/ and tools/ read it.
#pragma once

#include <string>

namespace hone {

struct ReportOptions {
  bool verbose = false;
  bool dump_refit = false;
  bool dump_output = false;
  bool dump_raw_bindings = false;
  bool dump_profile = false;
  bool dump_layer_info = false;
  bool dump_optimization_profile = false;
  std::string export_times, export_output, export_profile, export_layer_info, export_machine,
      trace;  // paths; empty: not asked for
  bool perf_map = false;
  std::string jit_dump;  // a folder
  bool explain = false;
  std::string explain_layer;  // empty: every layer

  bool wants_profile() const { return dump_profile || !export_profile.empty(); }
  /// Layers are timed one by one.
  bool times_layers() const { return wants_profile() || !trace.empty(); }
  bool wants_layer_info() const { return dump_layer_info || !export_layer_info.empty(); }
};

}  // namespace hone
