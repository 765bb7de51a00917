//===- Error.cpp - How a group fails --------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::group;

char GroupError::ID = 0;

void GroupError::log(llvm::raw_ostream &os) const {
  cpu::RunError report{cpu::RunError::Other, message, waiting};
  os << llvm::StringRef(report.render()).rtrim();
}

std::error_code GroupError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

bool commsir::group::isLimit(const llvm::Error &error) {
  bool found = false;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &one) {
    if (one.isA<GroupError>())
      found |= static_cast<const GroupError &>(one).getKind() ==
               GroupError::Kind::Limit;
  });
  return found;
}
