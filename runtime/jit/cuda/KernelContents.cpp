//===- KernelContents.cpp - A kernel as bytes -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// u64 bytes of the code; u64 zero; the code; then the fields of KernelContents
// in order (runtime/jit/Archive.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Archive.h"
#include "runtime/jit/cuda/CudaCompile.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

template <typename Archive>
static void visitContents(Archive &archive, KernelContents &contents) {
  archive.text(contents.name);
  archive.text(contents.entry);
  archive.text(contents.chip);
  archive.text(contents.linker);
  archive.number(contents.isPtx);
  visitDescription(archive, contents.description);
  archive.number(contents.shape.blocks);
  archive.number(contents.shape.threads);
  archive.number(contents.shape.cluster);
  archive.number(contents.shape.dynamicShared);
  archive.number(contents.shape.overlap);
  archive.number(contents.shape.shared);
  archive.number(contents.paramBytes);
  archive.number(contents.facts.registers);
  archive.number(contents.facts.sharedBytes);
  archive.number(contents.facts.stackBytes);
  bool calls = contents.nccl.has_value();
  archive.number(calls);
  if (!calls) {
    contents.nccl.reset();
    return;
  }
  if (!contents.nccl)
    contents.nccl.emplace();
  NcclRequirements &needs = *contents.nccl;
  archive.number(needs.lsaBarriers);
  archive.number(needs.railBarriers);
  archive.number(needs.contexts);
  archive.number(needs.signals);
  archive.number(needs.counters);
  archive.number(needs.reach);
  archive.number(needs.multimem);
  archive.text(contents.ncclCode);
}

std::string commsir::jit::encodeKernel(const KernelContents &contents,
                                       StringRef code) {
  std::string bytes;
  Writer writer{bytes};
  writer.raw(code.size());
  writer.raw(0);
  bytes += code;
  // The writer changes nothing; the one list of fields serves both ways.
  visitContents(writer, const_cast<KernelContents &>(contents));
  return bytes;
}

bool commsir::jit::decodeKernel(StringRef bytes, KernelContents &contents,
                                StringRef &code) {
  Reader reader{bytes};
  uint64_t size = reader.raw();
  if (reader.raw() != 0 || size > reader.in.size())
    return false;
  code = reader.in.take_front(size);
  reader.in = reader.in.drop_front(size);
  visitContents(reader, contents);
  return reader.good && reader.in.empty() && !code.empty() &&
         !contents.entry.empty() &&
         all_of(contents.description.args,
                [](const ArgInfo &argument) {
                  return argument.kind <= ArgKind::Scalar;
                }) &&
         (!contents.isPtx || code.back() == '\0');
}
