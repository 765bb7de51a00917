// What the options ask for does not fit the kernel.
// RUN: comms-opt %s -comms-check-sync="ranks=9 blocks=1" -split-input-file -verify-diagnostics -o %t

// expected-error @below {{'comms.kernel' op splits a team of 9 ranks (lsa_size 9) by a factor that does not divide it}}
comms.kernel @split() {
  %world = comms.team world
  %part = comms.team_split %world outer 2
  comms.barrier %part block
  comms.return
}

// -----

// expected-error @below {{'comms.kernel' op splits a team of 9 ranks (lsa_size 4) by a factor that does not divide it}}
comms.kernel @reach() attributes {lsa_size = 4 : i64} {
  %lsa = comms.team lsa
  comms.barrier %lsa block
  comms.return
}

// -----

// expected-error @below {{'comms.kernel' op has lsa_size 16, which is not between 1 and its 9 ranks}}
comms.kernel @far_reach() attributes {lsa_size = 16 : i64} {
  %lsa = comms.team lsa
  comms.barrier %lsa block
  comms.return
}

// -----

// One block only: what needs two is not met.
// expected-error @below {{'comms.kernel' op has a role that takes blocks up to 2, but runs with 1 on each rank: give it more blocks}}
comms.kernel @needs_two_blocks(%s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %rank = comms.rank %world
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  comms.role "waits" blocks 0 to 1 {
    %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  }
  comms.role "signals" blocks 1 to 2 {
    comms.signal inc %s[%c0] at %rank of %world : !comms.signal<1>
  }
  comms.return
}
