//===- ForeignText.h - Texts of other processes in errors -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A store can hold anything: megabytes, and bytes that are no text, which
// Python could not turn into an exception.
//
// This header uses only the standard library, because runtime/torch/c10d
// includes it without the rest of CommsIR.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_FOREIGNTEXT_H
#define COMMSIR_RUNTIME_SUPPORT_FOREIGNTEXT_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace commsir {

/// The most bytes of such a text in an error.
inline constexpr size_t kMostForeignText = 1500;

/// Bytes of the UTF-8 character at `at`; 0: there is none.
inline size_t measureCharacter(const std::string &text, size_t at) {
  auto byte = static_cast<unsigned char>(text[at]);
  size_t length = byte < 0x80                   ? 1
                  : byte >= 0xC2 && byte < 0xE0 ? 2
                  : byte >= 0xE0 && byte < 0xF0 ? 3
                  : byte >= 0xF0 && byte < 0xF5 ? 4
                                                : 0;
  if (length > text.size() - at)
    return 0;
  for (size_t next = 1; next < length; ++next)
    if ((static_cast<unsigned char>(text[at + next]) & 0xC0) != 0x80)
      return 0;
  auto second = static_cast<unsigned char>(length > 1 ? text[at + 1] : 0);
  // Longer than need be, surrogates, and what is beyond Unicode.
  bool isNone =
      (byte == 0xE0 && second < 0xA0) || (byte == 0xED && second >= 0xA0) ||
      (byte == 0xF0 && second < 0x90) || (byte == 0xF4 && second >= 0x90);
  return isNone ? 0 : length;
}

/// Whether a terminal may obey the character of `length` bytes at `at`. UTF-8
/// has the control characters U+0080 to U+009F in two bytes.
inline bool isControl(const std::string &text, size_t at, size_t length) {
  auto byte = static_cast<unsigned char>(text[at + length - 1]);
  if (length == 2)
    return static_cast<unsigned char>(text[at]) == 0xC2 && byte < 0xA0;
  return length == 1 &&
         ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7F);
}

/// Returns what an error shows of a text that a file, a kernel or another
/// process gives: at most about `most` bytes, with "?" for each byte that is no
/// text.
inline std::string showForeign(const std::string &text,
                               size_t most = kMostForeignText) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    if (shown.size() >= most)
      return shown + " [...]";
    size_t length = measureCharacter(text, at);
    if (length == 0 || isControl(text, at, length))
      shown += '?';
    else
      shown.append(text, at, length);
    at += length ? length : 1;
  }
  return shown;
}

/// The same for a whole text.
inline std::string showWhole(const std::string &text) {
  return showForeign(text, text.size() + 1);
}

/// The same for a name that is quoted in a sentence.
inline std::string showName(const std::string &name) {
  return showForeign(name, 80);
}

/// The most bytes of a text that is quoted within a sentence.
inline constexpr size_t kMostQuotedText = 160;

/// Says that a store holds `text` where rank `rank` should have written
/// something else: "the store holds 'TEXT' in place of the text of rank N".
inline std::string describeForeign(const std::string &text, int64_t rank) {
  std::string shown = showForeign(text.substr(0, kMostQuotedText));
  if (text.size() > kMostQuotedText)
    shown += " [...] of " + std::to_string(text.size()) + " bytes";
  return "the store holds '" + shown + "' in place of the text of rank " +
         std::to_string(rank);
}

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_FOREIGNTEXT_H
