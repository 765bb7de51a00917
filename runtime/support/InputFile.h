//===- InputFile.h - Files that a user names --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A name may lead to anything: a FIFO that nobody writes to, a device without
// an end, a file with a hole of terabytes.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_INPUTFILE_H
#define COMMSIR_RUNTIME_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>
#include <string>

namespace commsir::driver {

/// The most bytes of a text.
inline constexpr uint64_t kMostTextBytes = uint64_t(1) << 30;

/// Reads a regular file into memory. Another process may be writing the file,
/// which is why it is not mapped. Fails if `path` leads to something else, or
/// if the file has more than `most` bytes; never waits. The error says why,
/// without the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef path, uint64_t most = kMostTextBytes);

/// Same, and also reads a pipe, such as a shell's <(...), until its writers
/// have closed it. At most kMostTextBytes.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFileOrPipe(llvm::StringRef path);

/// Reads all that `file` gives: a pipe, a terminal, or a device. Fails if that
/// does not end within kMostTextBytes; the error has `name`.
llvm::Expected<std::string> readStream(int file, llvm::StringRef name);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_INPUTFILE_H
