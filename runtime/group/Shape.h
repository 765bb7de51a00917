//===- Shape.h - The shape of a collective call -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_SHAPE_H
#define COMMSIR_RUNTIME_GROUP_SHAPE_H

#include "runtime/group/Collective.h"

namespace commsir::group {

/// GPU: bytes of an all_reduce up to which one kernel of any size takes it, in
/// two shots, which up to here keep up with all else in little channel memory.
inline constexpr int64_t kMostSizedReduce = int64_t(4) << 20;

/// A checked call in numbers.
struct Shape {
  /// As in the dialect; "send_recv" for both ends of a transfer.
  std::string op, reduction, elementType;
  /// The caller's name for the element type.
  std::string typeName;
  size_t elementBytes = 0;
  /// Elements of one part; an array has one part, or one per rank.
  int64_t elements = 0, inputParts = 1, outputParts = 1;
  int64_t root = 0;
  /// "broadcast with root 2"; empty: the call has no root.
  std::string rootText;
  /// Participating ranks, if not all.
  std::vector<int64_t> members;
  /// send_recv: the lower rank sends to the higher.
  bool sendsUp = false;
  /// False: this rank has no such array.
  bool hasInput = false, hasOutput = false;
  char *input = nullptr, *output = nullptr;
  /// Separate parts of the arrays of the current call; the array pointer above
  /// is then null.
  llvm::ArrayRef<Array> inputList, outputList;
  /// Elements of a part per launch; GPU: all.
  int64_t chunk = 0;
  std::string algorithm, protocol;
  /// The library has chosen algorithm and protocol.
  bool isChosen = false;
  /// Arrays may have separate parts, on this rank or on another.
  bool isInParts = false;
  /// GPU: a reduction to one rank that runs as a reduction to all, to share its
  /// kernels.
  bool dropsElsewhere = false;
  /// Description for the other ranks, equal on all of them.
  std::string text;
  int64_t ranks = 0;
  bool onGpu = false;

  /// Everything that the kernel's text depends on, except the number of
  /// elements.
  std::string key() const;
  /// GPU: the kernel's last argument is the root, an index of 8 bytes, so that
  /// all roots share it.
  bool takesRoot() const;
  /// Writes a kernel for parts of `elements` elements. `direct`: the kernel
  /// writes to peers' outputs, which are windows.
  KernelRequest write(int64_t elements, bool direct = false) const;
  /// GPU: writes a kernel for parts of at most `most` elements. Each launch is
  /// given a multiple of `step`.
  KernelRequest writeSized(int64_t most, int64_t step) const;
  /// GPU: largest number of elements of a part at which such kernels are as
  /// fast as one compiled for that size; 0: never.
  int64_t mostSized() const;
  /// GPU: number of elements of a part for the next launch of a call that runs
  /// in pieces, when `left` remain. Equal on all ranks.
  int64_t pieceOf(int64_t left) const;
  /// Whether so many elements of each part are moved by a kernel that takes the
  /// parts where they lie.
  bool takesParts(int64_t elements) const;
  /// Writes that kernel. Its arguments are the parts of the input, then those
  /// of the output. It does not move a rank's data to itself.
  KernelRequest writeParts(int64_t elements) const;
};

/// Points the shape at the arrays of such a call. Returns false if the call
/// lacks what the shape needs.
bool pointAt(Shape &shape, const CollectiveCall &call);

llvm::Expected<Shape> resolveShape(const CollectiveCall &call,
                                   const Group &group);

/// Returns the reason why no kernel can be made for the call, or none if one
/// can.
std::optional<std::string> noKernelReason(const CollectiveCall &call,
                                          const Group &group);

/// Rounds `elements` up to a size that kernels are compiled for: at least 16,
/// with four sizes between powers of two, at most a quarter more.
int64_t sizeClass(int64_t elements);

/// Bytes per element of the named type, or none if there is no such type.
std::optional<size_t> elementBytesOf(llvm::StringRef type);

/// Writes a kernel for a fused collective whose arrays are as in the call.
/// `capacity`: maximum number of rows; launches then give the number of
/// elements. 0: exactly the rows of the call.
llvm::Expected<KernelRequest>
writeFused(const FusedCall &call, const Group &group, int64_t capacity = 0);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_SHAPE_H
