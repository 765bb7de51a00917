// RUN: comms-opt %s -comms-check-ops | FileCheck %s

// CHECK-NOT:   func.func
// CHECK:       comms.kernel @nothing()
// CHECK-NEXT:    comms.return
func.func private @unused()
comms.kernel @nothing() {
  comms.return
}
