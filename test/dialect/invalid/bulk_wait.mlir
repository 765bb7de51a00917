// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: nothing to wait for.
comms.kernel @k() {
  // expected-error @+1 {{C1: must wait for at least one copy; pass the copies' tokens}}
  %done = comms.bulk_wait
  comms.return
}

// -----

// C2: a signal is no copy.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %v1 = arith.constant 1 : i64
  %t = comms.wait_signal %sig[%c0] ge %v1 : !comms.signal<4>
  // expected-error @+1 {{C2: each token must be the result of a comms.bulk_copy}}
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C3: a copy named twice.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %t = comms.bulk_copy %src[%c0] to %any[%c0] count %c8 : memref<64xf32>, memref<?xf32>
  // expected-error @+1 {{C3: the same copy is passed twice}}
  %done = comms.bulk_wait %t, %t
  comms.return
}
