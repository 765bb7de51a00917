//===- Runtime.cpp - The functions that compiled kernels call -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These run on the small stack of a block: they allocate little and leave the
// making of texts to the scheduler's own stack.
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/RuntimeSymbols.h"

#include "runtime/cpu/Scheduler.h"
#include "runtime/cpu/WeakMemory.h"

#include "llvm/ADT/bit.h"

#include <cstring>

using namespace commsir::cpu;

static Fiber &fiberOf(Context *context) {
  return *static_cast<Fiber *>(context->fiber);
}
static Scheduler &schedulerOf(Context *context) {
  return *fiberOf(context).worker->scheduler;
}

/// Address of cell `index` of signal or counter `arg` at `rank`. An index that
/// is no cell ends the run.
static int64_t *cellAt(Context *context, int32_t site, int64_t arg,
                       int64_t index, int64_t rank) {
  Scheduler &scheduler = schedulerOf(context);
  int64_t cells = scheduler.kernel.args()[arg].shape.front();
  if (index < 0 || index >= cells)
    scheduler.fail(fiberOf(context), site, {Failure::Cell, index, arg, cells});
  auto &table = scheduler.args[arg];
  return reinterpret_cast<int64_t *>(table.base + rank * table.stride) + index;
}

extern "C" {

static void commsir_cpu_signal(Context *context, int32_t site, int64_t arg,
                               int64_t index, int64_t kind, int64_t value,
                               int64_t rank) {
  Scheduler &scheduler = schedulerOf(context);
  Fiber &fiber = fiberOf(context);
  scheduler.maybeYield(fiber);
  int64_t *cell = cellAt(context, site, arg, index, rank);
  if (scheduler.weak) {
    scheduler.weak->signal(fiber, cell, rank, kind, value);
    return scheduler.maybeYield(fiber);
  }
  if (kind == 0) // set; 1 is inc, 2 is add.
    __atomic_store_n(cell, value, __ATOMIC_RELEASE);
  else
    __atomic_fetch_add(cell, kind == 1 ? 1 : value, __ATOMIC_ACQ_REL);
  scheduler.stored(fiber, reinterpret_cast<char *>(cell), 8);
  // A fiber that waits may continue before this block does.
  scheduler.maybeYield(fiber);
}

static void commsir_cpu_wait_cell(Context *context, int32_t site, int64_t arg,
                                  int64_t index, int64_t kind, int64_t value,
                                  int64_t from) {
  Wait wait;
  wait.kind = Wait::Cell;
  wait.site = site;
  wait.address = reinterpret_cast<char *>(
      cellAt(context, site, arg, index, context->rank));
  wait.compare = static_cast<uint8_t>(kind);
  wait.argument = static_cast<int32_t>(arg);
  wait.index = index;
  wait.value = value;
  wait.from = from;
  Scheduler &scheduler = schedulerOf(context);
  if (!scheduler.weak)
    return scheduler.waitFor(fiberOf(context), wait);
  auto *cell = reinterpret_cast<int64_t *>(wait.address);
  scheduler.maybeYield(fiberOf(context));
  while (!scheduler.weak->tryWait(fiberOf(context), cell, kind != 0, value))
    scheduler.waitFor(fiberOf(context), wait);
}

static int64_t commsir_cpu_read_cell(Context *context, int32_t site,
                                     int64_t arg, int64_t index) {
  int64_t *cell = cellAt(context, site, arg, index, context->rank);
  Scheduler &scheduler = schedulerOf(context);
  int64_t value = scheduler.readCell(fiberOf(context), site, cell);
  return scheduler.weak ? scheduler.weak->read(fiberOf(context), cell) : value;
}

static void commsir_cpu_reset_cell(Context *context, int32_t site, int64_t arg,
                                   int64_t index) {
  int64_t *cell = cellAt(context, site, arg, index, context->rank);
  Scheduler &scheduler = schedulerOf(context);
  scheduler.maybeYield(fiberOf(context));
  if (scheduler.weak)
    return scheduler.weak->reset(fiberOf(context), cell);
  __atomic_store_n(cell, 0, __ATOMIC_RELEASE);
  scheduler.stored(fiberOf(context), reinterpret_cast<char *>(cell), 8);
}

static void commsir_cpu_count(Context *context, int32_t site, int64_t arg,
                              int64_t index) {
  int64_t *cell = cellAt(context, site, arg, index, context->rank);
  if (schedulerOf(context).weak)
    return schedulerOf(context).weak->count(fiberOf(context), cell);
  __atomic_fetch_add(cell, 1, __ATOMIC_ACQ_REL);
  schedulerOf(context).stored(fiberOf(context), reinterpret_cast<char *>(cell),
                              8);
}

static void commsir_cpu_copy(Context *context, int32_t, char *source,
                             char *dest, int64_t bytes) {
  Scheduler &scheduler = schedulerOf(context);
  scheduler.maybeYield(fiberOf(context));
  if (scheduler.weak) {
    scheduler.weak->copy(fiberOf(context), source, dest, bytes);
    return scheduler.maybeYield(fiberOf(context));
  }
  if (bytes <= 0)
    return;
  std::memmove(dest, source, static_cast<size_t>(bytes));
  scheduler.stored(fiberOf(context), dest, bytes);
  scheduler.maybeYield(fiberOf(context));
}

static void commsir_cpu_fence(Context *context, int32_t) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (schedulerOf(context).weak)
    schedulerOf(context).weak->fence(fiberOf(context));
  schedulerOf(context).maybeYield(fiberOf(context));
}

