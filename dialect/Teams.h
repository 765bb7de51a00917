//===- Teams.h - Compile-time facts about teams -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_TEAMS_H
#define COMMSIR_DIALECT_TEAMS_H

#include "dialect/Comms.h"

#include <optional>

namespace mlir::comms {

/// Number of ranks of `team`, if it follows from the kernel's `ranks` and
/// `lsa_size` and the factors of the splits; else none. Terminates on any IR,
/// including cyclic IR.
std::optional<int64_t> getStaticTeamSize(Value team);

/// Whether two values are the same team on every rank: the same value, or the
/// same splits of a team of the same kind. False if unknown.
bool areSameTeam(Value lhs, Value rhs);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_TEAMS_H
