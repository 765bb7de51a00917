// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "ranks=4 blocks=4 check=false" --each "threads=128 cluster=8|threads=128 cluster=8 count-arrivals=false|threads=1024" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=4 check=false algorithm=one_shot protocol=lamport threads=128 cluster=8" \
// RUN:   | FileCheck %s --check-prefix=PTX
// CHECK: 3 variants assemble

// A row over a cluster: registers, shuffles, one value a warp to every CTA, where
// its bytes are counted; no barrier of the cluster between start and end, nothing
// that fences. The slots are cleared while the CTAs wait for each other.
// PTX-LABEL: .entry rms(
// PTX: .reqnctapercluster 8
// PTX-NOT: barrier.cluster
// PTX: mbarrier.arrive.expect_tx.shared::cta.b64
// PTX: fence.mbarrier_init.release.cluster;
// PTX: barrier.cluster.arrive.relaxed.aligned
// PTX-COUNT-4: ld.relaxed.sys.global.v4.b32
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX: barrier.cluster.wait.aligned
// PTX: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32
// PTX-NOT: barrier.cluster
// PTX-COUNT-4: st.global.v4.b32 {{.*}}, {-327686, -327686, -327686, -327686};
// PTX-NOT: {{barrier.cluster|st.global}}
// PTX: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
// PTX-NOT: {{barrier.cluster|fence|membar}}
// PTX: ld.shared.v4.b32
// PTX: rsqrt.approx.ftz.f32
// PTX: st.global.v4.b32
// PTX-NOT: st.global
// PTX: barrier.cluster.arrive.relaxed.aligned

comms.kernel @rms(%x: !comms.window<4x8192xbf16>, %weight: memref<8192xbf16>, %y: !comms.window<4x8192xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x8192xbf16>) outs(%y : !comms.window<4x8192xbf16>)
      args(%weight : memref<8192xbf16>)
  consume (%sum: tensor<8192xf32>, %w: tensor<8192xbf16>) {
    %squares = arith.mulf %sum, %sum : tensor<8192xf32>
    %total = comms.row_reduce sum %squares : tensor<8192xf32> -> tensor<1xf32>
    %count = arith.constant dense<8192.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %factor = math.rsqrt %safe : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<8192xf32>
    %normal = arith.mulf %sum, %factors : tensor<8192xf32>
    %wide = arith.extf %w : tensor<8192xbf16> to tensor<8192xf32>
    %scaled = arith.mulf %normal, %wide : tensor<8192xf32>
    %out = arith.truncf %scaled : tensor<8192xf32> to tensor<8192xbf16>
    comms.yield %out : tensor<8192xbf16>
  }
  comms.return
}
