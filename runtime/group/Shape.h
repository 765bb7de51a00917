//===- Shape.h - What a collective call asks for ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_SHAPE_H
#define COMMSIR_RUNTIME_GROUP_SHAPE_H

#include "runtime/group/Collective.h"

namespace commsir::group {

/// A call, checked and in numbers.
struct Shape {
  /// As in the dialect: "send_recv" for both of its ends.
  std::string op, reduction, elementType;
  /// What the caller takes the elements for.
  std::string typeName;
  size_t elementBytes = 0;
  /// Of one part; an array has one part, or one a rank.
  int64_t elements = 0, inputParts = 1, outputParts = 1;
  int64_t root = 0;
  /// Ranks that take part, where these are not all.
  std::vector<int64_t> members;
  /// send_recv: from the lower rank to the higher.
  bool sendsUp = false;
  /// Null where this rank has none.
  bool hasInput = false, hasOutput = false;
  char *input = nullptr, *output = nullptr;
  /// Parts that lie by themselves, of the call that the shape is used for; the
  /// pointer above is null then.
  llvm::ArrayRef<Array> inputList, outputList;
  /// Elements of a part that one launch takes; all, on GPUs.
  int64_t chunk = 0;
  std::string algorithm, protocol;
  /// Algorithm and protocol are this library's choice.
  bool isChosen = false;
  /// Arrays may be parts that lie apart, on this rank or on another.
  bool isInParts = false;
  /// GPU: a reduction to one rank, made as one to all: it shares their kernels.
  bool dropsElsewhere = false;
  /// For the other ranks: the same on all of them.
  std::string text;
  int64_t ranks = 0;
  bool onGpu = false;

  /// All that a kernel's text depends on, but for the elements.
  std::string key() const;
  /// A kernel for parts of `elements` elements; `direct`: that writes into the
  /// outputs of peers, which are windows.
  KernelRequest write(int64_t elements, bool direct = false) const;
  /// GPU: a kernel for parts of up to `most` elements, a multiple of `step` of
  /// which each launch is given.
  KernelRequest writeSized(int64_t most, int64_t step) const;
  /// GPU: elements of a part up to which such kernels carry the call out as
  /// quickly as one for that size alone; 0: they do not at all.
  int64_t mostSized() const;
  /// GPU: elements of a part that the next launch takes, of a call of which
  /// `left` are left and that goes in pieces. The same on all ranks.
  int64_t pieceOf(int64_t left) const;
  /// Whether so many elements of each part are moved by a kernel that takes the
  /// parts where they lie.
  bool takesParts(int64_t elements) const;
  /// That kernel: its arguments are the parts of the input, then those of the
  /// output. What a rank has for itself it does not move.
  KernelRequest writeParts(int64_t elements) const;
};

/// Gives the shape the arrays of such a call; false: the call has not what the
/// shape needs.
bool pointAt(Shape &shape, const CollectiveCall &call);

llvm::Expected<Shape> resolveShape(const CollectiveCall &call,
                                   const Group &group);

/// Why no kernel can be made for such a call; empty: it can.
std::optional<std::string> noKernelReason(const CollectiveCall &call,
                                          const Group &group);

/// The elements that kernels are made for: at least 16, and four sizes between
/// powers of two. At most a quarter more than `elements`.
int64_t sizeClass(int64_t elements);

/// Bytes of an element of the type of that name; none: there is no such type.
std::optional<size_t> elementBytesOf(llvm::StringRef type);

/// A kernel for a collective with arithmetic, whose arrays are as the call
/// says. `capacity`: not for the rows of the call, but for any number up to it;
/// launches are given how many elements there are. 0: for the call's rows.
llvm::Expected<KernelRequest>
writeFused(const FusedCall &call, const Group &group, int64_t capacity = 0);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_SHAPE_H
