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

#include <string>

namespace commsir::group {

/// What tells one host from another, and one container: processes for which it
/// is the same can share memory.
std::string describeHost();

/// How often this process, or one that it is a child of, was forked since the
/// first call: what was made before is the parent's.
unsigned countForks();

/// A file that can be read from once the process has ended, whether or not its
/// parent knows; -1: there is none, for the reason in errno.
int openProcess(int process);

/// Whether a process has ended. `file`: what `openProcess` has given, or -1.
bool hasEnded(int process, int file);

/// "(process 12) has died, by signal 9 (Killed)", as far as it can be known of
/// one that has ended.
std::string describeDeath(int process, int file);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_PROCESS_H
