// Collectives whose root each launch gives: one kernel for all roots.
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives{ranks=4 blocks=2 algorithm=one_shot protocol=ll}))' --split-input-file --verify-diagnostics | FileCheck %s

// The argument is checked, and takes the place of the op's own root.
// CHECK-LABEL: comms.kernel @broadcast
// CHECK-SAME: %[[ROOT:[a-z]+]]: index
// CHECK: %[[RANK:.*]] = comms.rank
// CHECK: comms.check_bounds "root of broadcast" %[[ROOT]],
// CHECK: arith.cmpi eq, %[[RANK]], %[[ROOT]]
// CHECK: comms.recv %{{.*}} from %[[ROOT]]
comms.kernel @broadcast(%x: memref<64xf32>, %y: memref<64xf32>, %root: index {comms.run_time_root}) {
  %team = comms.team world
  comms.broadcast root 1 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// Others have no root.
// CHECK-LABEL: comms.kernel @all_gather
// CHECK-NOT: check_bounds
// CHECK: comms.return
comms.kernel @all_gather(%x: memref<64xf32>, %y: memref<256xf32>, %root: index {comms.run_time_root}) {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<64xf32>) outs(%y : memref<256xf32>)
  comms.return
}

// -----

comms.kernel @kind(%x: memref<64xf32>, %y: memref<256xf32>, %root: i64 {comms.run_time_root}) {
  %team = comms.team world
  // expected-error @below {{takes its root from an argument of type 'i64': comms.run_time_root must be on an argument of type index}}
  comms.gather root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<256xf32>)
  comms.return
}

// -----

comms.kernel @team(%x: memref<64xf32>, %y: memref<128xf32>, %root: index {comms.run_time_root}) {
  %world = comms.team world
  %team = comms.team_split %world inner 2
  // expected-error @below {{takes its root at run time in a team of 2 ranks: comms.run_time_root needs the team of all ranks (comms.team world)}}
  comms.gather root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<128xf32>)
  comms.return
}
