//===- Request.h - The JSON that callers ask with ---------------*- C++ -*-===//
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

/// A request of commsir_compile or commsir_simulate. What both and comms-run
/// have is in `options`.
struct Request {
  std::string source;
  driver::Options options;
  /// `source` in `host` points to the one above.
  driver::HostData host;

  // Of commsir_compile alone.
  std::string produce = "ir";
  std::string chip = "sm_90";
  int64_t tileSize = 0;
  /// Print locations, so that a line of the result tells where it comes from.
  bool locations = false;
  /// Launches that the proof follows; 0: as many as show reuse.
  int64_t checkLaunches = 0;
};

/// Reads the keys that docs/CApi.md lists. A key that is not among them, or a
/// value of another type, is an error that names it.
llvm::Error parseRequest(llvm::StringRef json, Request &request);

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_REQUEST_H