static int64_t commsir_cpu_arrive(Context *context, int32_t site, int64_t first,
                                  int64_t stride, int64_t size, int64_t grid) {
  Scheduler &scheduler = schedulerOf(context);
  scheduler.maybeYield(fiberOf(context));
  if (scheduler.weak)
    scheduler.weak->beforeArrival(fiberOf(context));
  int64_t handle =
      scheduler.arrive(fiberOf(context), site, first, stride, size, grid != 0);
  if (scheduler.weak)
    scheduler.weak->arrived(fiberOf(context), handle);
  scheduler.maybeYield(fiberOf(context));
  return handle;
}

static void commsir_cpu_barrier_wait(Context *context, int32_t site,
                                     int64_t handle) {
  Scheduler &scheduler = schedulerOf(context);
  Fiber &fiber = fiberOf(context);
  BarrierState *barrier =
      scheduler.findBarrier(static_cast<uint64_t>(handle) >> 32);
  if (!barrier)
    scheduler.fail(fiber, site, {Failure::Barrier, 0, 0, 0});
  Wait wait;
  wait.kind = Wait::Barrier;
  wait.site = site;
  wait.barrier = barrier;
  wait.value = handle & 0xFFFFFFFF;
  scheduler.waitFor(fiber, wait);
  if (scheduler.weak)
    scheduler.weak->departed(fiber, handle);
}

static void commsir_cpu_stored(Context *context, char *address, int64_t bytes) {
  Scheduler &scheduler = schedulerOf(context);
  if (scheduler.weak)
    scheduler.weak->stored(fiberOf(context), address, bytes);
  else
    scheduler.stored(fiberOf(context), address, bytes);
  scheduler.maybeYield(fiberOf(context));
}

static void commsir_cpu_wait_packets(Context *context, int32_t site,
                                     char *address, int64_t packets,
                                     int32_t flag) {
  Wait wait;
  wait.kind = Wait::Packets;
  wait.site = site;
  wait.address = address;
  wait.count = packets;
  wait.value = flag;
  schedulerOf(context).waitFor(fiberOf(context), wait);
}

static void commsir_cpu_wait_line(Context *context, int32_t site,
                                  char *flagAddress, int32_t flag) {
  Wait wait;
  wait.kind = Wait::Packets;
  wait.site = site;
  wait.address = flagAddress;
  wait.count = 1;
  wait.value = flag;
  wait.inLine = true;
  schedulerOf(context).waitFor(fiberOf(context), wait);
}

