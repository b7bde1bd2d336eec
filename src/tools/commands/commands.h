// SPDX-License-Identifier: Apache-2.0
//
// The plain-word tools, one file each: what follows their name on the command line goes in, the exit status comes out.
#pragma once

#include <span>
#include <string>

#include "base/log.h"

namespace hone {

using Words = std::span<const std::string>;

int run_build(Words words);          ///< hone build: a model becomes a plan
int run_run(Words words);            ///< hone run: one inference, its outputs shown or written
int run_bench(Words words);          ///< hone bench: how fast, what bounds it, how steady
int run_bench_kernels(Words words);  ///< hone bench kernels: all ways to solve one problem, and the machine's ceiling
int run_check(Words words);          ///< hone check: the same results however an engine is run
int run_inspect(Words words);        ///< hone inspect: what a plan holds; a C program that runs it
int run_capability(Words words);     ///< hone inspect capability: which nodes of a model have which kernels
int run_operators(Words words);      ///< hone inspect operators: which ONNX operators models may use
int run_cache(Words words);          ///< hone cache: list, merge and prune timing caches
int run_doctor(Words words);         ///< hone doctor: what this program is and finds on this machine

/// Warnings and errors on stderr, nothing else.
Logger quiet_logger();

}  // namespace hone
