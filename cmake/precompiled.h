// SPDX-License-Identifier: Apache-2.0
//
// What nearly every file reads of others' headers, parsed once; Hone's own change too often. A file still includes what it
// uses: the build without HONE_PRECOMPILE is the same program.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>
