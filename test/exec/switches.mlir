// Cases and arguments of scf.index_switch have 64 bits: 2^32 + 1 is not 1.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 'x = np.array([1, 2**32 + 1, -1, 2**32 - 1, -2**31, 7])' \
// RUN:   'few = np.array([10, 99, 20, 99, 30, 99])' 'far = np.array([10, 20, 99, 30, 99, 99])'
// RUN: comms-run %s --kernel=few --ranks=1 --input x=%t/x-%r.npy --expect y=%t/few-%r.npy --quiet
// RUN: comms-run %s --kernel=far --ranks=1 --input x=%t/x-%r.npy --expect y=%t/far-%r.npy --quiet

comms.kernel @few(%x: memref<6xi64>, %y: memref<6xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c1 {
    %value = memref.load %x[%i] : memref<6xi64>
    %which = arith.index_cast %value : i64 to index
    %out = scf.index_switch %which -> i32
    case 1 {
      %v = arith.constant 10 : i32
      scf.yield %v : i32
    }
    case -1 {
      %v = arith.constant 20 : i32
      scf.yield %v : i32
    }
    case -2147483648 {
      %v = arith.constant 30 : i32
      scf.yield %v : i32
    }
    default {
      %v = arith.constant 99 : i32
      scf.yield %v : i32
    }
    memref.store %out, %y[%i] : memref<6xi32>
  }
  comms.return
}

comms.kernel @far(%x: memref<6xi64>, %y: memref<6xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c1 {
    %value = memref.load %x[%i] : memref<6xi64>
    %which = arith.index_cast %value : i64 to index
    %out = scf.index_switch %which -> i32
    case 1 {
      %v = arith.constant 10 : i32
      scf.yield %v : i32
    }
    case 4294967297 {
      %v = arith.constant 20 : i32
      scf.yield %v : i32
    }
    case 4294967295 {
      %v = arith.constant 30 : i32
      scf.yield %v : i32
    }
    default {
      %v = arith.constant 99 : i32
      scf.yield %v : i32
    }
    memref.store %out, %y[%i] : memref<6xi32>
  }
  comms.return
}
