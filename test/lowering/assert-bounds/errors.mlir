// RUN: comms-opt %s -comms-assert-bounds -split-input-file -verify-diagnostics

comms.kernel @beyond(%x: memref<100xf32>) {
  %c5 = arith.constant 5 : index
  %c19 = arith.constant 19 : index
  %c95 = arith.muli %c5, %c19 : index
  // expected-error @+1 {{'comms.tile_load' op read of x out of bounds: offset 95, count 10, limit 100}}
  %a = comms.tile_load %x[%c95] : memref<100xf32> -> tensor<10xf32>
  comms.return
}

// -----

comms.kernel @negative(%x: memref<100xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %off = arith.subi %c0, %c1 : index
  %a = comms.splat %v : f32 -> tensor<10xf32>
  // expected-error @+1 {{'comms.tile_store' op write of x out of bounds: offset -1, count 10, limit 100}}
  comms.tile_store %a, %x[%off] : tensor<10xf32>, memref<100xf32>
  comms.return
}

// -----

comms.kernel @no_room_anywhere(%x: memref<5xf32>, %p: !comms.window<5xf32>, %n: index) attributes {ranks = 2 : i64} {
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %team = comms.team world
  %b = comms.block_id
  %off = arith.addi %b, %c3 : index
  // expected-error @+1 {{'comms.put' op write of p out of bounds: every offset that is possible, count 3, limit 5}}
  comms.put %x[%b] to %p[%off] count %c3 at %b of %team : memref<5xf32>, !comms.window<5xf32>
  comms.return
}

// -----

comms.kernel @packets(%w: !comms.window<8xi64>, %f: i32) {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.addi %c3, %c4 : index
  %m = comms.local %w : !comms.window<8xi64> -> memref<8xi64>
  // expected-error @+1 {{'comms.packet_load' op read of w out of bounds: offset 7, count 2, limit 8}}
  %a = comms.packet_load %m[%c7] flag %f : memref<8xi64> -> tensor<3xbf16>
  comms.return
}

// -----

comms.kernel @extent(%x: memref<100xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c11 = arith.addi %c10, %c1 : index
  // expected-error @+1 {{'comms.tile_load' op `valid` of a tile out of bounds: offset 0, count 11, limit 10}}
  %a = comms.tile_load %x[%c0] valid %c11 : memref<100xf32> -> tensor<10xf32>
  comms.return
}

// -----

comms.kernel @cell(%s: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %c2 = arith.constant 2 : index
  %c4 = arith.muli %c2, %c2 : index
  %team = comms.team world
  %b = comms.block_id
  // expected-error @+1 {{'comms.signal' op cell of s out of bounds: offset 4, count 1, limit 4}}
  comms.signal inc %s[%c4] at %b of %team : !comms.signal<4>
  comms.return
}
