//===- GroupCells.cpp - One-sided access to the windows of a group --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;
using group::CellSignal;
using group::CellWait;
using group::makeError;
using group::SignalKind;
using group::WaitKind;
using Kind = group::GroupError::Kind;

llvm::Error CudaGroup::checkPeer(int64_t peer) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  if (peer == settings.rank)
    return llvm::Error::success();
  std::string why = mesh->silenceReason(int(peer), /*mayEnd=*/true);
  if (why.empty())
    return llvm::Error::success();
  return makeError(Kind::Peer,
                   "rank " + llvm::Twine(peer) + " is gone: " + why);
}

/// A graph that has captured one-sided access keeps the group.
void CudaGroup::noteCapture(void *stream) {
  if (captureOf(stream))
    hasCaptured = true;
}

/// Unlike `copy`, does not wait for the group's last launch, which may wait for
/// a peer that waits for this copy.
llvm::Error CudaGroup::move(void *to, const void *from, size_t bytes,
                            void *stream) {
  CurrentContext current(cu, device->context());
  noteCapture(stream);
  return asGroupError(
      cu.check(cu.MemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                              reinterpret_cast<CUdeviceptr>(from), bytes,
                              static_cast<CUstream>(stream)),
               "copying between windows"));
}

llvm::Error CudaGroup::signalCell(const CellSignal &signal,
                                  void *streamPointer) {
  CurrentContext current(cu, device->context());
  auto cell = reinterpret_cast<CUdeviceptr>(signal.cell);
  auto *stream = static_cast<CUstream>(streamPointer);
  noteCapture(stream);
  return asGroupError(signal.kind == SignalKind::Set
                          ? signals.set(cell, signal.value, stream)
                          : signals.add(cell, signal.value, stream));
}

llvm::Error CudaGroup::signalCells(llvm::ArrayRef<CellSignal> some,
                                   void *streamPointer) {
  if (some.empty())
    return llvm::Error::success();
  CurrentContext current(cu, device->context());
  noteCapture(streamPointer);
  llvm::SmallVector<CUdeviceptr> cells;
  for (const CellSignal &signal : some)
    cells.push_back(reinterpret_cast<CUdeviceptr>(signal.cell));
  return asGroupError(signals.add(cells, some.front().value,
                                  static_cast<CUstream>(streamPointer)));
}

llvm::Error CudaGroup::waitCells(llvm::ArrayRef<CellWait> waits, void *stream) {
  if (waits.empty())
    return llvm::Error::success();
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  group::WindowUse use(waits.front().window);
  for (const CellWait &wait : waits)
    if (llvm::Error error = checkWait(wait))
      return error;
  CurrentContext current(cu, device->context());
  noteCapture(stream);
  return takeCells(waits, static_cast<CUstream>(stream));
}

llvm::Error CudaGroup::waitCell(const CellWait &wait, void *stream) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  if (wait.timeout > 0)
    return waitOnHost(wait);
  group::WindowUse use(wait.window);
  if (llvm::Error error = checkWait(wait))
    return error;
  CurrentContext current(cu, device->context());
  noteCapture(stream);
  if (wait.takes)
    return takeCells(wait, static_cast<CUstream>(stream));
  return asGroupError(signals.wait(reinterpret_cast<CUdeviceptr>(wait.cell),
                                   wait.value, wait.kind == WaitKind::Equal,
                                   static_cast<CUstream>(stream)));
}

/// All take the same value.
llvm::Error CudaGroup::takeCells(llvm::ArrayRef<CellWait> waits,
                                 CUstream stream) {
  {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    if (!takes.host) {
      auto record = records.take(*device);
      if (!record)
        return asGroupError(record.takeError());
      takes = *record;
    }
  }
  StreamSignals::Limit limit;
  uint64_t nanoseconds = toNanoseconds(timeout());
  limit.nanoseconds = nanoseconds ? nanoseconds : UINT64_MAX;
  limit.record = takes.device;
  llvm::SmallVector<StreamSignals::Awaited> awaited;
  for (const CellWait &wait : waits)
    awaited.push_back({reinterpret_cast<CUdeviceptr>(wait.cell),
                       uint32_t(wait.number),
                       wait.source < 0 ? abi::kNoPeer : uint32_t(wait.source)});
  return asGroupError(
      signals.take(awaited, waits.front().value, limit, stream));
}

