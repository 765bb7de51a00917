// What a kernel says that it computes is proven, or the difference is shown.
// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Right: nothing is said.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(sum)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %part = comms.peer %x at %p of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Rank 0 is left out.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(sum)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %sum = scf.for %p = %c1 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %part = comms.peer %x at %p of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    // expected-note @below {{the last of it came in here}}
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  // expected-error @below {{'comms.tile_store' op writes x(1) + x(2) + x(3) to 'y'[0, 64) of rank 0 in launch 1; expected is x(0) + x(1) + x(2) + x(3)}}
  // expected-note @below {{'x' of rank 0 is missing}}
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Rank 1 is added twice, rank 0 not at all.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(sum)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %q = arith.maxsi %p, %c1 : index
    %part = comms.peer %x at %q of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    // expected-note @below {{the last of it came in here}}
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  // expected-error @below {{'comms.tile_store' op writes 2 * x(1) + x(2) + x(3) to 'y'[0, 64) of rank 0 in launch 1; expected is x(0) + x(1) + x(2) + x(3)}}
  // expected-note @below {{'x' of rank 0 is missing}}
  // expected-note @below {{'x' of rank 1 is counted twice}}
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Each rank begins with itself: bits differ.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(sum)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %o = arith.addi %me, %p : index
    %q = arith.remui %o, %n : index
    %part = comms.peer %x at %q of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  // expected-error @below {{'comms.tile_store' op gives ranks 0 and 1 other bits of 'y'[0, 64): both hold x(0) + x(1) + x(2) + x(3), but add in different orders}}
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// The same of integers is right.
comms.kernel @k(%x: !comms.window<64xi32>, %y: memref<64xi32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(sum)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0> : tensor<64xi32>
  comms.barrier %team block
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xi32>) {
    %o = arith.addi %me, %p : index
    %q = arith.remui %o, %n : index
    %part = comms.peer %x at %q of %team : !comms.window<64xi32> -> memref<64xi32>
    %theirs = comms.tile_load %part[%c0] : memref<64xi32> -> tensor<64xi32>
    %next = arith.addi %so_far, %theirs : tensor<64xi32>
    scf.yield %next : tensor<64xi32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<64xi32>, memref<64xi32>
  comms.barrier %team block
  comms.return
}

// -----

// Of a maximum the order does not matter, nor that one is taken twice.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(max)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0xFF800000> : tensor<64xf32>
  comms.barrier %team block
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %mine = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<64xf32>
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %mine) -> (tensor<64xf32>) {
    %part = comms.peer %x at %p of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    %next = arith.maximumf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Half of the output is left as it was.
// expected-error @below {{'comms.kernel' op does not write 'y'[32, 64) of rank 0 in launch 1; expected is x(0) + x(1) + x(2) + x(3)}}
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "sum(r, x(r)[i])"}} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %c32 = arith.constant 32 : index
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %part = comms.peer %x at %p of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  comms.tile_store %sum, %y[%c0] valid %c32 : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Elements are shifted by one.
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "where(i < 63, x[i], x[63])"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = comms.tile_load %x[%c1] valid %c63 : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{'comms.tile_store' op writes x(0)[i + 1] to 'y'[0, 63) of rank 0 in launch 1; expected is x(0)}}
  // expected-note @below {{'x' of rank 0 should not be in it}}
  // expected-note @below {{'x' of rank 0 is missing}}
  comms.tile_store %t, %y[%c0] valid %c63 : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// A neighbor's part, by packets: the second launch is to have the second one's.
