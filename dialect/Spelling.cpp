//===- Spelling.cpp - Suggests the intended spelling ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Spelling.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using llvm::ArrayRef;
using llvm::StringRef;

StringRef commsir::closest(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef best;
  std::string lower = name.lower();
  unsigned bestDistance = std::max<size_t>(2, name.size() / 3) + 1;
  for (StringRef candidate : candidates) {
    unsigned distance =
        StringRef(lower).edit_distance(candidate.lower(), true, bestDistance);
    if (distance < bestDistance && distance < candidate.size()) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string commsir::didYouMean(StringRef name, ArrayRef<StringRef> candidates,
                                StringRef otherwise) {
  StringRef near = closest(name, candidates);
  return near.empty() ? otherwise.str()
                      : ("; did you mean '" + near + "'?").str();
}

std::string commsir::describeUnknown(StringRef name,
                                     ArrayRef<StringRef> known) {
  return ("'" + name + "': known are " + llvm::join(known, ", ")).str() +
         didYouMean(name, known);
}
