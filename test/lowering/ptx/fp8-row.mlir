// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "ranks=4 blocks=4 check=false" --each "threads=128 cluster=8|threads=128 cluster=8 count-arrivals=false|threads=128 cluster=8 chip=sm_100|threads=1024|threads=256 chip=sm_80" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=4 check=false algorithm=one_shot protocol=lamport threads=128 cluster=8" \
// RUN:   | tee %t | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=ORDER < %t
// CHECK: 5 variants assemble

// RMSNorm with rows in fp8: neither reduction awaits the other, so that there is one exchange: one arrival, one
// store a warp and CTA, one wait, and none but the greatest number's reciprocal on the way to the result. A warp
// finds the greatest in one instruction, twice.
// PTX-LABEL: .entry rms(
// PTX:         mbarrier.init{{.*}}mbarrier.arrive.expect_tx
// PTX-NOT:     mbarrier.init
// PTX:         barrier.cluster.arrive.relaxed.aligned
// PTX:         redux.sync.max.s32
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX-NOT:     {{shfl|redux}}.sync
// PTX:         barrier.cluster.wait.aligned
// PTX:         st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32
// PTX-NOT:     st.async
// PTX:         mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
// PTX-NOT:     {{barrier.cluster|fence|membar|mbarrier}}
// PTX:         ld.shared.v2.b32
// PTX:         redux.sync.max.s32
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX-NOT:     {{shfl|redux}}.sync
// PTX:         div.rn.f32
// PTX-COUNT-4: cvt.rn.satfinite.e4m3x2.f32
// PTX:         barrier.cluster.arrive.relaxed.aligned

// What is sent is loaded and sent before the weight is loaded, which comes while this rank waits; and one thread
// computes and stores the scale after all have stored their parts of the row.
// ORDER-LABEL: .entry rms(
// ORDER:         ld.global.v4.b32
// ORDER-NOT:     ld.global.v4.b32
// ORDER-COUNT-4: st.relaxed.sys.global.v4.b32
// ORDER-NOT:     ld.relaxed
// ORDER:         ld.global.v4.b32
// ORDER-COUNT-4: ld.relaxed.sys.global.v4.b32
// ORDER:         st.global.v4.b16
// ORDER:         div.rn.f32
// ORDER:         rcp.approx.ftz.f32
// ORDER:         st.global.b32

comms.kernel @rms(%x: !comms.window<4x8192xbf16>, %weight: memref<8192xbf16>, %y: memref<4x8192xf8E4M3FN>,
                  %scale: memref<4x1xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x8192xbf16>)
      outs(%y, %scale : memref<4x8192xf8E4M3FN>, memref<4x1xf32>) args(%weight : memref<8192xbf16>)
  consume (%sum: tensor<8192xf32>, %w: tensor<8192xbf16>) {
    %squares = arith.mulf %sum, %sum : tensor<8192xf32>
    %total = comms.row_reduce sum %squares : tensor<8192xf32> -> tensor<1xf32>
    %count = arith.constant dense<8192.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %root = math.rsqrt %safe : tensor<1xf32>
    %wide = arith.extf %w : tensor<8192xbf16> to tensor<8192xf32>
    %weighted = arith.mulf %sum, %wide : tensor<8192xf32>
    %size = math.absf %weighted : tensor<8192xf32>
    %largest = comms.row_reduce max %size : tensor<8192xf32> -> tensor<1xf32>
    %tiny = arith.constant dense<1.0e-15> : tensor<1xf32>
    %limit = arith.constant dense<448.0> : tensor<1xf32>
    %least = arith.maximumf %largest, %tiny : tensor<1xf32>
    %inverse = arith.divf %limit, %least : tensor<1xf32>
    %inverses = comms.broadcast_row %inverse : tensor<1xf32> -> tensor<8192xf32>
    %small = arith.mulf %weighted, %inverses : tensor<8192xf32>
    %out = arith.truncf %small : tensor<8192xf32> to tensor<8192xf8E4M3FN>
    %unit = arith.divf %least, %limit : tensor<1xf32>
    %factor = arith.mulf %unit, %root : tensor<1xf32>
    comms.yield %out, %factor : tensor<8192xf8E4M3FN>, tensor<1xf32>
  }
  comms.return
}
