// SPDX-License-Identifier: Apache-2.0
//
// The words of the command line on the left, Hone's layouts on the right.
#include "options/io_formats.h"

#include <map>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

DType type_of(const std::string& type) {
  const std::optional<DType> found = dtype_of_word(type);
  if (!found || *found == DType::i4)
    throw Error(fmt::format("inputs and outputs cannot be {}", type),
                "use fp32, fp16, bf16, int32, int64, int8, uint8, fp8 or bool");
  return *found;
}

std::optional<Layout> layout_of(const IoFormatSpec& spec) {
  static const std::map<std::string, Layout> kLayouts = {
      {"chw", Layout::linear},           {"chw2", Layout::blocked2},        {"chw4", Layout::blocked4},
      {"chw16", Layout::blocked16},      {"chw32", Layout::blocked32},      {"cdhw32", Layout::blocked32},
      {"hwc", Layout::channels_last},    {"dhwc", Layout::channels_last},   {"hwc8", Layout::channels_last8},
      {"dhwc8", Layout::channels_last8}, {"hwc16", Layout::channels_last16}};
  for (const std::string& format : spec.formats)
    if (const auto found = kLayouts.find(format); found != kLayouts.end()) return found->second;
  return std::nullopt;
}

}  // namespace

std::vector<IoFormat> bound_formats(const std::vector<IoFormatSpec>& specs, std::string_view flag,
                                    std::vector<std::string>& warnings) {
  std::vector<IoFormat> formats;
  for (const IoFormatSpec& spec : specs) {
    const std::optional<Layout> layout = layout_of(spec);
    if (!layout)
      warnings.push_back(fmt::format("{}: {} is for DLA, which this device is not; chw is used instead", flag,
                                     join(spec.formats, "+")));
    formats.push_back(
        {spec.type.empty() ? std::nullopt : std::optional(type_of(spec.type)), layout.value_or(Layout::linear)});
  }
  return formats;
}

}  // namespace hone
