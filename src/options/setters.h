// SPDX-License-Identifier: Apache-2.0
//
// What the rows of the flag table are made of: put<&PerfOptions::iterations> reads a value of the member's type and
// stores it in the struct that the member belongs to.
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "options/flag.h"

namespace hone::setters {

template <typename T>
struct MemberOf;
template <typename Section, typename Value>
struct MemberOf<Value Section::*> {
  using section = Section;
};

template <typename Section>
Section& section_of(Options& options) {
  if constexpr (std::is_same_v<Section, ToolOptions>) return options.tool;
  else if constexpr (std::is_same_v<Section, BuildOptions>) return options.build;
  else if constexpr (std::is_same_v<Section, PerfOptions>) return options.perf;
  else return options.report;
}

inline void read(bool& target, const Argument&) { target = true; }
inline void read(int& target, const Argument& argument) { target = read_integer(argument); }
inline void read(std::optional<int>& target, const Argument& argument) { target = read_integer(argument); }
inline void read(float& target, const Argument& argument) { target = static_cast<float>(read_real(argument)); }
inline void read(double& target, const Argument& argument) { target = read_real(argument); }
inline void read(std::string& target, const Argument& argument) { target = argument.value; }
inline void read(ShapeMap& target, const Argument& argument) { target = read_shapes(argument); }
inline void read(NamedTexts& target, const Argument& argument) { target = read_named(argument); }
inline void read(std::vector<float>& target, const Argument& argument) { target = read_percentiles(argument); }
/// Repeatable: every use adds one.
inline void read(std::vector<std::string>& target, const Argument& argument) { target.push_back(argument.value); }

template <auto Member>
auto& member(Options& options) {
  return section_of<typename MemberOf<decltype(Member)>::section>(options).*Member;
}

template <auto Member>
void put(Options& options, const Argument& argument) {
  read(member<Member>(options), argument);
}

template <auto Member>
void put_formats(Options& options, const Argument& argument) {
  member<Member>(options) = read_io_formats(argument, options.tool.release);
}

/// A switch that turns something off.
template <auto Member>
void clear(Options& options, const Argument&) {
  member<Member>(options) = false;
}

}  // namespace hone::setters
