// EXEC: comms.all_to_all_v
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'send = np.array([(r + p) % 3 for p in range(3)], np.int32)' \
// RUN:   'recv = np.array([(r + p) % 3 for p in range(3)], np.int32)' \
// RUN:   'x = random((6, 5)).astype(np.float32)' \
// RUN:   'y = (lambda got: np.concatenate([got, np.zeros((6 - len(got), 5), np.float32)]))(np.concatenate([xs[s][sum(sends[s][:r]) : sum(sends[s][: r + 1])] for s in range(3)]))'
// RUN: %python %S/sweep.py --protocols pull,push,ll --blocks 1,2 \
// RUN:   %s --ranks 3 --launches 2 --input x=%t/x-%r.npy --input send=%t/send-%r.npy --input recv=%t/recv-%r.npy \
// RUN:   --expect y=%t/y-%r.npy --bitwise

// Rank r sends (r + p) mod 3 rows to rank p, one after the other.
comms.kernel @all_to_all_v(%x: !comms.window<6x5xf32>, %y: !comms.window<6x5xf32>,
                           %send: memref<3xi32>, %recv: memref<3xi32>) {
  %team = comms.team world
  comms.all_to_all_v %team ins(%x : !comms.window<6x5xf32>) outs(%y : !comms.window<6x5xf32>)
    send_rows(%send : memref<3xi32>) recv_rows(%recv : memref<3xi32>) max_rows 2
  comms.return
}
