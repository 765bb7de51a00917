// RUN: comms-opt %s -split-input-file -verify-diagnostics --convert-comms-to-cpu

comms.kernel @tensor(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{not a vector: run comms-distribute-tiles first}}
  %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %tile, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// expected-error @+1 {{argument 'x' of type 'memref<?xf32>' must have a static shape}}
comms.kernel @open(%x: memref<?xf32>) attributes {ranks = 2 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{argument 'w' of type '!comms.window<?xf32>' has an open dimension}}
comms.kernel @window(%w: !comms.window<?xf32>) attributes {ranks = 2 : i64} {
  comms.return
}

// -----

comms.kernel @channel() attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{cannot be lowered for the CPU: lower it first}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<ll, 64xf32>
  comms.return
}

// -----

comms.kernel @chosen(%a: !comms.signal<1>, %b: !comms.signal<1>, %which: i1) attributes {ranks = 2 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %s = arith.select %which, %a, %b : !comms.signal<1>
  // expected-error @+1 {{that is not an argument of the kernel: use the argument itself}}
  comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<1>
  comms.return
}

// -----

comms.kernel @large() attributes {ranks = 2 : i64} {
  // expected-error @+1 {{needs scratch memory of more than 1 GiB a block}}
  %a = comms.scratch : memref<1000000000xf32, #comms.space<scratch>>
  comms.return
}

// -----

comms.kernel @part_of_a_word(%w: !comms.window<36xi64>, %flag: i32) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %own = comms.local %w : !comms.window<36xi64> -> memref<36xi64>
  // expected-error @+1 {{moves 6 bytes of a line, not 8, 16, 32, 64 or 128: run comms-distribute-tiles first}}
  %t = comms.packet_load %own[%c0] flag %flag assumes store128_whole : memref<36xi64> -> vector<3xf16>
  comms.return
}

// -----

module {
  module {
    // expected-error @+1 {{is in a nested module, but pipelines lower only the kernels of the outermost module}}
    comms.kernel @inner() attributes {ranks = 2 : i64} {
      comms.return
    }
  }
}
