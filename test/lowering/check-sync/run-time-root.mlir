// Kernels whose root each launch gives are followed with every rank as the root, and with roots that change.
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives{ranks=4 algorithm=one_shot protocol=ll},comms-check-sync))' --split-input-file --verify-diagnostics | FileCheck %s
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives{ranks=4 algorithm=one_shot protocol=push},comms-check-sync))' --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: comms.kernel @all
// CHECK-SAME: verdict = "proven"
comms.kernel @all(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<256xf32>, %root: index {comms.run_time_root}) {
  %team = comms.team world
  comms.broadcast root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.reduce sum root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.gather root 0 %team ins(%x : memref<64xf32>) outs(%z : memref<256xf32>)
  comms.scatter root 0 %team ins(%z : memref<256xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// With one of four roots nobody sends what rank 0 waits for.
// expected-note @below {{seen with root 2 in launch 1, 2 in launch 2, 2 in launch 3}}
comms.kernel @one_of_four(%s: !comms.signal<1>, %root: index {comms.run_time_root}) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %rank = comms.rank %world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %epoch = comms.epoch
  %number = arith.index_cast %epoch : index to i64
  %sends = arith.cmpi ne, %root, %c2 : index
  %isOne = arith.cmpi eq, %rank, %c1 : index
  %both = arith.andi %sends, %isOne : i1
  scf.if %both {
    comms.signal inc %s[%c0] at %c0 of %world : !comms.signal<1>
  }
  %isZero = arith.cmpi eq, %rank, %c0 : index
  scf.if %isZero {
    // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
    // expected-note @below {{no rank has signaled it in this launch}}
    // expected-note @below {{rank 1 block 0 has ended launch 1 without it}}
    // expected-note @below {{rank 2 block 0 has ended launch 1 without it}}
    // expected-note @below {{rank 3 block 0 has ended launch 1 without it}}
    // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
    %t = comms.wait_signal %s[%c0] ge %number : !comms.signal<1>
  }
  comms.return
}

// -----

// It is right as long as the root stays: another one has been signaled in fewer launches.
// expected-note @below {{seen with root 0 in launch 1, 1 in launch 2, 3 in launch 3}}
comms.kernel @changes(%s: !comms.signal<1>, %root: index {comms.run_time_root}) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %rank = comms.rank %world
  %c0 = arith.constant 0 : index
  %epoch = comms.epoch
  %number = arith.index_cast %epoch : index to i64
  %isZero = arith.cmpi eq, %rank, %c0 : index
  scf.if %isZero {
    comms.signal inc %s[%c0] at %root of %world : !comms.signal<1>
  }
  %isRoot = arith.cmpi eq, %rank, %root : index
  scf.if %isRoot {
    // expected-error @below {{deadlock: rank 1, block 0 waits for signal s[0] >= 2; observed 1 (launch 2)}}
    // expected-note @below {{signaled in this launch by rank 0}}
    // expected-note @below {{rank 2 block 0 has ended launch 2 without it}}
    // expected-note @below {{rank 3 block 0 has ended launch 2 without it}}
    // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
    %t = comms.wait_signal %s[%c0] ge %number : !comms.signal<1>
  }
  comms.return
}
