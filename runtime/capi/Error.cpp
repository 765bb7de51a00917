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
  commsir_status status = COMMSIR_OK;
  /// What happened, and the same with what is said of the source.
  std::string summary, message, json;
  /// Besides kind and message. Nothing is added to it: LLVM's maps are damaged
  /// by an insertion that finds no memory.
  llvm::json::Object fields;
  /// The error is of a launch before the call that has returned it.
  bool isEarlier = false;
  /// There was no memory for `json` and `fields`, which are another error's.
  bool isBare = false;
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
  error.status = status;
  error.summary = errorText(message.str());
  error.message = error.summary;
  describe(details.getArray("diagnostics"), error.message);
  error.json.clear();
  error.isEarlier = error.isBare = false;
  error.fields = std::move(details);
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

/// Reports what a call has thrown, in few words if it leaves no memory.
static commsir_status failBy(const std::exception_ptr &failure) {
  try {
    bool isOfLlvm = false;
    try {
      std::rethrow_exception(failure);
    } catch (const FatalError &) {
      isOfLlvm = true;
    } catch (...) {
    }
    return capi::fail(isOfLlvm ? COMMSIR_COMPILE : COMMSIR_USAGE,
                      describeFailure(failure));
  } catch (const std::bad_alloc &) {
    LastError &error = last();
    error.message = "out of memory"; // Short enough to need none.
    error.isEarlier = false;
    error.isBare = true;
    return COMMSIR_USAGE;
  }
}

commsir_status capi::guard(llvm::function_ref<commsir_status()> body) {
  [[maybe_unused]] static const bool installed =
      (installFatalErrorHandlers(), true);
  FatalErrorScope scope;
  // A thread's first use of it takes memory, which an error may not have.
  last();
  try {
    return body();
  } catch (...) {
    return failBy(std::current_exception());
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

static std::string renderError(const LastError &error) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream os(stream);
  os.object([&] {
    os.attribute("kind", kindName(error.status));
    os.attribute("message", error.summary);
    for (const auto &[name, value] : error.fields) {
      os.attributeBegin(name);
      os.value(value);
      os.attributeEnd();
    }
  });
  return text;
}

const char *commsir_error_json(void) {
  LastError &error = last();
  try {
    if (!error.isBare && error.json.empty())
      error.json = renderError(error);
  } catch (const std::bad_alloc &) {
    error.isBare = true;
  }
  return error.isBare ? R"({"kind":"usage","message":"out of memory"})"
                      : error.json.c_str();
}

commsir_status capi::markEarlier(commsir_status status) {
  if (status != COMMSIR_OK)
    last().isEarlier = true;
  return status;
}

int commsir_error_is_earlier(void) { return last().isEarlier; }

void commsir_free(void *text) { std::free(text); }
