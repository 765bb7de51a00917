// RUN: %python %S/emulate.py %s --ranks 2 --gpu "blocks=2 threads=64 chip=sm_90" --weak | FileCheck %s
// RUN: %python %S/emulate.py %s --ranks 2 --gpu "blocks=1 threads=32 chip=sm_80" --weak | FileCheck %s
// CHECK: the same bits

// Threads meet between the stores of a tile and the loads of its parts, and before the next row takes the memory.
comms.kernel @cuts(%x: !comms.window<3x512xf32>, %c: memref<3x512xf32>, %y: memref<3x512xf32>,
                   %w: !comms.window<5x96xf32>, %v: memref<5x40xf32>, %z: memref<5x1xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<3x512xf32>) outs(%y : memref<3x512xf32>)
      args(%c : memref<3x512xf32>)
  consume (%m: tensor<512xf32>, %cos: tensor<512xf32>) {
    %a = tensor.extract_slice %m[0] [255] [1] : tensor<512xf32> to tensor<255xf32>
    %b = tensor.extract_slice %m[255] [257] [1] : tensor<512xf32> to tensor<257xf32>
    %n = arith.negf %b : tensor<257xf32>
    %r = tensor.concat dim(0) %n, %a : (tensor<257xf32>, tensor<255xf32>) -> tensor<512xf32>
    %p = arith.mulf %m, %cos : tensor<512xf32>
    %u = arith.addf %p, %r : tensor<512xf32>
    comms.yield %u : tensor<512xf32>
  }
  comms.all_reduce sum %team ins(%w : !comms.window<5x96xf32>) outs(%v, %z : memref<5x40xf32>, memref<5x1xf32>)
  consume (%m: tensor<96xf32>) {
    %a = tensor.extract_slice %m[3] [40] [1] : tensor<96xf32> to tensor<40xf32>
    %b = tensor.extract_slice %m[50] [46] [1] : tensor<96xf32> to tensor<46xf32>
    %s = comms.row_reduce sum %b : tensor<46xf32> -> tensor<1xf32>
    %one = tensor.extract_slice %a[7] [1] [1] : tensor<40xf32> to tensor<1xf32>
    %t = arith.addf %s, %one : tensor<1xf32>
    comms.yield %a, %t : tensor<40xf32>, tensor<1xf32>
  }
  comms.return
}
