//===- ChannelMemory.cpp - The channel memory of a config -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/ChannelMemory.h"

#include "lowering/Passes.h"
#include "lowering/Register.h"
#include "lowering/channels/Protocol.h"
#include "lowering/collectives/CollectiveInfo.h"
#include "runtime/support/Size.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include "llvm/Support/Process.h"

#include <algorithm>
#include <mutex>

using namespace commsir;
using namespace commsir::tune;
namespace comms = mlir::comms;

/// Bytes of channels for each byte of a message and each rank: at most three
/// buffers, two channels, packets of twice the bytes and partial sums of four
/// times the bytes, and tiles that are not full.
static constexpr uint64_t kMostTimes = 64;
/// Below this message size, tiles and partly filled slots dominate.
static constexpr int64_t kLeastMessage = 16 << 10;

uint64_t commsir::tune::boundChannels(const ConfigQuery &query) {
  return uint64_t(std::max(query.bytes, kLeastMessage)) *
         uint64_t(std::max<int64_t>(query.ranks, 1)) * kMostTimes;
}

llvm::Expected<uint64_t> commsir::tune::getChannelLimit() {
  uint64_t limit = uint64_t(1) << 30;
  auto text = llvm::sys::Process::GetEnv("COMMSIR_CHANNEL_BYTES");
  if (text && !parseSize(*text, limit))
    return llvm::createStringError(
        "COMMSIR_CHANNEL_BYTES: '" + *text +
        "' is not a number of bytes: write one like 536870912, 512M or 2G, or "
        "unset it for 1 GiB");
  return limit;
}

static llvm::SmallVector<mlir::Operation *>
listCollectives(comms::KernelOp kernel) {
  llvm::SmallVector<mlir::Operation *> all;
  kernel.walk([&](mlir::Operation *op) {
    if (comms::getCollectiveKind(op))
      all.push_back(op);
  });
  return all;
}

/// Expands the only collective of the only kernel in `module`.
static bool expand(mlir::ModuleOp module, const Config &config) {
  mlir::PassManager manager(module.getContext(), "builtin.module",
                            mlir::PassManager::Nesting::Explicit);
  manager.enableVerifier(false);
  comms::ExpandCollectivesOptions options;
  options.algorithm = config.algorithm;
  options.protocol = config.protocol;
  options.threads = config.threads;
  options.cluster = std::max<int64_t>(config.cluster, 1);
  for (auto kernel : module.getOps<comms::KernelOp>())
    if (!kernel.getBlocks() && config.blocks > 0)
      options.blocks = config.blocks;
  manager.nest<comms::KernelOp>().addPass(
      comms::createExpandCollectives(options));
  return mlir::succeeded(manager.run(module));
}

std::optional<uint64_t> commsir::tune::countChannels(
    comms::KernelOp kernel, mlir::Operation *collective, const Config &config) {
  auto all = listCollectives(kernel);
  size_t place = llvm::find(all, collective) - all.begin();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(kernel.getLoc());
  auto copy = mlir::cast<comms::KernelOp>(kernel->clone());
  module->push_back(copy);
  for (auto [i, op] : llvm::enumerate(listCollectives(copy)))
    if (i != place && op->use_empty())
      op->erase();
  int64_t own = comms::countChannelBytes(copy);
  mlir::ScopedDiagnosticHandler quiet(
      kernel.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  if (!expand(*module, config))
    return std::nullopt;
  return uint64_t(comms::countChannelBytes(copy) - own);
}

//===----------------------------------------------------------------------===//
// A kernel for a question
//===----------------------------------------------------------------------===//

/// The team, and which of its ranks are at the ends.
static llvm::StringRef writeTeam(const comms::CollectiveKind &kind) {
  switch (kind.direction) {
  case comms::Direction::AllToAll:
    return "%team";
  case comms::Direction::RootToAll:
  case comms::Direction::AllToRoot:
    return "root 0 %team";
  case comms::Direction::OneToOne:
    return "%team from 0 to 1";
  }
  return "";
}

/// A region that looks at a row as a whole, so that tiles are rows.
static std::string writeConsume(const ConfigQuery &query, mlir::Type type,
                                bool reduces) {
  std::string wide;
  llvm::raw_string_ostream(wide)
      << (reduces ? comms::getAccumulatorType(type) : type);
  std::string row = llvm::formatv("tensor<{0}x{1}>", query.columns, wide);
  return llvm::formatv(
      R"(
  consume (%in: {0}) {{
    %one = comms.row_reduce max %in : {0} -> tensor<1x{1}>
    %out = comms.broadcast_row %one : tensor<1x{1}> -> {0}
    comms.yield %out : {0}
  })",
      row, wide);
}

/// Nothing for what has no such kernel.
static std::optional<std::string> writeKernel(const ConfigQuery &query,
                                              mlir::MLIRContext *context) {
  const comms::CollectiveKind *kind = comms::findCollectiveKind(query.op);
  mlir::Type type = mlir::parseType(query.elementType, context);
  if (!kind || kind->rowsVary || !type || !type.isIntOrFloat() ||
      query.ranks < 1)
    return std::nullopt;
  using comms::Movement;
  bool exchange = kind->movement == Movement::Exchange;
  int64_t bits = std::max<int64_t>(type.getIntOrFloatBitWidth(), 8);
  int64_t part = std::max<int64_t>(
      query.bytes * 8 / bits / (exchange ? query.ranks : 1), 1);
  bool onRows = query.rows > 0 && query.columns > 0;
  auto arrayOf = [&](bool joined, mlir::Type element) {
    int64_t parts = joined ? query.ranks : 1;
    std::string shape =
        onRows
            ? llvm::formatv("{0}x{1}", query.rows * parts, query.columns).str()
            : std::to_string(part * parts);
    std::string text;
    llvm::raw_string_ostream(text)
        << (query.windows ? "!comms.window<" : "memref<") << shape << "x"
        << element << ">";
    return text;
  };
  std::string input =
      arrayOf(exchange || kind->movement == Movement::Cut, type);
  std::string output =
      arrayOf(exchange || kind->movement == Movement::Join,
              onRows && kind->reduces ? comms::getAccumulatorType(type) : type);
  std::string reduction = query.reduction.empty() ? "sum" : query.reduction;
  constexpr const char *text = R"(
comms.kernel @kernel(%x: {0}, %y: {1}) attributes {{ranks = {2} : i64} {{
  %team = comms.team world
  comms.{3} {4}{5} ins(%x : {0}) outs(%y : {1}){6}
  comms.return
})";
  return llvm::formatv(text, input, output, query.ranks, query.op,
                       kind->reduces ? reduction + " " : "", writeTeam(*kind),
                       onRows ? writeConsume(query, type, kind->reduces) : "")
      .str();
}

std::optional<uint64_t> commsir::tune::countChannels(const ConfigQuery &query,
                                                     const Config &config) {
  // One context for all, a thread at a time.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry made;
    comms::registerAllDialects(made);
    return made;
  }();
  static mlir::MLIRContext context(registry,
                                   mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<comms::CommsDialect>();
  mlir::ScopedDiagnosticHandler quiet(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  auto text = writeKernel(query, &context);
  if (!text)
    return std::nullopt;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  if (!module || !expand(*module, config))
    return std::nullopt;
  return uint64_t(
      comms::countChannelBytes(*module->getOps<comms::KernelOp>().begin()));
}
