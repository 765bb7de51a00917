// RUN: comms-opt %s --comms-expand-collectives | FileCheck %s

// Peers write into what the branch hands on, which is an argument of its block
// and not of the kernel: no argument of the kernel is marked for it, least of
// all the first.
// CHECK: comms.kernel @handed_on(%{{[^:]*}}: i32, %{{[^:]*}}: !comms.window<4096xf32>, %{{[^:]*}}: !comms.window<4096xf32>) attributes
// CHECK: ^bb1(%[[Y:.*]]: !comms.window<4096xf32>):
// CHECK: comms.peer %[[Y]] at
comms.kernel @handed_on(%n: i32, %x: !comms.window<4096xf32>, %y: !comms.window<4096xf32>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  cf.br ^next(%y : !comms.window<4096xf32>)
^next(%w: !comms.window<4096xf32>):
  comms.all_reduce sum %team ins(%x : !comms.window<4096xf32>) outs(%w : !comms.window<4096xf32>) {algorithm = "permutation", protocol = "push"}
  comms.return
}
