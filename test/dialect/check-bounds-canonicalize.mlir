// RUN: comms-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: comms.kernel @proven
comms.kernel @proven(%i: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c56 = arith.constant 56 : index
  %c64 = arith.constant 64 : index
  // CHECK-NOT: "whole"
  comms.check_bounds "whole" %c0, %c64 in %c64
  // CHECK-NOT: "end"
  comms.check_bounds "end" %c56, %c8 in %c64
  // CHECK-NOT: "empty"
  comms.check_bounds "empty" %c64, %c0 in %c64
  // CHECK: comms.check_bounds "dynamic"
  comms.check_bounds "dynamic" %i, %c8 in %c64
  // CHECK-NOT: "again"
  comms.check_bounds "again" %i, %c8 in %c64
  // CHECK: comms.check_bounds "longer"
  comms.check_bounds "longer" %i, %c56 in %c64
  comms.return
}

// What is wrong for certain is kept: it ends the run where it is reached.
// CHECK-LABEL: comms.kernel @refuted
comms.kernel @refuted() {
  %c8 = arith.constant 8 : index
  %c57 = arith.constant 57 : index
  %c64 = arith.constant 64 : index
  %c65 = arith.constant 65 : index
  %c0 = arith.constant 0 : index
  %low = arith.constant -9223372036854775808 : index
  %huge = arith.constant 9223372036854775807 : index
  // CHECK: comms.check_bounds "past"
  comms.check_bounds "past" %c57, %c8 in %c64
  // CHECK: comms.check_bounds "beyond"
  comms.check_bounds "beyond" %c65, %c0 in %c64
  // CHECK: comms.check_bounds "before"
  comms.check_bounds "before" %low, %c8 in %c64
  // CHECK: comms.check_bounds "overflow"
  comms.check_bounds "overflow" %huge, %huge in %c64
  // CHECK: comms.check_bounds "negative count"
  comms.check_bounds "negative count" %c8, %low in %c64
  // CHECK: comms.check_bounds "negative limit"
  comms.check_bounds "negative limit" %huge, %c0 in %low
  comms.return
}
