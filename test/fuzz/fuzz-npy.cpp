//===- fuzz-npy.cpp - The reader of .npy files never crashes --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fuzzer reads every byte that the reader reports, so that a false shape
// becomes an access outside of the buffer.
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Npy.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bytes = llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(reinterpret_cast<const char *>(data), size),
      "fuzzed.npy");
  auto npy = commsir::driver::Npy::parse(std::move(bytes), "fuzzed.npy");
  if (!npy) {
    llvm::consumeError(npy.takeError());
    return 0;
  }
  volatile unsigned sum = 0;
  for (char byte : npy->data())
    sum = sum + static_cast<unsigned char>(byte);
  return 0;
}
