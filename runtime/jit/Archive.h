//===- Archive.h - Serializes cache entries ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Serialization: numbers are little-endian i64, or the bits of f64; texts and
// lists follow their length. One function lists the fields of a struct for both
// writer and reader.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_ARCHIVE_H
#define COMMSIR_RUNTIME_JIT_ARCHIVE_H

#include "runtime/jit/Prepare.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"

#include <type_traits>

namespace commsir::jit {

/// Appends fields to a text.
struct Writer {
  std::string &out;
  void raw(uint64_t value) {
    char bytes[8];
    llvm::support::endian::write64le(bytes, value);
    out.append(bytes, sizeof(bytes));
  }
  template <typename T>
  void number(T &value) {
    raw(static_cast<uint64_t>(value));
  }
  void real(double &value) { raw(llvm::bit_cast<uint64_t>(value)); }
  void text(std::string &value) {
    raw(value.size());
    out += value;
  }
  template <typename List, typename Visit>
  void list(List &list, Visit visit) {
    raw(list.size());
    for (auto &item : list)
      visit(item);
  }
};

/// Reads fields from the front of a text. After the first missing field, all
/// others are zero or empty.
struct Reader {
  llvm::StringRef in;
  bool good = true;

  uint64_t raw() {
    if (in.size() < 8)
      return fail();
    uint64_t value = llvm::support::endian::read64le(in.data());
    in = in.drop_front(8);
    return value;
  }
  uint64_t fail() {
    good = false;
    in = {};
    return 0;
  }
  template <typename T>
  void number(T &value) {
    uint64_t bits = raw();
    value = static_cast<T>(bits);
    // The writer never produces a number that its field cannot hold.
    if (static_cast<uint64_t>(value) != bits)
      fail();
  }
  void real(double &value) { value = llvm::bit_cast<double>(raw()); }
  void text(std::string &value) {
    uint64_t size = raw();
    if (size > in.size())
      size = fail();
    value = in.take_front(size).str();
    in = in.drop_front(size);
  }
  template <typename List, typename Visit>
  void list(List &list, Visit visit) {
    uint64_t count = raw();
    list.clear();
    // Every item takes at least eight bytes.
    if (count > in.size() / 8)
      count = fail();
    for (uint64_t i = 0; i < count && good; ++i) {
      list.emplace_back();
      visit(list.back());
    }
  }
};
template <typename Archive>
void visitArgument(Archive &archive, ArgInfo &argument) {
  archive.text(argument.name);
  archive.number(argument.kind);
  archive.text(argument.elementType);
  archive.number(argument.elementBytes);
  archive.list(argument.shape, [&](int64_t &dim) { archive.number(dim); });
  archive.number(argument.hidden);
  archive.number(argument.poisoned);
  archive.number(argument.written);
  archive.number(argument.multimem);
  archive.text(argument.slots);
}

template <typename Archive>
void visitProof(Archive &archive, ProofInfo &proof) {
  archive.text(proof.digest);
  archive.text(proof.verdict);
  archive.number(proof.ranks);
  archive.number(proof.followedRanks);
  archive.number(proof.blocks);
  archive.number(proof.launches);
  for (std::vector<std::string> *texts :
       {&proof.assumptions, &proof.reasons, &proof.computes})
    archive.list(*texts, [&](std::string &text) { archive.text(text); });
}

template <typename Archive>
void visitDescription(Archive &archive, Description &description) {
  archive.list(description.args,
               [&](ArgInfo &argument) { visitArgument(archive, argument); });
  archive.list(description.choices, [&](Choice &choice) {
    archive.text(choice.op);
    archive.text(choice.algorithm);
    archive.text(choice.protocol);
    archive.number(choice.tileSize);
    archive.number(choice.tiles);
  });
  archive.list(description.sites, [&](SourceSite &site) {
    archive.text(site.op);
    archive.text(site.location);
    archive.text(site.detail);
  });
  archive.number(description.ranks);
  archive.number(description.lsaSize);
  archive.number(description.blocks);
  visitProof(archive, description.proof);
}

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_ARCHIVE_H
