//===- Words.h - Words of the assembly format -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the dialect reads the words of its enums and what it says of words that
// it does not know. Private to the dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_WORDS_H
#define COMMSIR_DIALECT_WORDS_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// Parses one of `words` and returns its index. `what` names, in errors, what
/// the word should be, as in "reduction kind".
FailureOr<unsigned> parseWordOf(AsmParser &parser, StringRef what,
                                ArrayRef<StringRef> words);

/// The words of an enum whose values count up from 0.
template <typename Enum>
SmallVector<StringRef> getWords() {
  SmallVector<StringRef> words;
  for (uint32_t value = 0;; ++value) {
    StringRef word = stringifyEnum(static_cast<Enum>(value));
    if (word.empty())
      return words;
    words.push_back(word);
  }
}

template <typename Enum>
FailureOr<Enum> parseWord(AsmParser &parser, StringRef what) {
  FailureOr<unsigned> index = parseWordOf(parser, what, getWords<Enum>());
  if (failed(index))
    return failure();
  return static_cast<Enum>(*index);
}

/// Parses an attribute that holds an enum's value: its word, or `<word>`.
template <typename Attr>
Attr parseWordAttr(AsmParser &parser, StringRef what, bool inAngles) {
  using Enum = decltype(std::declval<Attr>().getValue());
  if (inAngles && parser.parseLess())
    return {};
  FailureOr<Enum> value = parseWord<Enum>(parser, what);
  if (failed(value) || (inAngles && parser.parseGreater()))
    return {};
  return Attr::get(parser.getContext(), *value);
}

/// While it lives, errors of MLIR's parser about unknown operations say which
/// operation has a similar name.
class OperationHints {
public:
  explicit OperationHints(MLIRContext *context);

private:
  ScopedDiagnosticHandler handler;
};

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_WORDS_H
