//===- FatalErrors.cpp - Errors that would end the process ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/FatalErrors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <sys/uio.h>
#include <unistd.h>

using namespace commsir;

/// Number of scopes of this thread. Outside of them, nothing would catch an
/// exception.
static thread_local unsigned scopes = 0;

FatalErrorScope::FatalErrorScope() : depth(scopes) { ++depth; }

static void onFatalError(void *, const char *reason, bool) {
  if (scopes)
    throw FatalError{reason};
}

static void onBadAlloc(void *, const char *, bool) {
  if (scopes)
    throw std::bad_alloc();
}

void commsir::installFatalErrorHandlers() {
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler(onFatalError);
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(onBadAlloc);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static constexpr char kOutOfMemory[] =
    "out of memory; use fewer ranks or smaller arrays";
static constexpr char kGaveUp[] = "LLVM gave up: ";
static constexpr char kFault[] =
    "; this is a fault of CommsIR, please report it with the kernel";

namespace {
struct Program {
  const char *name;
  int status;
};
} // namespace

static Program program;

/// Ends the process with one line. Takes no memory, because there may be none.
[[noreturn]] static void leave(const char *what, const char *reason,
                               const char *then) {
  const char *parts[] = {program.name, ": error: ", what, reason, then, "\n"};
  iovec line[std::size(parts)];
  for (auto [part, text] : llvm::zip_equal(line, parts))
    part = {const_cast<char *>(text), std::strlen(text)};
  [[maybe_unused]] ssize_t written = writev(2, line, std::size(line));
  _exit(program.status);
}

/// MLIR uses what malloc returns without a look: the process then crashes right
/// after malloc has set errno.
static void onCrash(void *) {
  if (errno == ENOMEM)
    leave("a crash after memory ran out; use fewer ranks or smaller arrays", "",
          "");
}

void commsir::exitOnFatalErrors(const char *name, int status) {
  program = {name, status};
  // Before LLVM's own handler, which prints the stack.
  llvm::sys::AddSignalHandler(onCrash, nullptr);
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler(
      [](void *, const char *reason, bool) { leave(kGaveUp, reason, kFault); });
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { leave(kOutOfMemory, "", ""); });
  llvm::install_out_of_memory_new_handler();
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

std::string commsir::describeFailure(const std::exception_ptr &failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const FatalError &error) {
    return kGaveUp + error.reason + kFault;
  } catch (const std::bad_alloc &) {
    return kOutOfMemory;
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}