comms.kernel @k(%x: memref<64xf32>, %box: !comms.window<128xi64>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x((rank + 3) % size)[i]"}} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %n = comms.size %team
  %me = comms.rank %team
  %o = arith.addi %me, %c1 : index
  %to = arith.remui %o, %n : index
  %launch = comms.epoch
  %flag = arith.index_cast %launch : index to i32
  %odd = arith.remui %launch, %c2 : index
  %at = arith.muli %odd, %c64 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %there = comms.peer %box at %to of %team : !comms.window<128xi64> -> memref<128xi64>
  comms.packet_store %t, %there[%at] flag %flag : tensor<64xf32>, memref<128xi64>
  %here = comms.local %box : !comms.window<128xi64> -> memref<128xi64>
  %got = comms.packet_load %here[%at] flag %flag : memref<128xi64> -> tensor<64xf32>
  comms.tile_store %got, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// A copy of the first launch that later ones do not make again.
comms.kernel @k(%x: memref<64xf32>, %kept: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[i]"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %launch = comms.epoch
  %first = arith.cmpi eq, %launch, %c1 : index
  scf.if %first {
    %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %t, %kept[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %k = comms.tile_load %kept[%c0] : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{'comms.tile_store' op writes (x(0) of launch 1) to 'y'[0, 64) of rank 0 in launch 2; expected is x(0)}}
  // expected-note @below {{'x' of rank 0 is missing}}
  // expected-note @below {{'x' of rank 0 of launch 1 should not be in it}}
  comms.tile_store %k, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Divided twice.
comms.kernel @k(%x: !comms.window<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(avg)"} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = comms.size %team
  %me = comms.rank %team
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  comms.barrier %team block
  %sum = scf.for %p = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<64xf32>) {
    %part = comms.peer %x at %p of %team : !comms.window<64xf32> -> memref<64xf32>
    %theirs = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    %next = arith.addf %so_far, %theirs : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  %ni = arith.index_cast %n : index to i64
  %nf = arith.sitofp %ni : i64 to f32
  %by = comms.splat %nf : f32 -> tensor<64xf32>
  %once = arith.divf %sum, %by : tensor<64xf32>
  %twice = arith.divf %once, %by : tensor<64xf32>
  // expected-error @below {{'comms.tile_store' op writes x(0) / 16 + x(1) / 16 + x(2) / 16 + x(3) / 16 to 'y'[0, 64) of rank 0 in launch 1; expected is x(0) / 4 + x(1) / 4 + x(2) / 4 + x(3) / 4}}
  // expected-note @below {{all of it is 0.25 times what it should be}}
  comms.tile_store %twice, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Data decide which row is read: a gather.
comms.kernel @k(%x: memref<8x64xf32>, %which: memref<1xi64>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[which[0] * 64 + i]"}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %w = memref.load %which[%c0] : memref<1xi64>
  %row = arith.index_cast %w : i64 to index
  %at = arith.muli %row, %c64 : index
  %t = comms.tile_load %x[%at] : memref<8x64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Another row than the one that is promised.
comms.kernel @k(%x: memref<8x64xf32>, %which: memref<2xi64>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[which[0] * 64 + i]"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %w = memref.load %which[%c1] : memref<2xi64>
  %row = arith.index_cast %w : i64 to index
  %at = arith.muli %row, %c64 : index
  %t = comms.tile_load %x[%at] : memref<8x64xf32> -> tensor<64xf32>
  // expected-error @below {{'comms.tile_store' op writes x(0) from 64 * which(0)[1] on to 'y'[0, 64) of rank 0 in launch 1; expected is x(0) from 64 * which(0)[0] on}}
  // expected-note @below {{x(0) from 64 * which(0)[0] on is missing}}
  // expected-note @below {{x(0) from 64 * which(0)[1] on should not be in it}}
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Data decide how many elements there are.
comms.kernel @k(%x: memref<64xf32>, %count: memref<1xi64>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[i]"}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %w = memref.load %count[%c0] : memref<1xi64>
  %many = arith.index_cast %w : i64 to index
  %a = arith.maxsi %many, %c0 : index
  %valid = arith.minsi %a, %c64 : index
  %t = comms.tile_load %x[%c0] valid %valid : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{'comms.tile_store' op writes where(i < min(64, max(count(0)[0], 0)), x(0), 0) to 'y'[0, 64) of rank 0 in launch 1; expected is x(0)}}
  // expected-note @below {{'x' of rank 0 is missing}}
  // expected-note @below {{where(i < min(64, max(count(0)[0], 0)), x(0), 0) should not be in it}}
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says what 'y' holds by "x[i", which cannot be read: ']' is expected at the end}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[i"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says what 'y' holds by "z[i]", which cannot be read: 'z' is not an argument of the kernel, and none of i, rank and size}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "z[i]"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says what 'y' holds by "x", which cannot be read: 'x' is an array: say which element, as in x(r)[i]}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says what 'y' holds, except for its element 0 at rank 0 this cannot be determined: 'x' of rank 4 is named, but there are 4 ranks}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x(size)[i]"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says what 'y' holds, except for its element 0 at rank 0 this cannot be determined: element 64 of 'x' is named, which has 64}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {y = "x[i + 64]"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says in comms.computes what 'z' holds, which is not an array among its arguments whose number of elements is known}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = {z = "x[i]"}} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op says that it computes "all_reduce(plus)": its first argument must be one of sum, prod, min, max, avg, and, or, xor}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = "all_reduce(plus)"} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// What cannot be read.
// expected-error @below {{'comms.kernel' op has comms.computes = 7 : i64; it is a collective, "all_reduce(sum)", or says by an output's name what element i of it is: {y = "sum(r, x(r)[i])"}}}
comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, blocks = 1, comms.computes = 7} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
