//===- Library.h - CommsIR's C API, opened at run time ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shim loads libcommsir.so by dlopen. It can therefore be built on any host
// with torch's headers and commsir.h, and still works, by delegation only, if
// the library is missing.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_LIBRARY_H
#define COMMSIR_RUNTIME_TORCH_C10D_LIBRARY_H

#include "runtime/capi/commsir.h"

#include <string>

namespace commsir::torch_c10d {

/// The C API functions that a process group uses.
#define COMMSIR_C10D_FUNCTIONS(X)                                              \
  X(commsir_abi_version)                                                       \
  X(commsir_error_message)                                                     \
  X(commsir_error_is_earlier)                                                  \
  X(commsir_free)                                                              \
  X(commsir_group_create)                                                      \
  X(commsir_group_destroy)                                                     \
  X(commsir_group_drop)                                                        \
  X(commsir_group_abort)                                                       \
  X(commsir_group_set_timeout)                                                 \
  X(commsir_set_interrupt)                                                     \
  X(commsir_group_poll)                                                        \
  X(commsir_group_stats)                                                       \
  X(commsir_group_collective)                                                  \
  X(commsir_prepare)                                                           \
  X(commsir_launch)                                                            \
  X(commsir_prepared_release)                                                  \
  X(commsir_group_collective_parts)                                            \
  X(commsir_group_ended)                                                       \
  X(commsir_group_why_not)                                                     \
  X(commsir_p2p_create)                                                        \
  X(commsir_p2p_destroy)                                                       \
  X(commsir_p2p_abort)                                                         \
  X(commsir_p2p_confirm)                                                       \
  X(commsir_p2p_leave)                                                         \
  X(commsir_p2p_reaches)                                                       \
  X(commsir_p2p_send)                                                          \
  X(commsir_p2p_receive)                                                       \
  X(commsir_transfer_wait)                                                     \
  X(commsir_transfer_is_over)                                                  \
  X(commsir_transfer_source)                                                   \
  X(commsir_transfer_free)

struct Library {
  // NOLINTBEGIN(readability-identifier-naming): names of the C API.
#define COMMSIR_C10D_MEMBER(NAME) decltype(&::NAME) NAME = nullptr;
  COMMSIR_C10D_FUNCTIONS(COMMSIR_C10D_MEMBER)
#undef COMMSIR_C10D_MEMBER
  // NOLINTEND(readability-identifier-naming)

  /// Opens the library once per process; it is never closed. Returns null and
  /// sets `why` if `path` cannot be opened or lacks a function.
  static const Library *open(const std::string &path, std::string &why);

  /// The message of this thread's last failed call.
  std::string lastError() const;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_LIBRARY_H
