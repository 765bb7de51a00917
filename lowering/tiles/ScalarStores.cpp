//===- ScalarStores.cpp - Stores of one element ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ScalarStores.h"

#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Number of the element that `store` writes, in row-major order.
static Value getFlatIndex(OpBuilder &builder, memref::StoreOp store) {
  Location loc = store.getLoc();
  Value flat = getIndex(builder, loc, 0);
  for (auto [position, index] : llvm::enumerate(store.getIndices())) {
    if (position == 0) {
      flat = index;
      continue;
    }
    Value extent =
        memref::DimOp::create(builder, loc, store.getMemref(), position);
    Value before = arith::MulIOp::create(builder, loc, flat, extent);
    flat = arith::AddIOp::create(builder, loc, before, index);
  }
  return flat;
}

void tiles::storeTilesOfOne(KernelOp kernel) {
  SmallVector<memref::StoreOp> stores;
  kernel.walk([&](memref::StoreOp store) { stores.push_back(store); });
  for (memref::StoreOp store : stores) {
    MemRefType type = store.getMemRefType();
    Operation *source = store.getMemref().getDefiningOp();
    bool shared = source ? isa<CommsDialect>(source->getDialect())
                         : llvm::is_contained(kernel.getBody().getArguments(),
                                              store.getMemref());
    if (!shared)
      continue;
    if (!type.getLayout().isIdentity() ||
        !type.getElementType().isSignlessIntOrFloat())
      continue;
    OpBuilder builder(store);
    Value tile = SplatOp::create(
        builder, store.getLoc(),
        RankedTensorType::get({1}, type.getElementType()), store.getValue());
    TileStoreOp::create(builder, store.getLoc(), tile, store.getMemref(),
                        getFlatIndex(builder, store), /*valid=*/Value());
    store.erase();
  }
}
