//===- KernelCalls.cpp - Kernels of a group, for C ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Spelling.h"
#include "runtime/capi/GroupHandle.h"
#include "runtime/jit/Sharing.h"
#include "runtime/support/GroupError.h"
#include "runtime/support/Json.h"
#include "runtime/support/Nesting.h"

using namespace commsir;
using capi::fail;
using capi::failNull;
using capi::failOther;
using capi::guard;
using capi::inTurn;
using capi::OpenGroup;
using capi::reportGroup;
using capi::runConcurrently;
using capi::textOf;

/// Reads the options of a kernel; false, with `bad` set, when they are wrong.
static bool readOptions(llvm::StringRef text, group::KernelRequest &request,
                        std::string &bad) {
  auto value = readJson(text);
  if (!value) {
    bad = llvm::toString(value.takeError());
    return false;
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object) {
    bad = "they are not an object";
    return false;
  }
  for (const auto &[name, entry] : *object) {
    llvm::StringRef key = name;
    auto number = entry.getAsInteger();
    auto string = entry.getAsString();
    if (key == "algorithm" && string)
      request.algorithm = string->str();
    else if (key == "impl" && string)
      request.impl = string->str();
    else if (key == "protocol" && string)
      request.protocol = string->str();
    else if (key == "blocks" && number)
      request.blocks = *number;
    else if (key == "threads" && number)
      request.threads = *number;
    else if (key == "cluster" && number)
      request.cluster = *number;
    else if (key == "check" && entry.getAsBoolean())
      request.check = *entry.getAsBoolean();
    else if (key == "concurrent" && entry.getAsBoolean())
      request.concurrent = *entry.getAsBoolean();
    else {
      bad = "'" + key.str() +
            "' is unknown or of the wrong type; there are algorithm, protocol, "
            "impl (texts), blocks, threads, cluster (numbers), check and "
            "concurrent (true or false)" +
            commsir::didYouMean(key, {"algorithm", "protocol", "impl", "blocks",
                                      "threads", "cluster", "concurrent"});
      return false;
    }
  }
  return true;
}

/// A kernel that was asked for before has its handle.
static commsir_kernel *handleOf(commsir_group &group,
                                group::GroupKernel &kernel) {
  for (const auto &known : group.kernels)
    if (&known->kernel == &kernel)
      return known.get();
  group.kernels.emplace_back(new commsir_kernel(group, kernel));
  return group.kernels.back().get();
}

commsir_status commsir_group_kernel(commsir_group *group, const char *source,
                                    const char *name, const char *options,
                                    commsir_kernel **kernel) {
  return inTurn(group, "making a kernel", [&](OpenGroup &open) {
    if (!source || !kernel)
      return failNull("an argument of commsir_group_kernel");
    if (driver::isBytecode(source))
      return fail(COMMSIR_USAGE, "the source of the kernel is MLIR bytecode: "
                                 "give the text that comms-opt makes of it");
    group::KernelRequest request;
    request.source = source;
    request.name = textOf(name);
    std::string bad;
    if (options && *options && !readOptions(options, request, bad))
      return fail(COMMSIR_USAGE, "options of the kernel: " + bad);
    auto made = open.group->prepare(request);
    if (!made)
      return reportGroup(made.takeError());
    *kernel = handleOf(*group, **made);
    return COMMSIR_OK;
  });
}

/// Whether no two arguments share memory that the kernel writes.
static llvm::Error checkSharing(const group::GroupKernel &kernel,
                                llvm::ArrayRef<group::Argument> arguments) {
  llvm::SmallVector<jit::GivenMemory, 8> given;
  for (auto [info, argument] : llvm::zip(kernel.args(), arguments)) {
    bool isMemory =
        info.kind == jit::ArgKind::Memory || info.kind == jit::ArgKind::Window;
    given.push_back({argument.data, isMemory ? info.bytes() : 0, info.written});
  }
  auto found = jit::findSharing(given);
  if (!found)
    return llvm::Error::success();
  return group::makeError(
      group::GroupError::Kind::Usage,
      "arguments '" + kernel.args()[found->first].name + "' and '" +
          kernel.args()[found->second].name + "' of kernel '" + kernel.name() +
          "' share memory, and the kernel writes the latter: give each memory "
          "of its own");
}

commsir_status commsir_kernel_launch(commsir_kernel *kernel,
                                     const commsir_argument *arguments,
                                     size_t count, void *stream) {
  if (!kernel || !capi::isWhole(kernel))
    return guard(
        [&] { return kernel ? failOther("a kernel") : failNull("kernel"); });
  return inTurn(&kernel->group, "a kernel launch", [&](OpenGroup &open) {
    if (count && !arguments)
      return failNull("an argument of commsir_kernel_launch");
    llvm::SmallVector<group::Argument, 8> given;
    for (const commsir_argument &one : llvm::ArrayRef(arguments, count))
      given.push_back({one.data, one.bytes});
    if (llvm::Error error = checkSharing(kernel->kernel, given))
      return reportGroup(std::move(error));
    return reportGroup(open.group->launch(kernel->kernel, given, stream));
  });
}

char *commsir_kernel_describe(commsir_kernel *kernel) {
  char *text = nullptr;
  if (kernel && !capi::isWhole(kernel)) {
    failOther("a kernel");
    return nullptr;
  }
  runConcurrently(kernel ? &kernel->group : nullptr, [&](OpenGroup &) {
    llvm::json::Array arguments, choices;
    for (const jit::ArgInfo &info : kernel->kernel.args()) {
      llvm::json::Array shape;
      for (int64_t dim : info.shape)
        shape.push_back(dim);
      arguments.push_back(
          llvm::json::Object{{"name", info.name},
                             {"kind", jit::stringifyArgKind(info.kind)},
                             {"type", info.elementType},
                             {"shape", std::move(shape)}});
    }
    for (const jit::Choice &choice : kernel->kernel.choices())
      choices.push_back(llvm::json::Object{{"op", choice.op},
                                           {"algorithm", choice.algorithm},
                                           {"protocol", choice.protocol},
                                           {"tile", choice.tileSize},
                                           {"tiles", choice.tiles}});
    text = capi::copyText(capi::render(
        llvm::json::Object{{"name", kernel->kernel.name()},
                           {"arguments", std::move(arguments)},
                           {"choices", std::move(choices)},
                           {"proof", jit::toJson(kernel->kernel.proof())}}));
    return COMMSIR_OK;
  });
  return text;
}
