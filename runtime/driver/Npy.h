//===- Npy.h - Arrays in .npy files -----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_NPY_H
#define COMMSIR_RUNTIME_DRIVER_NPY_H

#include "runtime/support/Element.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace commsir::driver {

/// What --input takes, for errors about files that are missing.
constexpr char kInputForms[] =
    " (a value is a .npy file, a number, zeros, iota or random:SEED)";

/// A .npy file in memory. The shape was checked against the file's size: `data`
/// holds exactly as many bytes as the shape requires.
class Npy {
public:
  /// Opens `path`. The error names the path and the problem: no such file, not
  /// a .npy file, truncated, pickled objects, big-endian, Fortran order, or a
  /// shape that does not match the file's size.
  static llvm::Expected<Npy> open(llvm::StringRef path);

  /// Like `open`, for bytes in memory; `name` replaces the path in errors.
  static llvm::Expected<Npy> parse(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                   llvm::StringRef name);

  llvm::StringRef path() const { return name; }
  /// Element type. NumPy has no names for the types of ml_dtypes and writes raw
  /// bytes: '<V2' is read as bf16, '<V1' as f8E4M3FN (but '<f1' as f8E5M2).
  Element element() const { return type; }
  /// Whether the file gives only the width of elements (see `element`).
  bool isRaw() const { return raw; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  int64_t count() const { return elements; }
  llvm::StringRef data() const { return content; }

private:
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::string name;
  Element type = Element::F32;
  bool raw = false;
  llvm::SmallVector<int64_t> dims;
  int64_t elements = 0;
  llvm::StringRef content;
};

/// The header of a .npy file of that type and shape, padded as NumPy does.
std::string npyHeader(Element element, llvm::ArrayRef<int64_t> shape);

/// "8x64", or "scalar" for no dimension; -1 prints as "?".
std::string renderShape(llvm::ArrayRef<int64_t> shape);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_NPY_H
