//===- CommsIRPlugin.cpp - CommsIR inside mlir-opt --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mlir-opt --load-dialect-plugin=CommsIRPlugin.so \
//            --load-pass-plugin=CommsIRPlugin.so \
//            --pass-pipeline='builtin.module(comms-to-cpu{ranks=8})'
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/support/Version.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include "llvm/Support/Compiler.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "CommsIR", commsir::getVersion(),
          [](mlir::DialectRegistry *registry) {
            mlir::comms::registerAllDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "CommsIR", commsir::getVersion(),
          [] { mlir::comms::registerPasses(); }};
}