static void commsir_cpu_wait_poison(Context *context, int32_t site,
                                    char *address, int64_t elements,
                                    int64_t elementBytes) {
  Wait wait;
  wait.kind = Wait::Poison;
  wait.site = site;
  wait.address = address;
  wait.count = elements;
  wait.elementBytes = static_cast<uint8_t>(elementBytes);
  schedulerOf(context).waitFor(fiberOf(context), wait);
}

static void commsir_cpu_fill_poison(Context *context, char *address,
                                    int64_t bytes) {
  for (int64_t i = 0; i + 2 <= bytes; i += 2)
    std::memcpy(address + i, &mlir::comms::cpu::kPoison16, 2);
}

static void commsir_cpu_lock(Context *context) {
  Scheduler &scheduler = schedulerOf(context);
  if (scheduler.peers)
    scheduler.peers->lock();
  else if (scheduler.options.fast)
    scheduler.reduceLock.lock();
}

static void commsir_cpu_unlock(Context *context) {
  Scheduler &scheduler = schedulerOf(context);
  if (scheduler.peers)
    scheduler.peers->unlock();
  else if (scheduler.options.fast)
    scheduler.reduceLock.unlock();
}

static void commsir_cpu_record_access(Context *context, int32_t site,
                                      int64_t kind, char *address,
                                      int64_t bytes) {
  Scheduler &scheduler = schedulerOf(context);
  if (bytes <= 0)
    return;
  fiberOf(context).worker->bytesMoved += bytes;
  if (scheduler.weak)
    scheduler.weak->access(fiberOf(context), kind == 1, address, bytes);
  if (scheduler.options.record)
    scheduler.options.record(context->rank, context->block, kind == 1, address,
                             bytes, scheduler.kernel.sites()[site]);
}

static void commsir_cpu_record_sync(Context *context, int32_t site) {
  Scheduler &scheduler = schedulerOf(context);
  if (scheduler.weak)
    scheduler.weak->beginOp(fiberOf(context), site);
  if (scheduler.options.record)
    scheduler.options.record(context->rank, context->block, false, nullptr, 0,
                             scheduler.kernel.sites()[site]);
}

static void commsir_cpu_out_of_bounds(Context *context, int32_t site,
                                      int64_t offset, int64_t count,
                                      int64_t limit) {
  schedulerOf(context).fail(fiberOf(context), site,
                            {Failure::OutOfBounds, offset, count, limit});
}

static void commsir_cpu_interrupt(Context *context, int32_t site) {
  schedulerOf(context).interrupt(fiberOf(context), site);
}

/// Where a processor has no register for a bf16, code generation carries it as
/// f32 and comes back by this function of compiler-rt's name. What was extended
/// loses zeros alone: kernels round by integer arithmetic
/// (comms-legalize-numerics), and NaN keep their bits.
static __bf16 truncateToBF16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  return llvm::bit_cast<__bf16>(static_cast<uint16_t>(bits >> 16));
}

/// Code generation calls these where a processor has no conversions of f16.
static float extendF16(_Float16 value) { return value; }

static _Float16 truncateToF16(float value) {
  return static_cast<_Float16>(value);
}

} // extern "C"

llvm::ArrayRef<commsir::jit::RuntimeSymbol> commsir::jit::getRuntimeSymbols() {
  // The initialiser also holds every function to its declaration in the ABI.
#define COMMSIR_X(name, result, parameters)                                    \
  {"commsir_cpu_" #name,                                                       \
   reinterpret_cast<void *>(                                                   \
       static_cast<result(*) parameters>(commsir_cpu_##name))},
  static const commsir::jit::RuntimeSymbol symbols[] = {
      COMMSIR_CPU_RUNTIME(COMMSIR_X){"__truncsfbf2",
                                     reinterpret_cast<void *>(truncateToBF16)},
      {"__extendhfsf2", reinterpret_cast<void *>(extendF16)},
      {"__truncsfhf2", reinterpret_cast<void *>(truncateToF16)}};
#undef COMMSIR_X
  return symbols;
}
