// Every collective, over floats and integers, with and without arithmetic around it.

comms.kernel @sum(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}

comms.kernel @in_place(%x: !comms.window<8x64xbf16>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<8x64xbf16>) outs(%x : !comms.window<8x64xbf16>)
  comms.return
}

comms.kernel @average(%x: memref<1000xi32>, %y: memref<1000xi32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce avg %team ins(%x : memref<1000xi32>) outs(%y : memref<1000xi32>)
  comms.return
}

comms.kernel @bytes(%x: memref<1024xi8>, %y: memref<1024xi8>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1024xi8>) outs(%y : memref<1024xi8>)
  comms.return
}

comms.kernel @maximum(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce max %team ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

comms.kernel @part(%x: memref<8x64xf32>, %y: memref<2x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.reduce_scatter avg %team ins(%x : memref<8x64xf32>) outs(%y : memref<2x64xf32>)
  comms.return
}

comms.kernel @parts(%x: memref<2x64xf32>, %y: !comms.window<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<2x64xf32>) outs(%y : !comms.window<8x64xf32>)
  comms.return
}

comms.kernel @exchange(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

comms.kernel @from_root(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.broadcast root 2 %team ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

comms.kernel @to_root(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.reduce sum root 1 %team ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

comms.kernel @gathered(%x: memref<2x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.gather root 3 %team ins(%x : memref<2x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

comms.kernel @scattered(%x: memref<8x64xf32>, %y: memref<2x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.scatter root 0 %team ins(%x : memref<8x64xf32>) outs(%y : memref<2x64xf32>)
  comms.return
}

comms.kernel @moved(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.send_recv %team from 1 to 3 ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

// Rows are normalized behind the sum, with a residual and weights.
comms.kernel @normalized(%x: !comms.window<4x128xbf16>, %residual: memref<4x128xbf16>, %weight: memref<128xbf16>,
                         %y: memref<4x128xbf16>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x128xbf16>) outs(%y : memref<4x128xbf16>)
      args(%residual, %weight : memref<4x128xbf16>, memref<128xbf16>)
  consume (%sum: tensor<128xf32>, %r: tensor<128xbf16>, %w: tensor<128xbf16>) {
    %r32 = arith.extf %r : tensor<128xbf16> to tensor<128xf32>
    %a = arith.addf %sum, %r32 : tensor<128xf32>
    %sq = arith.mulf %a, %a : tensor<128xf32>
    %mean = comms.row_reduce avg %sq : tensor<128xf32> -> tensor<1xf32>
    %root = math.rsqrt %mean : tensor<1xf32>
    %scale = comms.broadcast_row %root : tensor<1xf32> -> tensor<128xf32>
    %b = arith.mulf %a, %scale : tensor<128xf32>
    %w32 = arith.extf %w : tensor<128xbf16> to tensor<128xf32>
    %c = arith.mulf %b, %w32 : tensor<128xf32>
    %d = arith.truncf %c : tensor<128xf32> to tensor<128xbf16>
    comms.yield %d : tensor<128xbf16>
  }
  comms.return
}

// Rows travel with a scale of their own.
comms.kernel @scaled(%x: memref<4x128xf32>, %y: memref<16x128xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<4x128xf32>) outs(%y : memref<16x128xf32>)
  produce (%row: tensor<128xf32>) {
    %most = comms.row_reduce max %row : tensor<128xf32> -> tensor<1xf32>
    %all = comms.broadcast_row %most : tensor<1xf32> -> tensor<128xf32>
    %part = arith.divf %row, %all : tensor<128xf32>
    %half = arith.truncf %part : tensor<128xf32> to tensor<128xbf16>
    comms.yield %half, %most : tensor<128xbf16>, tensor<1xf32>
  }
  consume (%half: tensor<128xbf16>, %most: tensor<1xf32>) {
    %all = comms.broadcast_row %most : tensor<1xf32> -> tensor<128xf32>
    %part = arith.extf %half : tensor<128xbf16> to tensor<128xf32>
    %row = arith.mulf %part, %all : tensor<128xf32>
    comms.yield %row : tensor<128xf32>
  }
  comms.return
}
