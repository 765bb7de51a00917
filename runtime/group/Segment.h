//===- Segment.h - Memory that processes share ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// POSIX shared memory without a name: a memfd that peers open through /proc.
// Nothing is left behind, however processes end, and the size of /dev/shm (64
// MiB in many containers) is no limit.
//
// The segment's name contains a token, which peers read from the store, and its
// size is sealed. A peer therefore opens exactly the intended segment, and the
// segment keeps the size at which it was mapped, whatever a peer does.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_SEGMENT_H
#define COMMSIR_RUNTIME_GROUP_SEGMENT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace commsir::group {

/// Identifies a segment for peers. `open` checks everything that a peer
/// announces.
struct SegmentName {
  int64_t process = 0, file = -1;
  uint64_t bytes = 0;
  /// Secret shared by the maker and the ranks that may open it: letters and
  /// digits.
  std::string token;
};

/// A mapping of zeroed pages, which take memory when they are first touched.
class Segment {
public:
  Segment() = default;
  Segment(Segment &&other) noexcept { swap(other); }
  Segment &operator=(Segment &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Segment();

  /// Makes a segment; peers can open it until `seal`.
  static llvm::Expected<Segment> create(uint64_t bytes, llvm::StringRef token);
  /// Opens a segment. Usage error if this user has made none of that name, size
  /// and token.
  static llvm::Expected<Segment> open(const SegmentName &name);

  /// Whether its process has closed it: the number of its file is nobody's, or
  /// is another file's by now. False where this user may not look.
  static bool isClosed(const SegmentName &name);

  SegmentName name() const;
  /// Called once all peers have opened it.
  void seal();
  char *data() const { return mapping ? mapping->base : nullptr; }
  uint64_t size() const { return mapping ? mapping->bytes : 0; }

private:
  struct Mapping {
    Mapping(char *base, uint64_t bytes) : base(base), bytes(bytes) {}
    ~Mapping();
    char *const base;
    const uint64_t bytes;
  };
  /// Segments that this process made and has not sealed. Ranks that are threads
  /// of one process share them, so that memory has one address and race
  /// detectors recognize it.
  class OpenSegments;

  static llvm::Expected<Segment> map(int file, uint64_t bytes);
  void swap(Segment &other) {
    std::swap(mapping, other.mapping);
    std::swap(file, other.file);
    std::swap(process, other.process);
    std::swap(token, other.token);
  }
  std::shared_ptr<Mapping> mapping;
  int file = -1;
  /// Process that made the segment; -1: none.
  int process = -1;
  std::string token;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_SEGMENT_H
