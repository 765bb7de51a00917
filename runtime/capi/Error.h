//===- Error.h - How functions of the C API fail ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last error of a thread, and the guard that every function of the C API
// runs in: neither an exception nor a fatal error of LLVM may reach a caller.
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

/// Notes an error of this thread; returns `status`. `details` are further
/// fields of commsir_error_json(): "diagnostics", "waiting", ….
commsir_status fail(commsir_status status, const llvm::Twine &message,
                    llvm::json::Object details = {});
/// With the text of `error`, which it consumes. A refusal by the checker and
/// other errors of compilation set the status that is theirs instead.
commsir_status fail(commsir_status status, llvm::Error error,
                    llvm::json::Object details = {});

/// `status` is of a launch before this call; commsir_error_is_earlier says so.
commsir_status markEarlier(commsir_status status);

/// Runs `body`, which returns COMMSIR_OK or what `fail` returned. Whatever else
/// it ends in (an exception, memory that is short, a fatal error of LLVM)
/// becomes an error, too.
commsir_status guard(llvm::function_ref<commsir_status()> body);

/// A copy that commsir_free() frees; null when memory is short.
char *copyText(llvm::StringRef text);
/// The JSON text of `value`.
std::string render(llvm::json::Value value);
/// A copy of `text` that JSON can hold.
std::string jsonText(llvm::StringRef text);
/// {"severity", "message", "file", "line", "column", "notes"} each.
llvm::json::Array
renderDiagnostics(llvm::ArrayRef<driver::Diagnosis> diagnostics);

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_ERROR_H
