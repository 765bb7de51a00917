//===- Sized.cpp - Structs of the C API that may grow ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Sized.h"

#include "runtime/capi/Error.h"

#include <algorithm>
#include <cstring>

using namespace commsir;

/// No struct of the C API comes near. A larger `size` is an address, or was
/// never set: the bytes behind it must not be read.
static constexpr size_t kMostBytes = 4096;

commsir_status capi::copySized(const char *name, const void *given, void *known,
                               size_t knownSize) {
  std::memset(known, 0, knownSize);
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof size || size % sizeof size || size > kMostBytes)
    return fail(COMMSIR_USAGE, llvm::Twine(name) + ".size is " +
                                   llvm::Twine(size) + "; set it to sizeof(" +
                                   name + ")");
  const char *bytes = static_cast<const char *>(given);
  if (size > knownSize &&
      std::any_of(bytes + knownSize, bytes + size, [](char b) { return b; }))
    return fail(COMMSIR_USAGE,
                llvm::Twine("the call sets a field of ") + name +
                    " that this library (version " + commsir_version() +
                    ") does not have; set the field to 0, or install the "
                    "library that belongs to the header");
  std::memcpy(known, given, std::min(size, knownSize));
  return COMMSIR_OK;
}
