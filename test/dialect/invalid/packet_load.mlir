// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: packets have 64 bits.
comms.kernel @k(%words: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C1: packets lie in contiguous memory of i64 in the default space, not 'memref<64xi32>'}}
  %t = comms.packet_load %words[%c0] flag %flag : memref<64xi32> -> tensor<16xf32>
  comms.return
}

// -----

// C1: packet memory is contiguous.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  %grid = builtin.unrealized_conversion_cast to memref<32xi64, strided<[2]>>
  // expected-error @+1 {{C1: packets lie in contiguous memory of i64 in the default space, not 'memref<32xi64, strided<[2]>>'}}
  %t = comms.packet_load %grid[%c0] flag %flag : memref<32xi64, strided<[2]>> -> tensor<16xf32>
  comms.return
}

// -----

// C2: a bit fills no packet.
comms.kernel @k(%packets: memref<64xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C2: elements of 8, 16, 32 or 64 bits fill packets, 'i1' does not}}
  %t = comms.packet_load %packets[%c0] flag %flag : memref<64xi64> -> tensor<16xi1>
  comms.return
}

// -----

// C3: the tile has 16 elements.
comms.kernel @k(%packets: memref<64xi64>) {
  %c0 = arith.constant 0 : index
  %c17 = arith.constant 17 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C3: 17 valid elements of a tile that has 16}}
  %t = comms.packet_load %packets[%c0] flag %flag valid %c17 : memref<64xi64> -> tensor<16xf32>
  comms.return
}

// -----

// C3: a negative number of elements.
comms.kernel @k(%packets: memref<64xi64>) {
  %c0 = arith.constant 0 : index
  %m1 = arith.constant -1 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C3: -1 valid elements of a tile that has 16}}
  %t = comms.packet_load %packets[%c0] flag %flag valid %m1 : memref<64xi64> -> tensor<16xf32>
  comms.return
}

// -----

// C4: 16 words need 16 packets.
comms.kernel @k(%packets: memref<64xi64>) {
  %c49 = arith.constant 49 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C4: 16 elements from offset 49 leave the packet memory, which has 64 elements}}
  %t = comms.packet_load %packets[%c49] flag %flag : memref<64xi64> -> tensor<16xf32>
  comms.return
}

// -----

// C4: 16 f64 need 32 packets.
comms.kernel @k(%packets: memref<64xi64>) {
  %c33 = arith.constant 33 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C4: 32 elements from offset 33 leave the packet memory, which has 64 elements}}
  %t = comms.packet_load %packets[%c33] flag %flag : memref<64xi64> -> tensor<16xf64>
  comms.return
}

// -----

// C5: a tile of unknown length.
comms.kernel @k(%packets: memref<64xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C5: the tile is 'tensor<?xf32>'; it needs a fixed number of elements}}
  %t = comms.packet_load %packets[%c0] flag %flag : memref<64xi64> -> tensor<?xf32>
  comms.return
}

// -----

// C4: 9 valid f16 need 5 packets, the last half full.
comms.kernel @k(%packets: memref<64xi64>) {
  %c60 = arith.constant 60 : index
  %c9 = arith.constant 9 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C4: 5 elements from offset 60 leave the packet memory}}
  %t = comms.packet_load %packets[%c60] flag %flag valid %c9 : memref<64xi64> -> tensor<16xf16>
  comms.return
}

// -----

// C4: three lines of 18 have 48 i64 that no rest takes.
comms.kernel @k(%lines: memref<54xi64>) {
  %c32 = arith.constant 32 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C4: 32 elements from offset 32 leave the packet memory, which has 48 elements}}
  %t = comms.packet_load %lines[%c32] flag %flag assumes store128_whole : memref<54xi64> -> tensor<64xf32>
  comms.return
}

// -----

// C6: memory of whole lines and their rests.
comms.kernel @k(%lines: memref<64xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C6: lines lie in memory of a static number of i64, a multiple of 18, not 'memref<64xi64>'}}
  %t = comms.packet_load %lines[%c0] flag %flag assumes store128_whole : memref<64xi64> -> tensor<32xf32>
  comms.return
}

// -----

// C6: memory of unknown size.
comms.kernel @k(%lines: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C6: lines lie in memory of a static number of i64}}
  %t = comms.packet_load %lines[%c0] flag %flag assumes store128_whole : memref<?xi64> -> tensor<32xf32>
  comms.return
}

// -----

// C7: 48 bf16 fill three quarters of a line.
comms.kernel @k(%lines: memref<36xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C7: a tile of 48 elements of 'bf16' fills no whole number of lines; use a multiple of 64, and `valid` for what exists}}
  %t = comms.packet_load %lines[%c0] flag %flag assumes store128_whole : memref<36xi64> -> tensor<48xbf16>
  comms.return
}

// -----

// C8: a line does not begin at 8.
comms.kernel @k(%lines: memref<36xi64>) {
  %c8 = arith.constant 8 : index
  %flag = arith.constant 7 : i32
  // expected-error @+1 {{C8: offset 8 is not a line's first; use a multiple of 16}}
  %t = comms.packet_load %lines[%c8] flag %flag assumes store128_whole : memref<36xi64> -> tensor<32xf32>
  comms.return
}
