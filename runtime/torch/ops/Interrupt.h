//===- Interrupt.h - Ctrl-C during an op ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python runs the handlers of signals on its main thread, when that asks for
// it, and torch's stable ABI carries no exceptions of Python's. So an op whose
// wait has been interrupted fails with a RuntimeError, and what the handler has
// raised (KeyboardInterrupt) is raised as soon as Python goes on.
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
