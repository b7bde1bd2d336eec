// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/save_face.h"

#include "edit/file.h"

namespace hone {

void save_face(const Arguments& arguments, const ModelFace& face, const std::string& path) {
  edit::SaveRules rules;
  if (arguments.has("--save-external-data")) rules.external = arguments.value("--save-external-data");
  if (arguments.has("--external-data-size-threshold"))
    rules.threshold = parse_bytes("--external-data-size-threshold", arguments.value("--external-data-size-threshold"));
  edit::save(edit::read_model(face.bytes, face.folder), path, rules);
}

}  // namespace hone
