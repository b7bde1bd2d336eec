// SPDX-License-Identifier: Apache-2.0
#include "tools/common/operator_libraries.h"

#include "tools/common/api.h"

namespace hone {

void open_operator_libraries(const ToolOptions& tool, const Logger& log) {
  const hone_log lines{
      .size = sizeof(hone_log),
      .threshold = static_cast<hone_severity>(log.threshold()),
      .write = [](void* user, hone_severity severity,
                  const char* text) { static_cast<const Logger*>(user)->write(static_cast<Severity>(severity), text); },
      .user = const_cast<Logger*>(&log)};
  const unsigned flags = tool.plugins_override ? HONE_OPERATOR_REPLACES : 0;
  for (const auto* list : {&tool.plugins, &tool.dynamic_plugins, &tool.plugins_to_serialize})
    for (const std::string& library : *list) {
      log.info("Loading supplied plugin library: {}", library);
      check(hone_operator_library_open(library.c_str(), flags, &lines));
    }
}

}  // namespace hone
