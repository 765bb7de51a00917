//===- GroupError.h - How a group fails -------------------------*- C++ -*-===//
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
    /// What was asked for makes no sense, or the system refuses it.
    Usage,
    /// A peer did not come in time, or is gone.
    Peer,
    /// Ranks do different things.
    Disagree,
    /// The group was aborted, or a peer's was.
    Aborted,
    /// An access out of bounds.
    Bounds,
    /// The group has no channel memory left, or the device no memory.
    Limit
  };
  static char ID;
  GroupError(Kind kind, std::string message,
             std::vector<cpu::Waiting> waiting = {})
      : kind(kind), message(std::move(message)), waiting(std::move(waiting)) {}
  Kind getKind() const { return kind; }
  const std::string &getMessage() const { return message; }
  /// Blocks of this rank that wait, when they were given up.
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

/// Whether there is too little memory.
bool isLimit(const llvm::Error &error);

/// The kind that another process has said; Peer where there is none.
GroupError::Kind asKind(int64_t number);

/// Kind and text of an error, for the other ranks; "": success.
std::string packError(llvm::Error error);

/// Whether a text begins with "rank 3".
bool namesRank(llvm::StringRef text);

/// What has become of a step that all ranks take and have told each other of:
/// this rank's error, else that of the lowest rank that has one. It names the
/// rank, unless all say the same.
llvm::Error unpackErrors(llvm::ArrayRef<std::string> packed, int64_t rank);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_SUPPORT_GROUPERROR_H
