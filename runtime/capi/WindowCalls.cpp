//===- WindowCalls.cpp - Windows of a group, for C ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/GroupHandle.h"

using namespace commsir;
using capi::failNull;
using capi::inTurn;
using capi::makeCall;
using capi::OpenGroup;
using capi::reportGroup;
using capi::runConcurrently;
using capi::textOf;

commsir_status commsir_window_allocate(commsir_group *group, size_t bytes,
                                       void **base) {
  return commsir_window_allocate_for(group, bytes, nullptr, base);
}

commsir_status commsir_window_allocate_for(commsir_group *group, size_t bytes,
                                           const char *purpose, void **base) {
  return inTurn(group, "making a window", [&](OpenGroup &open) {
    if (!base)
      return failNull("an argument of commsir_window_allocate");
    auto made = open.group->allocate(bytes, textOf(purpose));
    if (!made)
      return reportGroup(made.takeError());
    *base = *made;
    return COMMSIR_OK;
  });
}

commsir_status commsir_window_release(commsir_group *group, void *base) {
  return inTurn(group, "releasing a window", [&](OpenGroup &open) {
    return reportGroup(open.group->release(base));
  });
}

commsir_status commsir_window_adopt(commsir_group *group, void *own,
                                    size_t bytes, const uint64_t *parts) {
  return inTurn(group, "adopting a window", [&](OpenGroup &open) {
    if (!parts)
      return failNull("an argument of commsir_window_adopt");
    auto count = static_cast<size_t>(open.group->options().ranks);
    return reportGroup(open.group->adopt(own, bytes, {parts, count}));
  });
}

commsir_status commsir_window_share(commsir_group *group, void *own,
                                    size_t bytes) {
  return inTurn(group, "sharing a window", [&](OpenGroup &open) {
    return reportGroup(open.group->share(own, bytes));
  });
}

void commsir_window_forget(commsir_group *group, void *own) {
  inTurn(group, "forgetting a window", [&](OpenGroup &open) {
    open.group->forget(own);
    return COMMSIR_OK;
  });
}

void commsir_window_keep(commsir_group *group, void *own) {
  makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    open.group->keepView(own);
    return COMMSIR_OK;
  });
}

void commsir_window_drop(commsir_group *group, void *own) {
  makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    open.group->dropView(own);
    return COMMSIR_OK;
  });
}

int commsir_window_contains(commsir_group *group, const void *data,
                            size_t bytes) {
  bool contains = false;
  runConcurrently(group, [&](OpenGroup &open) {
    contains = open.group->isSymmetric(data, bytes);
    return COMMSIR_OK;
  });
  return contains;
}

void *commsir_window_peer(commsir_group *group, const void *data,
                          int64_t peer) {
  void *address = nullptr;
  runConcurrently(group, [&](OpenGroup &open) {
    address = open.group->peerAddress(data, peer);
    return COMMSIR_OK;
  });
  return address;
}
