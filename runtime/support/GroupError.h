//===- GroupError.h - Errors of a group -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_GROUPERROR_H
#define COMMSIR_RUNTIME_SUPPORT_GROUPERROR_H

#include "runtime/support/RunReport.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace commsir::group {

class GroupError : public llvm::ErrorInfo<GroupError> {
public:
  enum class Kind {
    /// The request makes no sense, or the system refuses it.
    Usage,
    /// A peer did not arrive in time, or is gone.
    Peer,
    /// Ranks do different things.
    Disagree,
    /// This group or a peer's was aborted.
    Aborted,
    /// An access out of bounds.
    Bounds,
    /// The group's channel memory or the device's memory is exhausted.
    Limit,
    /// No kernel can be made of the request, and the checker refuses it: a
    /// CompileError that ranks have told each other.
    Compile,
    Checker
  };
  static char ID;
  GroupError(Kind kind, std::string message,
             std::vector<cpu::Waiting> waiting = {})
      : kind(kind), message(std::move(message)), waiting(std::move(waiting)) {}
  Kind getKind() const { return kind; }
  const std::string &getMessage() const { return message; }
  /// Blocks of this rank that were waiting when the wait was given up.
  llvm::ArrayRef<cpu::Waiting> getWaiting() const { return waiting; }
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  Kind kind;
  std::string message;
  std::vector<cpu::Waiting> waiting;
};

inline llvm::Error makeError(GroupError::Kind kind, const llvm::Twine &text) {
  return llvm::make_error<GroupError>(kind, text.str());
}

/// Whether the error says that memory is exhausted.
bool isLimit(const llvm::Error &error);

/// Converts a kind that another process has sent; Peer if it is unknown.
GroupError::Kind asKind(int64_t number);

/// Packs kind and text of an error for the other ranks; "" for success.
std::string packError(llvm::Error error);

/// Whether a text begins with a rank, such as "rank 3".
bool namesRank(llvm::StringRef text);

/// Result of a step in which all ranks exchanged packed errors: this rank's
/// error, else the error of the lowest rank that has one. The error names that
/// rank, unless all ranks report the same.
llvm::Error unpackErrors(llvm::ArrayRef<std::string> packed, int64_t rank);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_SUPPORT_GROUPERROR_H
