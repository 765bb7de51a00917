//===- Listener.h - Collects diagnostics of a step --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_LISTENER_H
#define COMMSIR_RUNTIME_DRIVER_LISTENER_H

#include "runtime/driver/Options.h"
#include "runtime/driver/Report.h"
#include "runtime/support/Progress.h"

#include "mlir/IR/Diagnostics.h"

namespace commsir::driver {

/// Records errors during its lifetime. Prints diagnostics, except remarks that
/// were not requested and suppressed warnings; prints nothing for a caller in
/// the same process.
class Listener {
public:
  struct Output {
    const Options &options;
    Report &report;
    Progress &progress;
    /// A caller in the same process reads the report instead.
    bool isSilent;
  };

  Listener(llvm::SourceMgr &sources, mlir::MLIRContext &context, Output output)
      : output(output), printer(sources, &context),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          return mlir::success(!note(diagnostic));
        }) {}

private:
  /// Records a diagnostic. Returns whether to print it.
  bool note(mlir::Diagnostic &diagnostic) {
    output.progress.end();
    auto severity = diagnostic.getSeverity();
    if (severity == mlir::DiagnosticSeverity::Error)
      output.report.diagnostics.push_back(describe(diagnostic));
    if (severity == mlir::DiagnosticSeverity::Warning)
      output.report.warnings.push_back(describe(diagnostic));
    if (severity == mlir::DiagnosticSeverity::Remark && !output.options.verbose)
      return false;
    if (severity == mlir::DiagnosticSeverity::Warning && output.options.quiet)
      return false;
    return !output.isSilent;
  }

  Output output;
  mlir::SourceMgrDiagnosticHandler printer;
  mlir::ScopedDiagnosticHandler handler; // Asked before the printer.
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_LISTENER_H