/// The error of the first take that has given up; success: none has. Under
/// `kernelsMutex`.
llvm::Error CudaGroup::failedTake() const {
  if (!takes.host || !__atomic_load_n(&takes.host->valid, __ATOMIC_ACQUIRE))
    return llvm::Error::success();
  const abi::ErrorRecord &record = *takes.host;
  std::string whose = "any rank", why;
  if (record.peer != abi::kNoPeer) {
    whose = llvm::formatv("rank {0}", record.peer).str();
    why = mesh->absenceReason(int(record.peer));
  }
  return makeError(
      Kind::Peer,
      llvm::formatv(
          "rank {0} of group '{1}' got no signal from "
          "{2}: {3}\n  cell {4} of the group: observed {5}, expected >= {6}",
          settings.rank, settings.name, whose,
          why.empty() ? "the group's timeout has passed" : why, record.site,
          record.seen, record.wanted)
          .str());
}

llvm::Expected<int64_t> CudaGroup::readCell(const int64_t *own) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  std::lock_guard guard(controlMutex);
  if (auto error =
          cu.check(cu.MemcpyDtoHAsync(staging->host(),
                                      reinterpret_cast<CUdeviceptr>(own),
                                      sizeof(int64_t), control),
                   "reading a signal"))
    return asGroupError(std::move(error));
  if (auto error = waitForControl("reading a signal", patience()))
    return asGroupError(std::move(error));
  int64_t value;
  std::memcpy(&value, staging->host(), sizeof(value));
  return value;
}

/// The value of a cell that is waited for. The window is in use no longer than
/// that: what the wait asks next, as the caller's hook, may release it.
llvm::Expected<int64_t> CudaGroup::lookAt(const CellWait &wait) {
  group::WindowUse use(wait.window);
  if (llvm::Error error = checkWait(wait))
    return std::move(error);
  return readCell(wait.cell);
}

/// The host looks, and sees who dies and how long it takes.
llvm::Error CudaGroup::waitOnHost(const CellWait &wait) {
  auto start = std::chrono::steady_clock::now();
  auto unsupportedReason = [&]() -> std::string {
    for (int64_t peer = 0; peer < settings.ranks; ++peer) {
      if (peer == settings.rank || (wait.source >= 0 && peer != wait.source))
        continue;
      std::string why = mesh->silenceReason(int(peer));
      if (!why.empty())
        return llvm::formatv("rank {0} is gone: {1}", peer, why).str();
    }
    if (secondsSince(start) > wait.timeout)
      return llvm::formatv("the timeout of {0:f1} s has passed", wait.timeout)
          .str();
    return "";
  };
  while (true) {
    // Asked before the look: who goes may have signaled before.
    std::string why = unsupportedReason();
    auto value = lookAt(wait);
    if (!value)
      return value.takeError();
    if (wait.kind == WaitKind::Equal ? *value == wait.value
                                     : *value >= wait.value)
      return llvm::Error::success();
    if (!why.empty())
      return makeError(
          Kind::Peer,
          llvm::formatv("rank {0} of group '{1}' got no signal from "
                        "{2}: {3}\n  cell {4} of the group: observed {5}, "
                        "expected {6} {7}",
                        settings.rank, settings.name,
                        wait.source < 0
                            ? std::string("any rank")
                            : llvm::formatv("rank {0}", wait.source).str(),
                        why, wait.number, *value,
                        wait.kind == WaitKind::Equal ? "==" : ">=", wait.value)
              .str());
    if (group::isInterrupted())
      return makeError(Kind::Aborted, "interrupted while it waited");
    std::this_thread::yield();
  }
}
