// RUN: comms-opt %s -comms-distribute-tiles -split-input-file -verify-diagnostics

comms.kernel @dynamic(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %a = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{has a value of type 'tensor<?xf32>': a tile is a tensor of rank 1 with a static length}}
  %b = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  comms.return
}

// -----

comms.kernel @matrix() {
  // expected-error @+1 {{has a value of type 'tensor<4x4xf32>'}}
  %a = arith.constant dense<1.0> : tensor<4x4xf32>
  comms.return
}

// -----

comms.kernel @extract(%x: memref<8xf32>, %y: memref<8xf32>, %i: index) {
  %a = comms.tile_load %x[%i] : memref<8xf32> -> tensor<8xf32>
  // expected-error @+1 {{has no meaning for one vector of a tile}}
  %s = tensor.extract %a[%i] : tensor<8xf32>
  memref.store %s, %y[%i] : memref<8xf32>
  comms.return
}

// -----

comms.kernel @while(%x: memref<8xf32>, %c: i1) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  // expected-error @+1 {{carries a tile: only scf.for and scf.if can}}
  %r = scf.while (%t = %a) : (tensor<8xf32>) -> tensor<8xf32> {
    scf.condition(%c) %t : tensor<8xf32>
  } do {
  ^bb0(%t: tensor<8xf32>):
    scf.yield %t : tensor<8xf32>
  }
  comms.return
}

// -----

comms.kernel @long_vector(%x: memref<32xf32>, %y: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{still has a value of type 'vector<32xf32>' after comms-distribute-tiles}}
  %a = vector.load %x[%c0] : memref<32xf32>, vector<32xf32>
  vector.store %a, %y[%c0] : memref<32xf32>, vector<32xf32>
  comms.return
}

// -----

comms.kernel @average(%x: memref<200xi8>, %y: memref<1xi8>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<200xi8> -> tensor<200xi8>
  // expected-error @+1 {{averages 200 elements of 'i8', which cannot hold that number; extend the tile first}}
  %s = comms.row_reduce avg %a : tensor<200xi8> -> tensor<1xi8>
  comms.tile_store %s, %y[%c0] : tensor<1xi8>, memref<1xi8>
  comms.return
}

// -----

comms.kernel @channel(%x: memref<16xf32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<pull, 16xf32>
  %a = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  // expected-error @+1 {{has no meaning for one vector of a tile}}
  comms.send %a on %ch[%c0] : tensor<16xf32>, !comms.channel<pull, 16xf32>
  comms.return
}

// -----

comms.kernel @channelOfOne(%x: memref<1xf32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<pull, 1xf32>
  %a = comms.tile_load %x[%c0] : memref<1xf32> -> tensor<1xf32>
  // expected-error @+1 {{channel ops have to be lowered first, by comms-lower-channels}}
  comms.send %a on %ch[%c0] : tensor<1xf32>, !comms.channel<pull, 1xf32>
  comms.return
}

// -----

comms.kernel @huge(%x: memref<4000000000xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has a tile of 4000000000 elements, more than the 268435456 that a tile may have}}
  %a = comms.tile_load %x[%c0] : memref<4000000000xf32> -> tensor<4000000000xf32>
  comms.tile_store %a, %x[%c0] : tensor<4000000000xf32>, memref<4000000000xf32>
  comms.return
}

// -----

// expected-error @+1 {{carries a tile: only scf.for and scf.if can}}
comms.kernel @argument(%x: memref<16xf32>, %c: i1) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  cf.br ^next(%a : tensor<16xf32>)
^next(%b: tensor<16xf32>):
  comms.tile_store %b, %x[%c0] : tensor<16xf32>, memref<16xf32>
  comms.return
}

// -----

comms.kernel @blocks(%x: memref<16xf32>, %c: i1) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  cf.cond_br %c, ^store, ^end
^store:
  // expected-error @+1 {{uses a tile of another block; keep it in memory}}
  comms.tile_store %a, %x[%c0] : tensor<16xf32>, memref<16xf32>
  cf.br ^end
^end:
  comms.return
}

// -----

// What nothing reaches goes, whatever it does.
comms.kernel @unreachable(%x: memref<16xf32>) {
  comms.return
^never:
  %a = arith.addf %a, %a : tensor<16xf32>
  cf.br ^never
}

// -----

// Lines begin at multiples of 16, for certain.
comms.kernel @somewhere(%w: !comms.window<36xi64>, %at: index, %flag: i32) {
  %own = comms.local %w : !comms.window<36xi64> -> memref<36xi64>
  // expected-error @+1 {{begins at an offset that is not known to be a multiple of 16: lines of packets begin there; multiply by a constant, or use packets of 8 bytes}}
  %t = comms.packet_load %own[%at] flag %flag assumes store128_whole : memref<36xi64> -> tensor<32xf32>
  comms.return
}

// -----

comms.kernel @resource(%y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is not a dense constant: a tile's constant must be dense}}
  %a = arith.constant dense_resource<elsewhere> : tensor<1xf32>
  comms.tile_store %a, %y[%c0] : tensor<1xf32>, memref<8xf32>
  comms.return
}

// -----

comms.kernel @leaves(%x: memref<8xf32>, %y: memref<8xf32>, %i: index) {
  %a = comms.tile_load %x[%i] : memref<8xf32> -> tensor<8xf32>
  // expected-error @+1 {{takes parts of tiles, or joins them, only where they are tensors of rank 1 with constant lengths}}
  %b = tensor.extract_slice %a[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
  comms.tile_store %b, %y[%i] : tensor<4xf32>, memref<8xf32>
  comms.return
}
