// SPDX-License-Identifier: Apache-2.0
//
// The one array of backends.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace hone {

std::span<const Backend* const> all_backends();
/// Null when there is none of this name.
const Backend* find_backend(std::string_view name);

struct OpenDevice {
  const Backend* backend = nullptr;
  std::shared_ptr<Device> device;
};
/// "cpu", "cpu/4" (workers), "cpu@8-11" (cores), "cuda:1"; a number alone is a GPU where there is one, else the CPU. What the name
/// does not say, `choice` does. Throws Error when there is none.
OpenDevice open_device(const std::string& name, DeviceChoice choice = {});

}  // namespace hone
