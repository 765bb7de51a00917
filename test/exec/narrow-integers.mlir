// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 5 \
// RUN:   'x = np.random.default_rng(r).integers(-128, 128, 777).astype(np.int8)' \
// RUN:   'total = sum(x.astype(np.int64) for x in xs)' \
// RUN:   'sums = total.astype(np.int8)' \
// RUN:   'wide = total.astype(np.int32)' \
// RUN:   'avg = np.trunc(total / n).astype(np.int8)' \
// RUN:   'least = np.min(xs, axis=0)' \
// RUN:   'prod = np.prod([x.astype(np.int64) for x in xs], axis=0).astype(np.int8)'
// RUN: %python %S/sweep.py --algorithms two_shot,ring,permutation --protocols push,ll --blocks 1,3 \
// RUN:   %s --ranks 5 --launches 2 --bitwise --input x=%t/x-%r.npy \
// RUN:   --expect sums=%t/sums-%r.npy --expect wide=%t/wide-%r.npy --expect avg=%t/avg-%r.npy \
// RUN:   --expect least=%t/least-%r.npy --expect prod=%t/prod-%r.npy

// What of an i8 travels between ranks, 8 bits or 32, is not to be seen: sums
// wrap, wider ones are whole, and so are those that are divided.
comms.kernel @narrow_integers(%x: !comms.window<777xi8>, %sums: !comms.window<777xi8>, %wide: !comms.window<777xi32>,
    %avg: !comms.window<777xi8>, %least: !comms.window<777xi8>, %prod: !comms.window<777xi8>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<777xi8>) outs(%sums : !comms.window<777xi8>)
  comms.all_reduce sum %team ins(%x : !comms.window<777xi8>) outs(%wide : !comms.window<777xi32>)
  comms.all_reduce avg %team ins(%x : !comms.window<777xi8>) outs(%avg : !comms.window<777xi8>)
  comms.all_reduce min %team ins(%x : !comms.window<777xi8>) outs(%least : !comms.window<777xi8>)
  comms.all_reduce prod %team ins(%x : !comms.window<777xi8>) outs(%prod : !comms.window<777xi8>)
  comms.return
}
