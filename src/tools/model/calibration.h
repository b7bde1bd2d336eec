// SPDX-License-Identifier: Apache-2.0
//
// Running a network in f32 to see what its tensors hold.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/log.h"
#include "options/tool_options.h"
#include "quantize/calibration_cache.h"
#include "quantize/clipping.h"
#include "quantize/quantize_file.h"
#include "quantize/scale.h"
#include "tools/common/observed_network.h"
#include "tools/model/data_set.h"
#include "tools/model/handles.h"

namespace hone {

using Histograms = std::map<std::string, Histogram, std::less<>>;

/// Runs all samples. The tensors, which are f32, stay in memory for one inference.
void observe(const hone_model& model, const hone_device& device, const std::set<std::string>& tensors, DataSet& data,
             const Visit& visit);

/// What the placement's tensors, and others, hold over all samples. Throws Error naming a tensor with a value that is not finite.
Histograms histograms_over(const hone_model& model, const hone_device& device, const Placement& placement,
                           DataSet& data, const std::set<std::string>& others = {});
/// The same over one inference on values drawn at random, where there is no data; dynamic inputs have the profile's opt.
Histograms random_histograms(const hone_model& model, const hone_device& device, const Placement& placement,
                             const ProfileOptions& profile, const std::set<std::string>& others = {});
/// Of what the weights of a placement are multiplied by.
Moments moments_over(const hone_model& model, const hone_device& device, const Placement& placement,
                     bool keeps_products, DataSet& data);

/// The range of a tensor after clipping. Steps of floats are finer where values are small: entropy clips none of them.
ClippedRange clipped(const Histogram& histogram, const Clipping& clipping, Codes codes);
TensorScales scales_of(const Placement& placement, const Histograms& histograms, const Clipping& clipping, Codes codes);

/// The scales for --int8: from --calibData, which also writes the cache of --calib, or from random values where there is nothing;
/// --calib alone is read by the build. Says what it did.
void calibrate(const hone_model& model, const hone_device& device, const ToolOptions& tool, BuildOptions& build,
               const Logger& log);

/// What a calibration cache keeps of them.
CalibrationCache cache_of(const TensorScales& scales, const Clipping& clipping);
/// The value of a flag. Throws Error listing the methods.
Clipping read_clipping(std::string_view flag, const std::string& value);

}  // namespace hone
