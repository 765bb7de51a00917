//===- Interrupt.h - Ctrl-C during an op ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python runs signal handlers on its main thread only when that thread asks for
// it, and torch's stable ABI cannot carry Python exceptions. An op whose wait
// was interrupted therefore fails with a RuntimeError, and the handler's
// exception (KeyboardInterrupt) is raised once Python continues.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_OPS_INTERRUPT_H
#define COMMSIR_RUNTIME_TORCH_OPS_INTERRUPT_H

namespace commsir::torch_ops {

/// In this scope, waits on the CPU can be interrupted if this is the main
/// thread of a Python process.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;
};

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_INTERRUPT_H
