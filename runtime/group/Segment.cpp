//===- Segment.cpp - Memory that processes share --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Segment.h"

#include "runtime/group/Error.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

static llvm::Error failSystem(const llvm::Twine &what) {
  return makeError(GroupError::Kind::Usage, what + ": " + std::strerror(errno));
}

Segment::~Segment() {
  if (base)
    ::munmap(base, bytes);
  seal();
}

void Segment::seal() {
  if (file >= 0)
    ::close(file);
  file = -1;
}

SegmentName Segment::name() const { return {::getpid(), file, bytes}; }

llvm::Expected<Segment> Segment::map(int file, uint64_t bytes) {
  void *at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED)
    return failSystem("cannot map " + llvm::Twine(bytes) +
                      " bytes of shared memory");
  Segment segment;
  segment.base = static_cast<char *>(at);
  segment.bytes = bytes;
  return std::move(segment);
}

llvm::Expected<Segment> Segment::create(uint64_t bytes) {
  int file = ::memfd_create("commsir", MFD_CLOEXEC);
  if (file < 0)
    return failSystem("cannot make shared memory");
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    llvm::Error error = failSystem("cannot make " + llvm::Twine(bytes) +
                                   " bytes of shared memory");
    ::close(file);
    return std::move(error);
  }
  llvm::Expected<Segment> segment = map(file, bytes);
  if (segment)
    segment->file = file;
  else
    ::close(file);
  return segment;
}

llvm::Expected<Segment> Segment::open(const SegmentName &name) {
  std::string path = "/proc/" + std::to_string(name.process) + "/fd/" +
                     std::to_string(name.file);
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return failSystem(
        "cannot open the shared memory of process " +
        llvm::Twine(name.process) + " (" + path +
        "; the ranks of a group have to run on one host, as one user and with "
        "one view of its processes)");
  struct stat status = {};
  if (::fstat(file, &status) != 0 || status.st_size < 0 ||
      uint64_t(status.st_size) != name.bytes) {
    ::close(file);
    return makeError(GroupError::Kind::Usage,
                     path + " is not the memory that was announced: do the "
                            "ranks run on one host and in one container?");
  }
  llvm::Expected<Segment> segment = map(file, name.bytes);
  ::close(file);
  return segment;
}
