//===- GroupError.cpp - Errors of a group ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
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

std::string commsir::group::packError(llvm::Error error) {
  std::string text;
  auto add = [&](GroupError::Kind kind, const std::string &message) {
    text += text.empty() ? std::string(1, char('0' + int(kind))) : "; ";
    text += message;
  };
  llvm::handleAllErrors(
      std::move(error),
      [&](const GroupError &known) {
        add(known.getKind(), known.getMessage());
      },
      [&](const llvm::ErrorInfoBase &other) {
        add(GroupError::Kind::Usage, other.message());
      });
  return text;
}

GroupError::Kind commsir::group::asKind(int64_t number) {
  bool isOne = number >= 0 && number <= int64_t(GroupError::Kind::Checker);
  return isOne ? GroupError::Kind(number) : GroupError::Kind::Peer;
}

bool commsir::group::namesRank(llvm::StringRef text) {
  return text.consume_front("rank ") && !text.empty() &&
         llvm::isDigit(text.front());
}

llvm::Error commsir::group::unpackErrors(llvm::ArrayRef<std::string> packed,
                                         int64_t rank) {
  const auto *failed = &packed[rank];
  if (failed->empty())
    failed = llvm::find_if(
        packed, [](const std::string &text) { return !text.empty(); });
  if (failed == packed.end())
    return llvm::Error::success();
  llvm::StringRef text = llvm::StringRef(*failed).drop_front();
  bool isOne = llvm::all_equal(packed) || namesRank(text);
  std::string whose =
      isOne ? "" : "rank " + std::to_string(failed - packed.begin()) + ": ";
  return makeError(asKind(failed->front() - '0'), whose + text);
}
