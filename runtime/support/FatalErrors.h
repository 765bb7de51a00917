//===- FatalErrors.h - Errors that would end the process --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM ends the process at an error that it takes for a fault of its own, and
// the C++ library at an exception that leaves a thread. In a library the
// process is somebody else's: both become an exception of the thread that
// waits for the result.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_FATALERRORS_H
#define COMMSIR_RUNTIME_SUPPORT_FATALERRORS_H

#include <exception>
#include <string>

namespace commsir {

/// A fatal error of LLVM on its way through frames of LLVM, which were compiled
/// without exceptions: their destructors do not run, so this leaks; but the
/// process lives on.
struct FatalError {
  std::string reason;
};

/// Has LLVM's fatal errors and failed allocations call this file's handlers.
void installFatalErrorHandlers();

/// For a program, which owns its process: from now on a failed allocation, a
/// crash that follows one, or a fatal error of LLVM prints one line,
/// "`program`: error: …", and ends the process with `status`. `program` must
/// live as long as the process.
void exitOnFatalErrors(const char *program, int status);

/// While one exists on a thread, the handlers throw there: FatalError or
/// std::bad_alloc. The owner must catch these.
class FatalErrorScope {
public:
  FatalErrorScope();
  ~FatalErrorScope() { --depth; }
  FatalErrorScope(const FatalErrorScope &) = delete;
  FatalErrorScope &operator=(const FatalErrorScope &) = delete;

private:
  // Found once: in a shared library each look is a call.
  unsigned &depth;
};

/// The work of a thread: returns what `work` throws, for the thread that waits
/// for it to throw again. Null: it throws nothing.
template <typename Work>
std::exception_ptr catchFailure(Work work) {
  FatalErrorScope scope;
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// The text of what catchFailure has returned.
std::string describeFailure(const std::exception_ptr &failure);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_FATALERRORS_H
