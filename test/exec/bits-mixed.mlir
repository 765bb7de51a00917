// RUN: rm -rf %t && %python %S/bits.py mixed %t
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x=%t/x-%r.npy --input scale=%t/scale-%r.npy \
// RUN:   --expect q=%t/q-%r.npy --expect y=%t/y-%r.npy

// bf16 summed in f32, times f16, stored as f8E4M3FN (saturating) and as bf16.
comms.kernel @mixed(%x: !comms.window<4x100xbf16>, %scale: memref<100xf16>,
                    %q: !comms.window<4x100xf8E4M3FN>, %y: !comms.window<4x100xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x100xbf16>)
      outs(%q, %y : !comms.window<4x100xf8E4M3FN>, !comms.window<4x100xbf16>)
      args(%scale : memref<100xf16>)
  consume (%total: tensor<100xf32>, %s: tensor<100xf16>) {
    %wide = arith.extf %s : tensor<100xf16> to tensor<100xf32>
    %scaled = arith.mulf %total, %wide : tensor<100xf32>
    %f8 = arith.truncf %scaled : tensor<100xf32> to tensor<100xf8E4M3FN>
    %bf = arith.truncf %scaled : tensor<100xf32> to tensor<100xbf16>
    comms.yield %f8, %bf : tensor<100xf8E4M3FN>, tensor<100xbf16>
  }
  comms.return
}
