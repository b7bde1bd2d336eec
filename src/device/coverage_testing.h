// SPDX-License-Identifier: Apache-2.0
//
// What a backend's own families leave to others: a file has each region of tests/regions that none of them takes, with the element
// types in which none does. A region that falls out of a family's hands, or a new one that nobody takes, changes it. For tests only.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>

#include "device/regions_testing.h"
#include "device/rows_testing.h"

namespace hone {

using Takes = std::function<bool(const RegionSample&, DType)>;

inline NamedRows regions_left(std::initializer_list<DType> dtypes, const Takes& takes) {
  NamedRows rows;
  for (const RegionSample& sample : region_samples())
    for (const DType dtype : dtypes) {
      if (takes(sample, dtype)) continue;
      std::string& row = rows[sample.name];
      row += (row.empty() ? "" : " ") + std::string(name_of(dtype));
    }
  return rows;
}

/// Whether a row of the file has the region in this type.
inline bool is_left(const NamedRows& rows, const RegionSample& sample, DType dtype) {
  const auto row = rows.find(sample.name);
  return row != rows.end() &&
         (" " + row->second + " ").find(" " + std::string(name_of(dtype)) + " ") != std::string::npos;
}

/// `test` is the program and its filter.
inline void expect_regions_left(const std::string& path, const NamedRows& now, const std::string& test) {
  if (renewed(path, "Regions of tests/regions that no family takes, with the types in which none does.", now)) return;
  EXPECT_THAT(now, testing::ContainerEq(read_rows(path)))
      << "a family takes more or less of tests/regions than it did; if that is meant, HONE_TEST_RENEW=1 " << test
      << " writes " << path << " anew";
}

}  // namespace hone
