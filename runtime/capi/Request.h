//===- Request.h - JSON requests of callers ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_REQUEST_H
#define COMMSIR_RUNTIME_CAPI_REQUEST_H

#include "runtime/driver/HostData.h"
#include "runtime/driver/Options.h"

#include "llvm/Support/Error.h"

namespace commsir::capi {

/// A request of commsir_compile or commsir_simulate. `options` holds the
/// options that both share with comms-run.
struct Request {
  std::string source;
  driver::Options options;
  /// `host.source` points to the string above.
  driver::HostData host;

  // commsir_compile only: the kind of output.
  std::string produce = "ir";
  std::string chip = "sm_90";
  int64_t tileSize = 0;
  /// Print locations, so that each line of the result names its source.
  bool locations = false;
  /// Launches that the checker simulates; 0: enough to show reuse of memory.
  int64_t checkLaunches = 0;
  /// `produce` is "check": launches of several kernels, as of
  /// jit::SequenceOptions; empty: of one kernel.
  std::string order;
};

/// Reads the keys that docs/CApi.md lists. An unknown key or a value of the
/// wrong type is an error that names the key.
llvm::Error parseRequest(llvm::StringRef json, Request &request);

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_REQUEST_H
