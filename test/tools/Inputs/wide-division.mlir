comms.kernel @k(%in: memref<4xi64>, %x: memref<16xi64>, %w: !comms.window<16xi64>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c63 = arith.constant 63 : index
  %given = memref.load %in[%c1] : memref<4xi64>
  %number = arith.index_cast %given : i64 to index
  %first = arith.divui %number, %c63 : index
  %from = arith.index_cast %first : index to i64
  %float = arith.sitofp %from : i64 to f64
  %factor = arith.bitcast %float : f64 to i64
  %end = arith.index_cast %factor : i64 to index
  scf.for %i = %first to %end step %c1 {
  }
  scf.execute_region {
    cf.br ^head(%first : index)
  ^head(%i: index):
    %goes = arith.cmpi sge, %i, %c5 : index
    cf.cond_br %goes, ^body, ^end
  ^body:
    %p = arith.index_cast %i : index to i64
    %low, %high = arith.mului_extended %p, %factor : i64
    %peer = arith.index_cast %high : i64 to index
    comms.put %x[%i] to %w[%i] count %c3 at %peer of %team : memref<16xi64>, !comms.window<16xi64>
    %next = arith.addi %i, %c1 : index
    cf.br ^head(%next : index)
  ^end:
    scf.yield
  }
  comms.return
}
