//===- FatalErrors.cpp - Errors that would end the process ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <exception>
#include <new>

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

std::string commsir::describeFailure(const std::exception_ptr &failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const FatalError &error) {
    return "LLVM gave up: " + error.reason +
           "; this is a fault of CommsIR, please report it with the kernel";
  } catch (const std::bad_alloc &) {
    return "out of memory; use fewer ranks or smaller arrays";
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}
