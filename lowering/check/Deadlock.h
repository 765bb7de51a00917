//===- Deadlock.h - Explains why a run is stuck -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_DEADLOCK_H
#define COMMSIR_LOWERING_CHECK_DEADLOCK_H

namespace mlir::comms::check {

class Machine;

/// Reports a machine that ended with `Machine::Outcome::Stuck`: one error for
/// each op that is a cause (its condition can no longer become true, or it is
/// part of a cycle), with notes on the waiting blocks, the blocks that should
/// have acted, and the blocks that wait for those.
void reportDeadlock(const Machine &machine);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_DEADLOCK_H
