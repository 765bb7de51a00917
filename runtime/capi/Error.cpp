//===- Error.cpp - Errors of the C API ------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Error.h"

#include "runtime/jit/Compile.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/ForeignText.h"

#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

using namespace commsir;

namespace {

/// The last error of a thread. The JSON is made when it is asked for.
struct LastError {
  std::string message, json;
  llvm::json::Object fields;
  /// The error is of a launch before the call that has returned it.
  bool isEarlier = false;
};

} // namespace

static LastError &last() {
  static thread_local LastError error;
  return error;
}

static const char *kindName(commsir_status status) {
  switch (status) {
  case COMMSIR_OK:
    return "ok";
  case COMMSIR_USAGE:
    return "usage";
  case COMMSIR_COMPILE:
    return "compile";
  case COMMSIR_CHECKER:
    return "checker";
  case COMMSIR_DEADLOCK:
    return "deadlock";
  case COMMSIR_MISMATCH:
    return "mismatch";
  case COMMSIR_LIMIT:
    return "limit";
  case COMMSIR_BOUNDS:
    return "bounds";
  case COMMSIR_DISAGREE:
    return "disagree";
  case COMMSIR_ABORTED:
    return "aborted";
  }
  return "unknown";
}

/// A text for an error: a kernel's or a file's control characters would reach
/// the user's terminal.
static std::string errorText(llvm::StringRef text) {
  return showWhole(capi::jsonText(text));
}

/// Adds what is said of the source, a line each, as compilers write it.
static void describe(const llvm::json::Array *diagnostics, std::string &text) {
  if (!diagnostics)
    return;
  llvm::raw_string_ostream os(text);
  for (const llvm::json::Value &diagnostic : *diagnostics) {
    const llvm::json::Object &said = *diagnostic.getAsObject();
    os << "\n  ";
    if (llvm::StringRef file = said.getString("file").value_or("");
        !file.empty())
      os << file << ":" << said.getInteger("line").value_or(0) << ":"
         << said.getInteger("column").value_or(0) << ": ";
    os << said.getString("severity").value_or("") << ": "
       << said.getString("message").value_or("");
    describe(said.getArray("notes"), text);
  }
}

commsir_status capi::fail(commsir_status status, const llvm::Twine &message,
                          llvm::json::Object details) {
  LastError &error = last();
  std::string summary = errorText(message.str());
  error.message = summary;
  describe(details.getArray("diagnostics"), error.message);
  error.json.clear();
  error.isEarlier = false;
  error.fields = std::move(details);
  error.fields["kind"] = kindName(status);
  error.fields["message"] = std::move(summary);
  return status;
}

commsir_status capi::fail(commsir_status status, llvm::Error error,
                          llvm::json::Object details) {
  if (jit::isCheckerRefusal(error))
    status = COMMSIR_CHECKER;
  else if (error.isA<jit::CompileError>())
    status = COMMSIR_COMPILE;
  return fail(status, llvm::toString(std::move(error)), std::move(details));
}

commsir_status capi::guard(llvm::function_ref<commsir_status()> body) {
  [[maybe_unused]] static const bool installed =
      (installFatalErrorHandlers(), true);
  FatalErrorScope scope;
  try {
    return body();
  } catch (const FatalError &error) {
    return fail(COMMSIR_COMPILE,
                "LLVM gave up: " + error.reason +
                    "; this is a fault of CommsIR, please report it with the "
                    "kernel");
  } catch (const std::bad_alloc &) {
    return fail(COMMSIR_USAGE,
                "out of memory; use fewer ranks or smaller arrays");
  } catch (const std::exception &error) {
    return fail(COMMSIR_USAGE, error.what());
  } catch (...) {
    return fail(COMMSIR_USAGE, "an exception of unknown type");
  }
}

char *capi::copyText(llvm::StringRef text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

std::string capi::render(llvm::json::Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

std::string capi::jsonText(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

llvm::json::Array
capi::renderDiagnostics(llvm::ArrayRef<driver::Diagnosis> diagnostics) {
  llvm::json::Array array;
  for (const driver::Diagnosis &diagnosis : diagnostics) {
    llvm::json::Object object{{"severity", diagnosis.severity},
                              {"message", errorText(diagnosis.message)},
                              {"file", errorText(diagnosis.file)},
                              {"line", int64_t(diagnosis.line)},
                              {"column", int64_t(diagnosis.column)},
                              {"notes", renderDiagnostics(diagnosis.notes)}};
    array.push_back(std::move(object));
  }
  return array;
}

const char *commsir_error_message(void) { return last().message.c_str(); }

const char *commsir_error_json(void) {
  LastError &error = last();
  if (error.json.empty())
    error.json = capi::render(llvm::json::Object(error.fields));
  return error.json.c_str();
}

commsir_status capi::markEarlier(commsir_status status) {
  if (status != COMMSIR_OK)
    last().isEarlier = true;
  return status;
}

int commsir_error_is_earlier(void) { return last().isEarlier; }

void commsir_free(void *text) { std::free(text); }
