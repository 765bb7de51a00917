// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: stands in the body of a comms.kernel or of a comms.role, not inside other control flow: every block has to run it, once}}
  comms.reduce_scatter sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<12x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 12 rows cannot be cut into 8 equal parts, one a rank; pad the input}}
  comms.reduce_scatter sum %t ins(%x : memref<12x64xbf16>) outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<60xbf16>, %y: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 60 elements cannot be cut into 8 equal parts, one a rank; pad the input}}
  comms.reduce_scatter sum %t ins(%x : memref<60xbf16>) outs(%y : memref<8xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: output 'memref<8x64xbf16>' has 512 elements; tiles of 64 make 64}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xbf16>, %y: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C16: cuts a row into parts, but a region needs the whole row; give the input one row or more for each rank}}
  comms.reduce_scatter sum %t ins(%x : memref<64xbf16>) outs(%y : memref<8xbf16>)
    consume(%w: tensor<64xf32>) {
      %s = comms.row_reduce max %w : tensor<64xf32> -> tensor<1xf32>
      %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<64xf32>
      %r = arith.truncf %b : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}
