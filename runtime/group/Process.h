//===- Process.h - Other processes of this host -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a rank runs, and whether the process of another one lives.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_PROCESS_H
#define COMMSIR_RUNTIME_GROUP_PROCESS_H

#include <condition_variable>
#include <string>

namespace commsir::group {

/// Identifies the host and container: processes with equal texts can share
/// memory.
std::string describeHost();

/// Number of forks since the first call, in this process or its ancestors.
/// Objects made at a lower count belong to the parent.
unsigned countForks();

/// Makes `changed` new in a child of fork(), before its destructor: that would
/// wait for threads of the parent that wait for `changed`.
void forgetWaiters(std::condition_variable &changed);

/// Opens a file that becomes readable when the process ends, also if the caller
/// is not its parent. Returns -1 and sets errno on failure.
int openProcess(int process);

/// Whether a process has ended. `file` is the result of `openProcess`, which
/// may be -1.
bool hasEnded(int process, int file);

/// Describes how a process ended, as far as known: "(process 12) has died, by
/// signal 9 (Killed)".
std::string describeDeath(int process, int file);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_PROCESS_H
