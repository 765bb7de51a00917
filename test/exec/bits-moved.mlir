// What is only moved keeps its bits, also where a ring hands it on: NaN of every kind, of f32 and f16.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = np.resize(np.roll(np.array([0x7FC00000, 0xFFFAFFFA, 0x7F800001, 0xFF800001, 0x80000000, 1, 0xFFFFFFFF], np.uint32), r), 100).view(np.float32)' \
// RUN:   'h = np.resize(np.roll(np.array([0x7E00, 0xFFFA, 0x7C01, 0xFC01, 0x8000, 1, 0xFFFF], np.uint16), r), 100).view(np.float16)' \
// RUN:   'sent = xs[2]' 'hsent = hs[2]' 'all = np.concatenate(xs)' 'hall = np.concatenate(hs)'
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 3 --launches 2 --input x=%t/x-%r.npy --input h=%t/h-%r.npy --expect sent=%t/sent-%r.npy \
// RUN:   --expect hsent=%t/hsent-%r.npy --expect all=%t/all-%r.npy --expect hall=%t/hall-%r.npy --bitwise
comms.kernel @moved(%x: !comms.window<100xf32>, %h: !comms.window<100xf16>, %sent: !comms.window<100xf32>,
                    %hsent: !comms.window<100xf16>, %all: !comms.window<300xf32>, %hall: !comms.window<300xf16>) {
  %team = comms.team world
  comms.broadcast root 2 %team ins(%x : !comms.window<100xf32>) outs(%sent : !comms.window<100xf32>)
  comms.broadcast root 2 %team ins(%h : !comms.window<100xf16>) outs(%hsent : !comms.window<100xf16>)
  comms.all_gather %team ins(%x : !comms.window<100xf32>) outs(%all : !comms.window<300xf32>)
  comms.all_gather %team ins(%h : !comms.window<100xf16>) outs(%hall : !comms.window<300xf16>)
  comms.return
}
