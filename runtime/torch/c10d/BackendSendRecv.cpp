//===- BackendSendRecv.cpp - Sends and receives ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"
#include "runtime/torch/c10d/TensorLists.h"

using namespace commsir::torch_c10d;
using c10d::OpType;
using Self = commsir::torch_c10d::Backend;

WorkPtr Self::transfer(
    OpType type, const char *name, Tensors &tensors, int peer, int tag,
    std::function<WorkPtr(c10d::Backend &, Tensors &, int, int)> carry) {
  auto call = newCall(type, name, c10d::kUnsetTimeout, /*async=*/true);
  const at::Tensor &given = single(call->name, tensors);
  bool sends = type == OpType::SEND;
  at::Tensor tensor = sends ? call->input(given) : call->output(given);
  call->pointToPoint = true;
  call->root = peer;
  // Of two the lower one is 0.
  call->delegated = [=, peer = rank_ < peer ? 1 : 0](c10d::Backend &pair) {
    Tensors list{tensor};
    return carry(pair, list, peer, tag);
  };
  if (!given.is_cpu()) {
    call->notOwn = "point to point";
    return submit(call);
  }
  c10::weak_intrusive_ptr<c10d::Backend> self(
      c10::intrusive_ptr<c10d::Backend>::reclaim_copy(this));
  Transfer side(sends, rank_, peer, tag, tensor);
  auto fail = [self](const std::string &reason) {
    if (auto backend = self.lock())
      static_cast<Self &>(*backend).abortBecause(reason);
  };
  // Only when it begins: torch leaves a batch open in which a call is refused.
  auto check = [=, this] {
    TORCH_CHECK(peer != rank_, name, ": rank ", peer,
                " is this one: copy the tensor");
  };
  call->begins = [=, this, timeout = call->timeout] {
    check();
    return messages->begin(side, tensor, timeout, fail);
  };
  call->delegated = [=, this](c10d::Backend &gloo) {
    check();
    Tensors list{tensor};
    WorkPtr begun = carry(gloo, list, peer, side.fitting());
    return transfersOnCpu.watch(side, std::move(begun),
                                this->side(c10::kCPU).place("transfers"), fail);
  };
  return submit(call);
}

/// In a batch, the end says why a call was refused (see newCall).
WorkPtr Self::refuse(const std::function<WorkPtr()> &call) {
  try {
    return call();
  } catch (...) {
    if (!coalesced)
      throw;
    if (!refused)
      refused = std::current_exception();
    return nullptr;
  }
}

WorkPtr Self::send(Tensors &tensors, int to, int tag) {
  auto carry = [](c10d::Backend &other, Tensors &list, int peer, int used) {
    return other.send(list, peer, used);
  };
  return refuse([&] {
    checkRoot("send", to, size_);
    return transfer(OpType::SEND, "commsir:send", tensors, to, tag, carry);
  });
}

WorkPtr Self::recv(Tensors &tensors, int from, int tag) {
  auto carry = [](c10d::Backend &other, Tensors &list, int peer, int used) {
    return other.recv(list, peer, used);
  };
  return refuse([&] {
    checkRoot("recv", from, size_);
    return transfer(OpType::RECV, "commsir:recv", tensors, from, tag, carry);
  });
}

WorkPtr Self::recvAnysource(Tensors &tensors, int tag) {
  TORCH_CHECK(single("recvAnySource", tensors).is_cpu(),
              "commsir: recv on a GPU needs the sender (src=…): NCCL "
              "has no receive from any rank");
  return transfer(OpType::RECVANYSOURCE, "commsir:recvAnySource", tensors, -1,
                  tag, [](c10d::Backend &other, Tensors &list, int, int used) {
                    return other.recvAnysource(list, used);
                  });
}
