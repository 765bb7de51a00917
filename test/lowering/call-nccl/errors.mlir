// RUN: comms-opt %s --comms-call-nccl -split-input-file -verify-diagnostics

comms.kernel @grid() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  // expected-error @+1 {{is a barrier of the whole grid, which NCCL does not have}}
  comms.barrier %team grid
  comms.return
}

// -----

comms.kernel @get(%w: !comms.window<64xf32>, %v: !comms.window<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %mine = comms.local %v : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @+1 {{travels by GIN, whose device API has no get in NCCL 2.28}}
  comms.get %w[%c0] to %mine[%c0] count %c0 at %c0 of %team gin <> : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

comms.kernel @equal(%s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  comms.signal inc %s[%c0] at %c0 of %team gin <> : !comms.signal<1>
  // expected-error @+1 {{of which NCCL can only wait for the least: use `ge`}}
  %t = comms.wait_signal %s[%c0] eq %one : !comms.signal<1>
  comms.return
}

// -----

comms.kernel @mixed(%s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  comms.signal inc %s[%c0] at %c0 of %team gin <> : !comms.signal<1>
  // expected-error @+1 {{changes by a store what other operations of the kernel change by GIN}}
  comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<1>
  comms.return
}

// -----

// expected-error @+1 {{calls NCCL's device library, whose barriers and waits are of one CTA, in clusters of 2: set cluster=1}}
comms.kernel @cluster() attributes {ranks = 2 : i64, blocks = 1 : i64, "comms.cluster" = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.return
}

// -----

comms.kernel @half() attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 1 : i64} {
  %team = comms.team rail
  %t = comms.barrier_arrive %team block
  // expected-error @+1 {{is half of a barrier through a network adapter, which NCCL does not have}}
  %u = comms.barrier_wait %t
  comms.return
}

// -----

comms.kernel @split() attributes {ranks = 8 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %half = comms.team_split %team inner 4
  // expected-error @+1 {{is a barrier of a part of a team, which NCCL does not have}}
  comms.barrier %half block
  comms.return
}

// -----

comms.kernel @all(%w: !comms.window<64xbf16>) attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  // expected-error @+1 {{needs the team lsa: NCCL has a multicast address only for the ranks in load/store reach}}
  %all = comms.multimem %w of %team : !comms.window<64xbf16> -> memref<64xbf16, #comms.space<multimem>>
  comms.return
}

// -----

// expected-error @+1 {{needs known numbers of ranks and blocks: give the pipeline the options ranks=N and blocks=N}}
comms.kernel @open() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.return
}

// -----

comms.kernel @no_argument(%s: !comms.signal<4>, %t: !comms.signal<4>, %flag: i1) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %either = arith.select %flag, %s, %t : !comms.signal<4>
  // expected-error @+1 {{uses cells that are not an argument of the kernel: use the argument itself}}
  %seen = comms.read_signal %either[%c0] : !comms.signal<4>
  comms.signal inc %either[%c0] at %c0 of %team gin <> : !comms.signal<4>
  comms.return
}

// -----

comms.kernel @two_contexts(%s: !comms.signal<4>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  comms.signal inc %s[%c0] at %c0 of %team gin <> : !comms.signal<4>
  // expected-error @+1 {{changes by GIN context 2 cells that another operation changes by context 0: NCCL has cells of its own for each. Take one context, or two arguments}}
  comms.signal inc %s[%c0] at %c0 of %team gin <context_id = 2> : !comms.signal<4>
  comms.return
}
