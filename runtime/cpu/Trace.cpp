//===- Trace.cpp - A run as a Chrome trace --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Trace.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

static void writeSlice(json::OStream &out, const jit::Kernel &kernel,
                       const TraceSlice &slice) {
  bool waits = slice.site >= 0 && size_t(slice.site) < kernel.sites().size();
  out.object([&] {
    out.attribute("ph", "X");
    out.attribute("name", waits ? StringRef(kernel.sites()[slice.site].op)
                                : kernel.name());
    out.attribute("cat", waits ? "wait" : "run");
    out.attribute("pid", slice.rank);
    out.attribute("tid", slice.block);
    out.attribute("ts", double(slice.begin) / 1000);
    out.attribute("dur", double(slice.end - slice.begin) / 1000);
    out.attributeObject("args", [&] {
      out.attribute("launch", slice.launch);
      if (waits)
        out.attribute("source", kernel.sites()[slice.site].location);
    });
  });
}

/// Writes that the block running at that time has woken the block.
static void writeWake(json::OStream &out, const TraceSlice &slice) {
  out.object([&] {
    out.attribute("ph", "i");
    out.attribute("s", "t");
    out.attribute("name", "woken");
    out.attribute("cat", "wake");
    out.attribute("pid", slice.rank);
    out.attribute("tid", slice.block);
    out.attribute("ts", double(slice.begin) / 1000);
  });
}

static void writeName(json::OStream &out, StringRef what, int64_t rank,
                      int64_t block, const Twine &name) {
  out.object([&] {
    out.attribute("ph", "M");
    out.attribute("name", what);
    out.attribute("pid", rank);
    if (block >= 0)
      out.attribute("tid", block);
    out.attributeObject("args", [&] { out.attribute("name", name.str()); });
  });
}

std::string commsir::cpu::renderTrace(const jit::Kernel &kernel, int64_t ranks,
                                      ArrayRef<TraceSlice> slices,
                                      size_t dropped) {
  std::set<std::pair<int32_t, int32_t>> tracks;
  for (const TraceSlice &slice : slices)
    tracks.insert({slice.rank, slice.block});
  std::string text;
  raw_string_ostream os(text);
  json::OStream out(os);
  out.object([&] {
    out.attribute("displayTimeUnit", "ns");
    out.attributeObject("otherData", [&] {
      out.attribute("kernel", kernel.name());
      out.attribute("ranks", ranks);
      out.attribute("dropped slices", static_cast<int64_t>(dropped));
    });
    out.attributeArray("traceEvents", [&] {
      int32_t last = -1;
      for (auto [rank, block] : tracks) {
        if (rank != last)
          writeName(out, "process_name", rank, -1, "rank " + Twine(rank));
        last = rank;
        writeName(out, "thread_name", rank, block, "block " + Twine(block));
      }
      for (const TraceSlice &slice : slices)
        slice.site == kWoken ? writeWake(out, slice)
                             : writeSlice(out, kernel, slice);
    });
  });
  return text;
}
