//===- PointToPoint.cpp - Sends and receives, for C -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPoint.h"

#include "runtime/capi/GroupHandle.h"
#include "runtime/capi/HandlePool.h"
#include "runtime/capi/Sized.h"

#include <mutex>
#include <vector>

using namespace commsir;
using capi::fail;
using capi::guard;
using capi::reportGroup;

/// Transfers may outlive it.
struct commsir_p2p final : capi::Handle {
  static constexpr Kind kKind = Kind::Messages;
  explicit commsir_p2p(std::shared_ptr<group::PointToPoint> made)
      : Handle(kKind), messages(std::move(made)) {}
  /// Set only during a call.
  std::shared_ptr<group::PointToPoint> messages;

private:
  void end(bool) override { messages.reset(); }
};

struct commsir_transfer final : capi::Tagged {
  static constexpr Kind kKind = Kind::Transfer;
  commsir_transfer() : Tagged(kKind) {}
  struct Content {
    std::shared_ptr<group::PointToPoint> owner;
    group::TransferPtr transfer;
  } content;
};
using Transfers = capi::HandlePool<commsir_transfer>;

static commsir_status isOther(const char *function) {
  return fail(COMMSIR_USAGE,
              llvm::Twine("an argument of ") + function +
                  " is a pointer to something else, or to a freed object");
}

static commsir_status isNull(const char *function) {
  return fail(COMMSIR_USAGE,
              llvm::Twine("an argument of ") + function + " is a null pointer");
}

using Body = llvm::function_ref<commsir_status(group::PointToPoint &)>;

/// A call of any thread.
static commsir_status with(commsir_p2p *p2p, const char *function, Body body) {
  return guard([&] {
    if (!p2p)
      return isNull(function);
    if (!capi::isWhole(p2p))
      return isOther(function);
    capi::Handle::Call call(*p2p);
    if (!call)
      return fail(COMMSIR_ABORTED,
                  llvm::Twine(function) + ": another thread has destroyed it");
    return body(*p2p->messages);
  });
}

commsir_status commsir_p2p_create(const char *name, int64_t rank, int64_t ranks,
                                  const commsir_store *store,
                                  commsir_p2p **p2p) {
  return guard([&] {
    if (!name || !store || !p2p)
      return isNull("commsir_p2p_create");
    commsir_store functions;
    if (auto bad = capi::readStore(store, functions))
      return bad;
    auto made = group::PointToPoint::create(
        name, rank, ranks, std::make_unique<capi::CallerStore>(functions));
    if (!made)
      return reportGroup(made.takeError());
    *p2p = new commsir_p2p(std::move(*made));
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_destroy(commsir_p2p *p2p) {
  return guard([&] {
    if (!p2p)
      return COMMSIR_OK;
    if (!capi::isWhole(p2p))
      return isOther("commsir_p2p_destroy");
    std::shared_ptr<group::PointToPoint> messages;
    if (capi::Handle::Call call(*p2p); call)
      messages = p2p->messages;
    if (!messages || !p2p->finish())
      return COMMSIR_OK;
    // Calls of other threads end by that.
    llvm::Error error = messages->leave(0);
    if (error) // A thread is in it to the end of the process.
      (void)new std::shared_ptr<group::PointToPoint>(messages);
    return reportGroup(std::move(error));
  });
}

commsir_status commsir_p2p_abort(commsir_p2p *p2p, const char *reason) {
  return with(p2p, "commsir_p2p_abort", [&](group::PointToPoint &messages) {
    messages.abort(reason ? reason : "");
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_leave(commsir_p2p *p2p, double timeout) {
  return with(p2p, "commsir_p2p_leave", [&](group::PointToPoint &messages) {
    return reportGroup(messages.leave(timeout));
  });
}

commsir_status commsir_p2p_confirm(commsir_p2p *p2p) {
  return with(p2p, "commsir_p2p_confirm", [&](group::PointToPoint &messages) {
    messages.confirm();
    return COMMSIR_OK;
  });
}

commsir_status commsir_p2p_reaches(commsir_p2p *p2p, int64_t peer,
                                   double timeout, int *reached) {
  const char *function = "commsir_p2p_reaches";
  return with(p2p, function, [&](group::PointToPoint &messages) {
    if (!reached)
      return isNull(function);
    auto said = messages.reaches(peer, timeout);
    if (!said)
      return reportGroup(said.takeError());
    *reached = *said;
    return COMMSIR_OK;
  });
}

using Begin =
    llvm::Expected<group::TransferPtr> (group::PointToPoint::*)(group::Message);

static commsir_status begin(const char *function, Begin how, commsir_p2p *p2p,
                            const commsir_message *given,
                            commsir_transfer **out) {
  return with(p2p, function, [&](group::PointToPoint &messages) {
    if (!given || !out)
      return isNull(function);
    commsir_message message;
    if (auto bad = capi::readSized("commsir_message", given, message))
      return bad;
    if (!message.what || (!message.data && message.bytes))
      return isNull(function);
    auto made = (messages.*how)(
        {message.peer, message.tag, message.data, message.bytes, message.what});
    if (!made)
      return reportGroup(made.takeError());
    *out = Transfers::get().make({p2p->messages, std::move(*made)});
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
    if (!capi::isWhole(transfer))
      return isOther("commsir_transfer_wait");
    return reportGroup(
        transfer->content.owner->wait(*transfer->content.transfer, timeout));
  });
}

int commsir_transfer_is_over(commsir_transfer *transfer) {
  return !transfer || !capi::isWhole(transfer) ||
         transfer->content.owner->test(*transfer->content.transfer);
}

int64_t commsir_transfer_source(commsir_transfer *transfer) {
  return transfer && capi::isWhole(transfer)
             ? transfer->content.transfer->source()
             : -1;
}

void commsir_transfer_free(commsir_transfer *transfer) {
  if (transfer)
    Transfers::get().release(transfer);
}
