//===- NoFiles.h - A process that opens no more files -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A location in MLIR text may name any file. MLIR's handler of diagnostics
// opens that file to show a line of it: a private one, or a FIFO that nobody
// writes to. Where the handler can be given a file system, it gets an empty
// one; comms-opt and comms-translate, whose handlers are MLIR's own, open no
// more files instead.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NOFILES_H
#define COMMSIR_LOWERING_NOFILES_H

#include <sys/resource.h>

namespace mlir::comms {

/// While it lives, this process can open no file. Files that are open stay so.
class NoFiles {
public:
  NoFiles() {
    if (getrlimit(RLIMIT_NOFILE, &before))
      return;
    rlimit none = {0, before.rlim_max};
    isSet = setrlimit(RLIMIT_NOFILE, &none) == 0;
  }
  ~NoFiles() {
    if (isSet)
      setrlimit(RLIMIT_NOFILE, &before);
  }
  NoFiles(const NoFiles &) = delete;
  NoFiles &operator=(const NoFiles &) = delete;

private:
  rlimit before = {};
  bool isSet = false;
};

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_NOFILES_H
