// A ring over lamport hears of a receiver's poison through the other ranks: from three ranks on, its proof rests on
// packets_cumulative, over channels and lowered to memory. Nothing else of lamport does, nor do packets.
// RUN: comms-opt %s --comms-expand-collectives="ranks=2 algorithm=ring protocol=lamport" --comms-check-sync="ranks=2" | FileCheck %s --check-prefix=DIRECT
// RUN: comms-opt %s --comms-expand-collectives="ranks=3 algorithm=ring protocol=lamport" --comms-check-sync="ranks=3" | FileCheck %s --check-prefix=CHAIN
// RUN: comms-opt %s --comms-expand-collectives="ranks=3 algorithm=ring protocol=lamport" --comms-lower-channels --comms-check-sync="ranks=3" | FileCheck %s --check-prefixes=STATED,CHAIN
// RUN: comms-opt %s --comms-expand-collectives="ranks=2 algorithm=ring protocol=lamport" --comms-lower-channels --comms-check-sync="ranks=2" | FileCheck %s --check-prefix=DIRECT
// RUN: comms-opt %s --comms-expand-collectives="ranks=3 algorithm=two_shot protocol=lamport" --comms-lower-channels --comms-check-sync="ranks=3" | FileCheck %s --check-prefix=UNUSED
// RUN: comms-opt %s --comms-expand-collectives="ranks=3 algorithm=ring protocol=ll" --comms-lower-channels --comms-check-sync="ranks=3" | FileCheck %s --check-prefix=DIRECT

// STATED: comms.assumes = ["packets_cumulative"]
// CHAIN: assumptions = [{{.*}}"packets_cumulative"]{{.*}}verdict = "proven"
// DIRECT-NOT: packets_cumulative
// DIRECT: verdict = "proven"
// UNUSED-NOT: assumptions = [{{[^]]*}}packets_cumulative
// UNUSED: verdict = "proven"
comms.kernel @all_reduce(%x: memref<12x64xf32>, %y: memref<12x64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<12x64xf32>) outs(%y : memref<12x64xf32>)
  comms.return
}
