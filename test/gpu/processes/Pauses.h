//===- Pauses.h - Kernels that stop on the way ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A late launch does not show what happens if one block of one rank is late in
// the middle of a kernel. These functions expand a kernel's collectives and
// insert a loop before every send, receive and barrier. Each block reads from
// memory how often it iterates, also in replays.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_PROCESSES_PAUSES_H
#define COMMSIR_TEST_GPU_PROCESSES_PAUSES_H

#include "runtime/group/Group.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace commsir::processes {

struct Paused {
  /// The request for the kernel, which has two further arguments of
  /// `blocks * places` i64: rounds of the loop, and what it computes, so that
  /// nobody leaves it out. Those of place `p` of block `b` are number
  /// `b * places + p`.
  group::KernelRequest request;
  int64_t places = 0;
};

/// What the loop computes in so many rounds: whoever finds another number has
/// not stopped, or not as long.
int64_t spin(int64_t turns);

/// The places to which a block came: those of which `done` is no longer
/// kUntouched, after a launch in which nobody stopped.
constexpr int64_t kUntouched = -1;
std::vector<int64_t> findReached(llvm::ArrayRef<int64_t> done);

/// Of a request that names its algorithm, protocol, blocks and threads.
llvm::Expected<Paused> insertPauses(const group::KernelRequest &request,
                                    int64_t ranks);

} // namespace commsir::processes

#endif // COMMSIR_TEST_GPU_PROCESSES_PAUSES_H
