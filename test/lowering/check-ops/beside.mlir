// RUN: comms-opt %s -split-input-file -verify-diagnostics -comms-check-ops

// An op next to a kernel would be compiled with it, and be called where generated code calls a function of C.

// expected-error @+1 {{'llvm.func' op is not allowed next to a kernel: only kernels are compiled, and they call no functions; remove it}}
llvm.func @memcpy(%a: !llvm.ptr, %b: !llvm.ptr, %c: i64) -> !llvm.ptr {
  llvm.return %a : !llvm.ptr
}
comms.kernel @k() {
  comms.return
}

// -----

// expected-error @+1 {{'llvm.mlir.global' op is not allowed next to a kernel}}
llvm.mlir.global internal constant @text("echo")
comms.kernel @k() {
  comms.return
}

// -----

// expected-error @+1 {{'memref.global' op is not allowed next to a kernel}}
memref.global "private" @g : memref<4xf32>
comms.kernel @k() {
  comms.return
}

// -----

comms.kernel @k() {
  comms.return
}
// expected-error @+1 {{'builtin.module' op contains a kernel in a nested module}}
module {
  comms.kernel @inner() {
    comms.return
  }
}

// -----

// expected-error @+1 {{attribute 'llvm.module_asm' has no place in the module of a kernel or on the kernel: leave it out}}
module attributes {llvm.module_asm = [".globl memcpy", "memcpy: ud2"]} {
  comms.kernel @k() {
    comms.return
  }
}

// -----

// So are attributes of other dialects: dlti's would give an index another width than is proven.

// expected-error @+1 {{attribute 'gpu.container_module' has no place}}
module attributes {gpu.container_module} {
  comms.kernel @k() {
    comms.return
  }
}

// -----

// expected-error @+1 {{attribute 'llvm.target_features' has no place}}
comms.kernel @k() attributes {llvm.target_features = "+avx512f"} {
  comms.return
}

// -----

// expected-error @+1 {{attribute 'llvm.align' has no place}}
comms.kernel @k(%x: memref<4xf32> {llvm.align = 4096 : i64}) {
  comms.return
}
