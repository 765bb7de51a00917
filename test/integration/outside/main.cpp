// A project that knows CommsIR by find_package alone: parses a kernel and
// expands it.
#include "lowering/Passes.h"
#include "lowering/Register.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

int main(int, char **argv) {
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  mlir::PassManager passes(&context);
  passes.addNestedPass<mlir::comms::KernelOp>(
      mlir::comms::createExpandCollectives());
  if (!module || failed(passes.run(*module)))
    return 1;
  module->print(llvm::outs());
}
