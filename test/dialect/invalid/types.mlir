// RUN: comms-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{window C1: a window must have at least one dimension; write 1 for a scalar}}
func.func private @f(!comms.window<f32>)

// -----

// expected-error @+1 {{window C2: elements are floats or signless integers of 8, 16, 32 or 64 bits, not 'index'}}
func.func private @f(!comms.window<4xindex>)

// -----

// expected-error @+1 {{window C2:}}
func.func private @f(!comms.window<4xi1>)

// -----

// expected-error @+1 {{window C2:}}
func.func private @f(!comms.window<4xsi8>)

// -----

// expected-error @+1 {{window C2:}}
func.func private @f(!comms.window<4xtensor<4xf32>>)

// -----

// expected-error @+1 {{window C3: a rank's part does not fit in 2^63 bytes}}
func.func private @f(!comms.window<4294967296x?x4294967296xf32>)

// -----

// expected-error @+1 {{signal C1: number of cells is 0; it must be 1 to 2147483647}}
func.func private @f(!comms.signal<0>)

// -----

// expected-error @+1 {{signal C1: number of cells is 4294967296}}
func.func private @f(!comms.signal<4294967296>)

// -----

// expected-error @+1 {{counter C1: number of cells is -1; it must be 1 to 2147483647}}
func.func private @f(!comms.counter<-1>)

// -----

// expected-error @+1 {{channel C1: a channel must name its protocol}}
func.func private @f(!comms.channel<"", 4xf32>)

// -----

// expected-error @+1 {{channel C2: a tile must have at least one element, not 0}}
func.func private @f(!comms.channel<ll, 0xf32>)

// -----

// expected-error @+1 {{channel C3: elements are floats or signless integers of 8, 16, 32 or 64 bits, not 'i4'}}
func.func private @f(!comms.channel<ll, 4xi4>)

// -----

// expected-error @+1 {{channel C4: a tile does not fit in 2^63 bytes}}
func.func private @f(!comms.channel<ll, 4611686018427387904xf32>)

// -----

// expected-error @+1 {{a channel's tile has one dimension, as in 256xf32}}
func.func private @f(!comms.channel<ll, 4x4xf32>)
