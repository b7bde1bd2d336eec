// SPDX-License-Identifier: Apache-2.0
//
// Setters of the flags whose values need more than a conversion: words, grammars, limits. See setters.h for the rest.
#pragma once

#include "options/flag.h"

namespace hone::setters {

void put_profile_shape(Options& options, const Argument& argument);  // profile 0
void put_calibration_shape(Options& options, const Argument& argument);
void put_shape_of(ProfileShapes& shapes, const Argument& argument);  // by the flag's name: min…, opt…, max…

void put_optimization_level(Options& options, const Argument& argument);
void put_pools(Options& options, const Argument& argument);
void put_compat(Options& options, const Argument& argument);
void put_verbosity(Options& options, const Argument& argument);
void put_nvtx_mode(Options& options, const Argument& argument);
void put_tactic_sources(Options& options, const Argument& argument);
void put_preview(Options& options, const Argument& argument);
void put_precision_constraints(Options& options, const Argument& argument);
void put_layer_precisions(Options& options, const Argument& argument);
void put_precision_file(Options& options, const Argument& argument);
void put_layer_output_types(Options& options, const Argument& argument);
void put_layer_devices(Options& options, const Argument& argument);
void put_accuracy_budget(Options& options, const Argument& argument);
void put_sparsity(Options& options, const Argument& argument);
void put_runtime(Options& options, const Argument& argument);
void put_runtime_platform(Options& options, const Argument& argument);
void put_tempfile_controls(Options& options, const Argument& argument);
void put_device(Options& options, const Argument& argument);
void put_targets(Options& options, const Argument& argument);
void put_explain(Options& options, const Argument& argument);

void put_routes(Options& options, const Argument& argument);
void put_tuning_search(Options& options, const Argument& argument);
void put_debug_tensors(Options& options, const Argument& argument);
void put_debug_formats(Options& options, const Argument& argument);

// Flags that are only recognised still refuse what trtexec refuses.
void check_integer(Options& options, const Argument& argument);
void put_hardware_level(Options& options, const Argument& argument);
void put_allocation(Options& options, const Argument& argument);
void put_weight_budget(Options& options, const Argument& argument);
void put_uff_input(Options& options, const Argument& argument);
void put_accuracy_algorithm(Options& options, const Argument& argument);
void put_tolerance(Options& options, const Argument& argument);
void require_safe(Options& options, const Argument& argument);
void require_dla(Options& options, const Argument& argument);

}  // namespace hone::setters
