//===- Deadlock.h - Why a run cannot go on ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_DEADLOCK_H
#define COMMSIR_LOWERING_CHECK_DEADLOCK_H

namespace mlir::comms::check {

class Machine;

/// Reports a machine whose run ended in `Machine::Outcome::Stuck`: one error
/// for each op that is a cause (what it waits for can no longer come, or it is
/// part of a cycle), with notes on who waits, who should have come and who
/// waits for those.
void reportDeadlock(const Machine &machine);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_DEADLOCK_H
