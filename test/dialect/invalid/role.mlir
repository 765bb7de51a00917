// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k() {
  // expected-error @+1 {{C1: blocks -1 to 2: the first is at least 0 and less than the last}}
  comms.role "send" blocks -1 to 2 {
  }
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C1: blocks 2 to 2: the first is at least 0 and less than the last}}
  comms.role "send" blocks 2 to 2 {
  }
  comms.return
}

// -----

func.func @f() {
  // expected-error @+1 {{C2: must be at the top level of a comms.kernel}}
  comms.role "send" blocks 0 to 2 {
  }
  return
}

// -----

comms.kernel @k() {
  comms.role "send" blocks 0 to 2 {
    // expected-error @+1 {{C2: must be at the top level of a comms.kernel}}
    comms.role "inner" blocks 0 to 1 {
    }
  }
  comms.return
}

// -----

comms.kernel @k() attributes {blocks = 4 : i64} {
  // expected-error @+1 {{C3: blocks 0 to 5 of a kernel of 4}}
  comms.role "send" blocks 0 to 5 {
  }
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C4: a role must have a name}}
  comms.role "" blocks 0 to 2 {
  }
  comms.return
}
