// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hone {

/// `hone doctor`: what this program is and finds on this machine.
int run_doctor();

}  // namespace hone
