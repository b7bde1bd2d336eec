// SPDX-License-Identifier: Apache-2.0
#include "tools/common/interrupt.h"

#include <signal.h>

namespace hone {
namespace {

// What a signal handler can reach is static.
volatile sig_atomic_t interrupted = 0;

extern "C" void remember(int) { interrupted = 1; }

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() { signal(SIGINT, SIG_DFL); }

bool Interrupt::requested() { return interrupted != 0; }

}  // namespace hone
