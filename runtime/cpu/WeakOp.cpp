//===- WeakOp.cpp - Synchronization records of ops ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the synchronization record of an op: "signal release sys".
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

/// Reads off the name what later is asked often.
static void classify(WeakOp &op) {
  StringRef name = op.name;
  op.isPut = name == "put" || name == "put_signal";
  op.isGet = name == "get";
  op.isBulkCopy = name == "bulk_copy";
  op.isBulkWait = name == "bulk_wait";
  op.isEngineCopy = name == "engine_copy";
  op.isPacketStore = name == "packet_store";
  op.isMultimem = name.starts_with("multimem");
  op.isFlush = name == "flush";
  op.isHost = name == "host";
  op.isOfCounter = name.contains("counter");
  op.isTold = op.isPacketStore || name == "poison_store";
  op.isStrong = op.isTold || name == "packet_load" || name == "poison_load" ||
                name == "poison_fill" || name == "multimem_reduce";
  op.releases = name == "put_signal";
  if (op.isBulkCopy)
    op.proxy = Proxy::Async;
  else if (op.isMultimem)
    op.proxy = Proxy::Alias;
  else if (op.isEngineCopy)
    op.proxy = Proxy::CopyEngine;
}

/// Bytes of a store that become visible together.
static int64_t findGrain(const WeakOp &op, unsigned broken) {
  if (!op.isPacketStore)
    return op.isStrong ? 4 : 8;
  if (broken & unsigned(Broken::Store8Whole))
    return 4;
  return broken & unsigned(Broken::Store16Whole) ? 8 : op.whole;
}

WeakOp cpu::parseWeakOp(StringRef text, unsigned broken) {
  WeakOp op;
  SmallVector<StringRef, 6> words;
  text.split(words, ' ', -1, false);
  if (words.empty())
    return op;
  op.name = words.front().str();
  classify(op);
  bool isBulk = op.isBulkCopy || op.isBulkWait;
  for (size_t i = 1; i < words.size(); ++i) {
    StringRef word = words[i];
    int64_t number = 0;
    bool isNumber = !word.getAsInteger(10, number);
    if (isBulk && isNumber)
      op.copies.push_back(number);
    else if (op.overGin && isNumber)
      op.context = number;
    op.releases |= word == "release" || word == "acq_rel";
    op.acquires |= word == "acquire" || word == "acq_rel";
    op.overGin |= word == "gin";
    if (word == "block" || word == "cluster")
      op.reach = 0;
    else if (word == "gpu")
      op.reach = 1;
    else if (word == "async")
      op.proxy = Proxy::Async;
    else if (word == "alias")
      op.proxy = Proxy::Alias;
    else if (word == "packets_cumulative")
      op.isCumulative = true;
    else if (word == "store16_whole")
      op.whole = 16;
    else if (word == "store128_whole")
      op.whole = 128;
  }
  op.grain = findGrain(op, broken);
  return op;
}
