comms.kernel @rows(%x: memref<1x64xf32>, %y: memref<1x64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1x64xf32>) outs(%y : memref<1x64xf32>)
  consume (%a: tensor<64xf32>) {
    %s = comms.row_reduce sum %a : tensor<64xf32> -> tensor<1xf32>
    %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<64xf32>
    %o = arith.subf %a, %b : tensor<64xf32>
    comms.yield %o : tensor<64xf32>
  }
  comms.return
}
