// RUN: comms-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{C1: a kernel must have a body}}
"comms.kernel"() <{sym_name = "k", function_type = () -> ()}> ({}) : () -> ()

// -----

// expected-error @+1 {{C2: a kernel cannot have results; it writes to windows and memrefs}}
"comms.kernel"() <{sym_name = "k", function_type = () -> i32}> ({
  comms.return
}) : () -> ()

// -----

// expected-error @+1 {{C3: argument 0 is 'tensor<4xf32>'; arguments are windows, memrefs, signals, counters, integers, floats and index}}
comms.kernel @k(%t: tensor<4xf32>) {
  comms.return
}

// -----

// expected-error @+1 {{C3: argument 0 is '!comms.team'}}
comms.kernel @k(%t: !comms.team) {
  comms.return
}

// -----

// expected-error @+1 {{C3: argument 0 is 'si32'}}
comms.kernel @k(%t: si32) {
  comms.return
}

// -----

// expected-error @+1 {{C4: argument 1 is 'memref<*xf32>'}}
comms.kernel @k(%a: index, %t: memref<*xf32>) {
  comms.return
}

// -----

// expected-error @+1 {{C4: argument 0 is 'memref<4xf32, strided<[2]>>'}}
comms.kernel @k(%t: memref<4xf32, strided<[2]>>) {
  comms.return
}

// -----

// expected-error @+1 {{C4: argument 0 is}}
comms.kernel @k(%t: memref<4xf32, 1>) {
  comms.return
}

// -----

// expected-error @+1 {{C4: argument 0 is}}
comms.kernel @k(%t: memref<4xindex>) {
  comms.return
}

// -----

// expected-error @+1 {{C4: argument 0 is}}
comms.kernel @k(%t: memref<4xi1>) {
  comms.return
}

// -----

// More bytes than 63 bits count.
// expected-error @+1 {{C4: argument 0 is}}
comms.kernel @k(%t: memref<4294967296x4294967296xf32>) {
  comms.return
}

// -----

// expected-error @+1 {{C5: argument 0 has no name; give it a string attribute comms.name}}
"comms.kernel"() <{sym_name = "k", function_type = (i32) -> ()}> ({
^bb0(%x: i32):
  comms.return
}) : () -> ()

// -----

// expected-error @+1 {{C5: argument 0 has no name}}
comms.kernel @k(%x: i32 {comms.name = 4 : i32}) {
  comms.return
}

// -----

// expected-error @+1 {{C5: argument 0 has no name}}
comms.kernel @k(%x: i32 {comms.name = ""}) {
  comms.return
}

// -----

// expected-error @+1 {{C5: two arguments have the name 'y'}}
comms.kernel @k(%x: i32 {comms.name = "y"}, %y: i32) {
  comms.return
}

// -----

// expected-error @+1 {{C6: ranks is 0; it must be 1 to 2147483647}}
comms.kernel @k() attributes {ranks = 0 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{C6: ranks is -9223372036854775808}}
comms.kernel @k() attributes {ranks = -9223372036854775808 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{C7: lsa_size is 0; it must be 1 to 2147483647}}
comms.kernel @k() attributes {lsa_size = 0 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{C7: lsa_size 3 does not divide 8 ranks}}
comms.kernel @k() attributes {ranks = 8 : i64, lsa_size = 3 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{C8: blocks is -1; it must be 1 to 2147483647}}
comms.kernel @k() attributes {blocks = -1 : i64} {
  comms.return
}

// -----

// expected-error @+1 {{C9: argument 0 is hidden}}
comms.kernel @k(%x: i32 {comms.hidden, comms.init = "zero"}) {
  comms.return
}

// -----

// expected-error @+1 {{C9: argument 0 is hidden: it must be a window with the unit attribute comms.hidden and with comms.init "zero" or "poison"}}
comms.kernel @k(%x: !comms.window<4xf32> {comms.hidden}) {
  comms.return
}

// -----

// expected-error @+1 {{C9: argument 0 is hidden}}
comms.kernel @k(%x: !comms.window<4xf32> {comms.hidden, comms.init = "one"}) {
  comms.return
}

// -----

// expected-error @+1 {{C9: argument 0 is hidden}}
comms.kernel @k(%x: !comms.window<4xf32> {comms.init = "zero"}) {
  comms.return
}

// -----

// expected-error @+1 {{C11: argument 0 has comms.host, a unit attribute of windows}}
comms.kernel @k(%x: memref<4xf32> {comms.host}) {
  comms.return
}

// -----

// expected-error @+1 {{C11: argument 0 has comms.host, a unit attribute of windows}}
comms.kernel @k(%x: !comms.window<4xf32> {comms.host = 1}) {
  comms.return
}

// -----

// expected-error @+1 {{C12: comms.assumes is ["store9_whole"]; it must be an array of assumptions that a kernel can state: "packets_cumulative", or "same_on_ranks(x)" of an array x among its arguments}}
comms.kernel @unknownAssumption() attributes {comms.assumes = ["store9_whole"]} {
  comms.return
}

// -----

// expected-error @+1 {{C12: comms.assumes is "packets_cumulative"; it must be an array}}
comms.kernel @assumptionAlone() attributes {comms.assumes = "packets_cumulative"} {
  comms.return
}

// -----

// expected-error @+1 {{C10: a kernel's name must not be empty}}
comms.kernel @""() {
  comms.return
}

// -----

// expected-error @+1 {{C10: names that begin with '__' are reserved; rename the kernel}}
comms.kernel @__truncsfbf2() {
  comms.return
}

// -----

// expected-error @+1 {{C10: names that begin with 'commsir_' are reserved}}
comms.kernel @commsir_cpu_stored() {
  comms.return
}

// -----

comms.kernel @noEnd(%x: memref<4xf32>) {
  // expected-error @+1 {{the kernel is not terminated: write comms.return after this}}
  %c0 = arith.constant 0 : index
}

// -----

// expected-error @+1 {{the kernel is not terminated: write comms.return after this}}
comms.kernel @nothing(%x: memref<4xf32>) {
}
