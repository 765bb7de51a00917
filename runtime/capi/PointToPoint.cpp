//===- PointToPoint.cpp - Sends and receives, for C -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPoint.h"

#include "runtime/capi/Group.h"

using namespace commsir;
using capi::fail;
using capi::guard;
using capi::reportGroup;

/// Transfers may outlive it.
struct commsir_p2p {
  std::shared_ptr<group::PointToPoint> messages;
};

struct commsir_transfer {
  std::shared_ptr<group::PointToPoint> owner;
  group::TransferPtr transfer;
};

static commsir_status isNull(const char *function) {
  return fail(COMMSIR_USAGE,
              llvm::Twine("an argument of ") + function + " is a null pointer");
}

commsir_status commsir_p2p_create(const char *name, int64_t rank, int64_t ranks,
                                  const commsir_store *store,
                                  commsir_p2p **p2p) {
  return guard([&] {
    if (!name || !store || !store->get || !store->set || !p2p)
      return isNull("commsir_p2p_create");
    auto made = group::PointToPoint::create(
        name, rank, ranks, std::make_unique<capi::CallerStore>(*store));
    if (!made)
      return reportGroup(made.takeError());
    *p2p = new commsir_p2p{std::move(*made)};
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_destroy(commsir_p2p *p2p) {
  return guard([&] {
    if (!p2p)
      return COMMSIR_OK;
    if (llvm::Error error = p2p->messages->leave(0)) {
      // A thread is in it to the end of the process.
      (void)new std::shared_ptr<group::PointToPoint>(p2p->messages);
      delete p2p;
      return reportGroup(std::move(error));
    }
    delete p2p;
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_abort(commsir_p2p *p2p, const char *reason) {
  return guard([&] {
    if (!p2p)
      return isNull("commsir_p2p_abort");
    p2p->messages->abort(reason ? reason : "");
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_leave(commsir_p2p *p2p, double timeout) {
  return guard([&] {
    if (!p2p)
      return isNull("commsir_p2p_leave");
    return reportGroup(p2p->messages->leave(timeout));
  });
}

commsir_status commsir_p2p_confirm(commsir_p2p *p2p) {
  return guard([&] {
    if (!p2p)
      return isNull("commsir_p2p_confirm");
    p2p->messages->confirm();
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_reaches(commsir_p2p *p2p, int64_t peer,
                                   double timeout, int *reached) {
  return guard([&] {
    if (!p2p || !reached)
      return isNull("commsir_p2p_reaches");
    auto said = p2p->messages->reaches(peer, timeout);
    if (!said)
      return reportGroup(said.takeError());
    *reached = *said;
    return COMMSIR_OK;
  });
}

using Begin =
    llvm::Expected<group::TransferPtr> (group::PointToPoint::*)(group::Message);

static commsir_status begin(const char *function, Begin how, commsir_p2p *p2p,
                            const commsir_message *message,
                            commsir_transfer **out) {
  return guard([&] {
    if (!p2p || !message || !message->what || !out ||
        (!message->data && message->bytes))
      return isNull(function);
    auto made =
        (p2p->messages.get()->*how)({message->peer, message->tag, message->data,
                                     message->bytes, message->what});
    if (!made)
      return reportGroup(made.takeError());
    *out = new commsir_transfer{p2p->messages, std::move(*made)};
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_send(commsir_p2p *p2p,
                                const commsir_message *message,
                                commsir_transfer **transfer) {
  return begin("commsir_p2p_send", &group::PointToPoint::send, p2p, message,
               transfer);
}

commsir_status commsir_p2p_receive(commsir_p2p *p2p,
                                   const commsir_message *message,
                                   commsir_transfer **transfer) {
  return begin("commsir_p2p_receive", &group::PointToPoint::receive, p2p,
               message, transfer);
}

commsir_status commsir_transfer_wait(commsir_transfer *transfer,
                                     double timeout) {
  return guard([&] {
    if (!transfer)
      return isNull("commsir_transfer_wait");
    return reportGroup(transfer->owner->wait(*transfer->transfer, timeout));
  });
}

int commsir_transfer_is_over(commsir_transfer *transfer) {
  return !transfer || transfer->owner->test(*transfer->transfer);
}

int64_t commsir_transfer_source(commsir_transfer *transfer) {
  return transfer ? transfer->transfer->source() : -1;
}

void commsir_transfer_free(commsir_transfer *transfer) { delete transfer; }
