// RUN: comms-opt %s --convert-comms-to-nvvm="threads=64" -split-input-file -verify-diagnostics
// RUN: not comms-opt %s --convert-comms-to-nvvm="threads=48" -split-input-file 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not comms-opt %s --convert-comms-to-nvvm="chip=sm_80 cluster=2" -split-input-file 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: not comms-opt %s --convert-comms-to-nvvm="chip=gfx90" -split-input-file 2>&1 | FileCheck %s --check-prefix=CHIP
// THREADS: has 48 threads a CTA: give a power of two from 1 to 1024
// CLUSTER: asks for clusters of 2 CTAs, which sm_80 does not have
// RUN: not comms-opt %s --convert-comms-to-nvvm="chip=sm_90 cluster=2 threads=1" -split-input-file 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: asks for clusters of 2 CTAs of one thread, which would all do the whole block's work: set cluster=1 or give 32 threads or more
// CHIP: errors.mlir:[[#@LINE+3]]:1: error: unsupported chip 'gfx90': give sm_80, sm_90, sm_100 or a later one

// expected-error @+1 {{needs a known number of ranks: give the pipeline the option ranks=N}}
comms.kernel @ranks() attributes {blocks = 1 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{needs a known number of blocks: give the pipeline the option blocks=N}}
comms.kernel @blocks() attributes {ranks = 2 : i64} {
  comms.return
}

// -----

comms.kernel @gin(%s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  // expected-error @+1 {{travels by GIN, for which the NCCL device library's ncclGin calls are needed: run comms-call-nccl first}}
  comms.signal inc %s[%c0] at %c0 of %team gin <context_id = 0> : !comms.signal<1>
  comms.return
}

// -----

comms.kernel @tensor(%x: memref<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has a tile of type 'tensor<64xf32>', not a short vector: run comms-distribute-tiles first}}
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.return
}

// -----

comms.kernel @shared(%x: memref<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  // expected-error @+1 {{needs more shared memory than the 232448 bytes of a CTA}}
  %s = comms.scratch : memref<100000xf32>
  comms.return
}

// -----

comms.kernel @tail(%w: !comms.window<64xf32>, %n: index) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xf32> -> memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{has a tile that is not whole, which multimem instructions cannot move: pad the array}}
  %t = comms.multimem_load_reduce sum %all[%c0] valid %n : memref<64xf32, #comms.space<multimem>> -> vector<4xf32>
  comms.return
}

// -----

// expected-error @+1 {{has a name that PTX cannot hold}}
comms.kernel @"all-reduce"() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  comms.return
}

// -----

comms.kernel @part_of_a_part(%w: !comms.window<36xi64>, %flag: i32) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %own = comms.local %w : !comms.window<36xi64> -> memref<36xi64>
  // expected-error @+1 {{moves 8 bytes of a line, not a multiple of 16: run comms-distribute-tiles first}}
  %t = comms.packet_load %own[%c0] flag %flag assumes store128_whole : memref<36xi64> -> vector<2xf32>
  comms.return
}

// -----

// What threads tell each other of a cell has no room in addition to this: one error,
// and it is the last.
comms.kernel @no_room_to_tell(%cells: !comms.signal<4>, %seen: memref<4xi64>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %all = comms.scratch : memref<29056xi64, #comms.space<shared>>
  // expected-error @+1 {{needs more shared memory than the 232448 bytes of a CTA}}
  %v = comms.read_signal %cells[%c0] : !comms.signal<4>
  memref.store %v, %all[%c0] : memref<29056xi64, #comms.space<shared>>
  memref.store %v, %seen[%c0] : memref<4xi64>
  comms.return
}

// -----

comms.kernel @lanes(%x: memref<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<64xf32>
  // expected-error @+1 {{cannot be lowered for the GPU: whole warps combine i32, by add, and, or, xor, min and max}}
  %s = gpu.subgroup_reduce add %v uniform : (f32) -> f32
  memref.store %s, %x[%c0] : memref<64xf32>
  comms.return
}
