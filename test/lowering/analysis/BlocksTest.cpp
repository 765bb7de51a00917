//===- BlocksTest.cpp - Kernels with several blocks -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Blocks.h"

#include "dialect/Collectives.h"
#include "lowering/Register.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::comms;

namespace {

class Blocks : public testing::Test {
protected:
  Blocks() : context(registry()) {}

  static DialectRegistry registry() {
    DialectRegistry made;
    registerAllDialects(made);
    return made;
  }

  /// Whether a kernel with this op, which may use %team, %x and %n, is
  /// block-dependent.
  bool isDependent(StringRef op) {
    std::string text =
        ("comms.kernel @k(%x: memref<4x16xf32>, %n: memref<4xi32>) {\n"
         "%team = comms.team world\n" +
         op + "\ncomms.return\n}")
            .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module && isBlockDependent(*module->getOps<KernelOp>().begin());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Blocks, KernelsWithoutBlockNumbersHaveOneBlock) {
  EXPECT_FALSE(isDependent(""));
  EXPECT_FALSE(isDependent("comms.barrier %team block"));
}

TEST_F(Blocks, KernelsWithBlockNumbersHaveSeveralBlocks) {
  EXPECT_TRUE(isDependent("%b = comms.block_id"));
}

/// Each row of Collectives.def, those that are no CollectiveOpInterface too.
TEST_F(Blocks, EveryCollectiveSharesOutTiles) {
  for (const CollectiveKind &kind : getCollectiveKinds()) {
    std::string tail = "ins(%x : memref<4x16xf32>) outs(%x : memref<4x16xf32>)";
    std::string op = "comms." + kind.name.str() + " ";
    if (kind.reduces)
      op += "sum ";
    if (kind.hasRoot())
      op += "root 0 ";
    op += "%team ";
    if (kind.direction == Direction::OneToOne)
      op += "from 0 to 1 ";
    op += tail;
    if (kind.rowsVary)
      op += " send_rows(%n : memref<4xi32>) recv_rows(%n : memref<4xi32>) "
            "max_rows 4";
    context.getDiagEngine().registerHandler([](Diagnostic &) {});
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    std::string text =
        "comms.kernel @k(%x: memref<4x16xf32>, %n: memref<4xi32>) {\n"
        "%team = comms.team world\n" +
        op + "\ncomms.return\n}";
    module = parseSourceString<ModuleOp>(text, config);
    ASSERT_TRUE(module) << text;
    EXPECT_TRUE(isBlockDependent(*module->getOps<KernelOp>().begin())) << text;
  }
}

} // namespace
