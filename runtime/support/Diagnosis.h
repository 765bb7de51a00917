//===- Diagnosis.h - What the compiler said, as data ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H
#define COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace commsir::driver {

/// A diagnostic that outlives its context.
struct Diagnosis {
  /// "error", "warning", "remark" or "note".
  std::string severity, message;
  /// Where in the source; "" and 0 when that is not known.
  std::string file;
  unsigned line = 0, column = 0;
  std::vector<Diagnosis> notes;

  /// "file:line:column: severity: message", and a line for each note.
  std::string render() const;
};

Diagnosis describe(const mlir::Diagnostic &diagnostic);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H
