//===- Error.h - Errors of the C API ----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last error of a thread, and the guard around every function of the C API:
// neither an exception nor a fatal error of LLVM may reach a caller.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_ERROR_H
#define COMMSIR_RUNTIME_CAPI_ERROR_H

#include "runtime/capi/commsir.h"
#include "runtime/support/Diagnosis.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace commsir::capi {

/// Records an error of this thread and returns `status`. `details` holds
/// further fields of commsir_error_json(): "diagnostics", "waiting", ….
commsir_status fail(commsir_status status, const llvm::Twine &message,
                    llvm::json::Object details = {});
/// Same, with the text of `error`, which is consumed. Errors of compilation and
/// refusals by the checker set their own status instead of `status`.
commsir_status fail(commsir_status status, llvm::Error error,
                    llvm::json::Object details = {});

/// Marks `status` as that of a launch before this call;
/// commsir_error_is_earlier reports it.
commsir_status markEarlier(commsir_status status);

/// Runs `body`, which returns COMMSIR_OK or the result of `fail`. Anything else
/// that ends it (an exception, lack of memory, a fatal error of LLVM) also
/// becomes an error.
commsir_status guard(llvm::function_ref<commsir_status()> body);

/// Returns a copy that the caller frees with commsir_free(), or null when
/// memory is short.
char *copyText(llvm::StringRef text);
/// The JSON text of `value`.
std::string render(llvm::json::Value value);
/// A copy of `text` that JSON can hold.
std::string jsonText(llvm::StringRef text);
/// One object {"severity", "message", "file", "line", "column", "notes"} per
/// diagnostic.
llvm::json::Array
renderDiagnostics(llvm::ArrayRef<driver::Diagnosis> diagnostics);

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_ERROR_H
