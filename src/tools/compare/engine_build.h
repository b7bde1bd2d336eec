// SPDX-License-Identifier: Apache-2.0
//
// A plan of a model as the companions' command lines ask for it: profiles, caches, tactics to follow, and what is kept of the build.
#pragma once

#include "tools/common/api.h"
#include "tools/compare/runner.h"

namespace hone {

/// Throws StatusError (no_backend) where there is none of the name.
Owned<hone_device> open_device_named(const std::string& name);
/// The narrator as the C interface takes a log. It has to stay.
hone_log engine_log(const Narrator& narrator);

/// As the file says it, or with the outputs that were marked.
Owned<hone_model> model_of(const ModelFace& face, const Narrator& narrator);
/// `samples` decide the profile where none is given. Writes what the request wants kept.
Owned<hone_plan> build_plan(const ModelFace& face, const EngineRequest& request, const hone_device& device,
                            const std::vector<TensorList>& samples, const Narrator& narrator);

}  // namespace hone
