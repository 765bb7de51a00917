//===- OneSided.cpp - One-sided access to windows, for C ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/GroupHandle.h"

using namespace commsir;
using capi::fail;
using capi::reportGroup;

using capi::OpenGroup;
using OneSidedBody = llvm::function_ref<commsir_status(group::OneSided &)>;

/// One-sided access of any thread, also while another is in a collective: the
/// peer that this one waits for may need it to come there.
static commsir_status access(commsir_group *group, OneSidedBody body) {
  return capi::runConcurrently(
      group, [&](OpenGroup &open) { return body(open.oneSided); });
}

/// Runs a collective step that all ranks make.
static commsir_status together(commsir_group *group, const char *what,
                               OneSidedBody body) {
  return capi::inTurn(group, what,
                      [&](OpenGroup &open) { return body(open.oneSided); });
}

/// Hands out a number, or the error.
static commsir_status storeResult(llvm::Expected<int64_t> made, int64_t *out) {
  if (!made)
    return reportGroup(made.takeError());
  *out = *made;
  return COMMSIR_OK;
}

static commsir_status isUnknown(const char *what, int32_t kind) {
  return fail(COMMSIR_USAGE, "there is no kind " + llvm::Twine(kind) + " of " +
                                 what + ": it is 0 or 1");
}

static bool isKind(int32_t kind) {
  return kind == COMMSIR_SIGNAL_SET || kind == COMMSIR_SIGNAL_ADD;
}

static group::SignalKind kindOf(int32_t kind) {
  return kind == COMMSIR_SIGNAL_ADD ? group::SignalKind::Add
                                    : group::SignalKind::Set;
}

commsir_status commsir_put(commsir_group *group, int64_t peer, void *to,
                           const void *from, size_t bytes, void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.put(peer, to, from, bytes, stream));
  });
}

commsir_status commsir_get(commsir_group *group, int64_t peer, const void *from,
                           void *to, size_t bytes, void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.get(peer, from, to, bytes, stream));
  });
}

commsir_status commsir_signals_reserve(commsir_group *group, int64_t count,
                                       int64_t *first) {
  return together(group, "reserving signals", [&](group::OneSided &side) {
    if (!first)
      return fail(COMMSIR_USAGE, "first is a null pointer");
    return storeResult(side.reserve(count), first);
  });
}

commsir_status commsir_signals_release(commsir_group *group, int64_t first) {
  return together(group, "releasing signals", [&](group::OneSided &side) {
    return reportGroup(side.release(first));
  });
}

commsir_status commsir_signal(commsir_group *group, int64_t peer, int64_t cell,
                              int32_t kind, int64_t value, void *stream) {
  return access(group, [&](group::OneSided &side) {
    if (!isKind(kind))
      return isUnknown("signals", kind);
    return reportGroup(side.signal(peer, cell, kindOf(kind), value, stream));
  });
}

commsir_status commsir_put_signal(commsir_group *group, int64_t peer, void *to,
                                  const void *from, size_t bytes, int64_t cell,
                                  int32_t kind, int64_t value, void *stream) {
  return access(group, [&](group::OneSided &side) {
    if (!isKind(kind))
      return isUnknown("signals", kind);
    return reportGroup(side.putSignal(peer, to, from, bytes, cell, kindOf(kind),
                                      value, stream));
  });
}

commsir_status commsir_wait_signal(commsir_group *group, int64_t cell,
                                   int32_t kind, int64_t value, int64_t source,
                                   double timeout, void *stream) {
  return access(group, [&](group::OneSided &side) {
    if (kind != COMMSIR_WAIT_EQ && kind != COMMSIR_WAIT_GE)
      return isUnknown("waits", kind);
    return reportGroup(side.wait(cell,
                                 kind == COMMSIR_WAIT_EQ
                                     ? group::WaitKind::Equal
                                     : group::WaitKind::AtLeast,
                                 value, source, timeout, stream));
  });
}

commsir_status commsir_take_signal(commsir_group *group, int64_t cell,
                                   int64_t value, int64_t source,
                                   void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.take(cell, value, source, stream));
  });
}

commsir_status commsir_signal_others(commsir_group *group, int64_t first,
                                     int64_t value, void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.signalOthers(first, value, stream));
  });
}

commsir_status commsir_take_from_others(commsir_group *group, int64_t first,
                                        int64_t value, void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.takeFromOthers(first, value, stream));
  });
}

commsir_status commsir_read_signal(commsir_group *group, int64_t cell,
                                   int64_t *value) {
  return access(group, [&](group::OneSided &side) {
    if (!value)
      return fail(COMMSIR_USAGE, "value is a null pointer");
    return storeResult(side.read(cell), value);
  });
}

commsir_status commsir_reset_signal(commsir_group *group, int64_t cell,
                                    void *stream) {
  return access(group, [&](group::OneSided &side) {
    return reportGroup(side.reset(cell, stream));
  });
}
