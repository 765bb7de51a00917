// RUN: comms-opt %s -comms-lower-channels -split-input-file -verify-diagnostics

comms.kernel @unknown() attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{names the protocol 'pigeon', which does not exist; use '}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<pigeon, 8xf32>
  comms.return
}

// -----

comms.kernel @integers() attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{of 'i32': protocol 'lamport' cannot be used: it marks empty memory by a NaN of f32, f16 or bf16, and other elements have no pattern to spare; use 'll'}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<lamport, 8xi32>
  comms.return
}

// -----

comms.kernel @narrow() attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{of 'f8E4M3FN': protocol 'lamport' cannot be used}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<lamport, 8xf8E4M3FN>
  comms.return
}

// -----

comms.kernel @no_ranks() {
  %team = comms.team world
  // expected-error @+1 {{needs to know the size of its team; set `ranks` on the kernel}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<ll, 8xf32>
  comms.return
}

// -----

// What the kernel's verifier allows may still be too much for all ranks.
comms.kernel @huge() attributes {ranks = 1073741824 : i64} {
  %team = comms.team world
  // expected-error @+1 {{needs 2 x 1073741824 x 8589934592 x 8 elements of 'i64', which is not between 1 and 2^63 bytes; use fewer slots}}
  %ch = comms.channel 0 multicast over %team slots 8589934592 : !comms.channel<ll, 8xf32>
  comms.return
}
// -----

comms.kernel @chosen(%on: i1) attributes {ranks = 2 : i64} {
  %team = comms.team world
  %a = comms.channel 0 multicast over %team slots 1 : !comms.channel<ll, 8xf32>
  %b = comms.channel 1 multicast over %team slots 1 : !comms.channel<ll, 8xf32>
  // expected-error @+1 {{uses a channel, which only comms.send, comms.recv and comms.channel_barrier can; use the channel where it is made}}
  %c = arith.select %on, %a, %b : !comms.channel<ll, 8xf32>
  comms.return
}

// -----

// A receiver of `ll` knows a tile by its launch.
comms.kernel @reused() attributes {ranks = 4 : i64} {
  %team = comms.team world
  // expected-error @+1 {{'comms.channel' op is `reused`, which protocol 'll' cannot be: its receivers tell tiles by the launch; use 'pull' or 'push', or more slots}}
  %ch = comms.channel 0 multicast over %team slots 1 reused : !comms.channel<ll, 8xi32>
  comms.return
}

// -----

comms.kernel @part_of_a_line() attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{of tiles of 100 'bf16': protocol 'll128' cannot be used: its tiles are multiples of 64 elements; use 'll', or `valid`}}
  %ch = comms.channel 0 multicast over %team slots 1 : !comms.channel<ll128, 100xbf16>
  comms.return
}
