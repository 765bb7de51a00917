// Every function, of numbers of all sizes: the bits of f32 are 256 numbers spread over all 2^32, and near them.
// (Which NaN a function gives is not asked: stores make it canonical.)
comms.kernel @functions(%near: memref<256xi32>, %y: memref<6400xf32>) {
  %c0 = arith.constant 0 : index
  %at = comms.tile_load %near[%c0] : memref<256xi32> -> tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %i = comms.iota : tensor<256xi32>
  %spread = arith.constant dense<16777619> : tensor<256xi32>
  %far = arith.muli %i, %spread : tensor<256xi32>
  %bits = arith.addi %far, %at : tensor<256xi32>
  %x = arith.bitcast %bits : tensor<256xi32> to tensor<256xf32>
  // Small numbers, for those that most f32 are too large for.
  %middle = arith.constant dense<128> : tensor<256xi32>
  %centered = arith.subi %i, %middle : tensor<256xi32>
  %whole = arith.sitofp %centered : tensor<256xi32> to tensor<256xf32>
  %tenth = arith.constant dense<0.1> : tensor<256xf32>
  %small = arith.mulf %whole, %tenth : tensor<256xf32>
  %odd = arith.andi %i, %one : tensor<256xi32>
  %one_bit = arith.trunci %odd : tensor<256xi32> to tensor<256xi1>
  %z = arith.select %one_bit, %x, %small : tensor<256xi1>, tensor<256xf32>
  %at_acos = arith.constant 0 : index
  %acos = math.acos %z : tensor<256xf32>
  comms.tile_store %acos, %y[%at_acos] : tensor<256xf32>, memref<6400xf32>
  %at_acosh = arith.constant 256 : index
  %acosh = math.acosh %z : tensor<256xf32>
  comms.tile_store %acosh, %y[%at_acosh] : tensor<256xf32>, memref<6400xf32>
  %at_asin = arith.constant 512 : index
  %asin = math.asin %z : tensor<256xf32>
  comms.tile_store %asin, %y[%at_asin] : tensor<256xf32>, memref<6400xf32>
  %at_asinh = arith.constant 768 : index
  %asinh = math.asinh %z : tensor<256xf32>
  comms.tile_store %asinh, %y[%at_asinh] : tensor<256xf32>, memref<6400xf32>
  %at_atan = arith.constant 1024 : index
  %atan = math.atan %z : tensor<256xf32>
  comms.tile_store %atan, %y[%at_atan] : tensor<256xf32>, memref<6400xf32>
  %at_atan2 = arith.constant 1280 : index
  %atan2 = math.atan2 %z, %small : tensor<256xf32>
  comms.tile_store %atan2, %y[%at_atan2] : tensor<256xf32>, memref<6400xf32>
  %at_atanh = arith.constant 1536 : index
  %atanh = math.atanh %z : tensor<256xf32>
  comms.tile_store %atanh, %y[%at_atanh] : tensor<256xf32>, memref<6400xf32>
  %at_cbrt = arith.constant 1792 : index
  %cbrt = math.cbrt %z : tensor<256xf32>
  comms.tile_store %cbrt, %y[%at_cbrt] : tensor<256xf32>, memref<6400xf32>
  %at_cos = arith.constant 2048 : index
  %cos = math.cos %z : tensor<256xf32>
  comms.tile_store %cos, %y[%at_cos] : tensor<256xf32>, memref<6400xf32>
  %at_cosh = arith.constant 2304 : index
  %cosh = math.cosh %z : tensor<256xf32>
  comms.tile_store %cosh, %y[%at_cosh] : tensor<256xf32>, memref<6400xf32>
  %at_erf = arith.constant 2560 : index
  %erf = math.erf %z : tensor<256xf32>
  comms.tile_store %erf, %y[%at_erf] : tensor<256xf32>, memref<6400xf32>
  %at_erfc = arith.constant 2816 : index
  %erfc = math.erfc %z : tensor<256xf32>
  comms.tile_store %erfc, %y[%at_erfc] : tensor<256xf32>, memref<6400xf32>
  %at_exp = arith.constant 3072 : index
  %exp = math.exp %z : tensor<256xf32>
  comms.tile_store %exp, %y[%at_exp] : tensor<256xf32>, memref<6400xf32>
  %at_exp2 = arith.constant 3328 : index
  %exp2 = math.exp2 %z : tensor<256xf32>
  comms.tile_store %exp2, %y[%at_exp2] : tensor<256xf32>, memref<6400xf32>
  %at_expm1 = arith.constant 3584 : index
  %expm1 = math.expm1 %z : tensor<256xf32>
  comms.tile_store %expm1, %y[%at_expm1] : tensor<256xf32>, memref<6400xf32>
  %at_log = arith.constant 3840 : index
  %log = math.log %z : tensor<256xf32>
  comms.tile_store %log, %y[%at_log] : tensor<256xf32>, memref<6400xf32>
  %at_log1p = arith.constant 4096 : index
  %log1p = math.log1p %z : tensor<256xf32>
  comms.tile_store %log1p, %y[%at_log1p] : tensor<256xf32>, memref<6400xf32>
  %at_log2 = arith.constant 4352 : index
  %log2 = math.log2 %z : tensor<256xf32>
  comms.tile_store %log2, %y[%at_log2] : tensor<256xf32>, memref<6400xf32>
  %at_powf = arith.constant 4608 : index
  %powf = math.powf %z, %small : tensor<256xf32>
  comms.tile_store %powf, %y[%at_powf] : tensor<256xf32>, memref<6400xf32>
  %at_round = arith.constant 4864 : index
  %round = math.round %z : tensor<256xf32>
  comms.tile_store %round, %y[%at_round] : tensor<256xf32>, memref<6400xf32>
  %at_rsqrt = arith.constant 5120 : index
  %rsqrt = math.rsqrt %z : tensor<256xf32>
  comms.tile_store %rsqrt, %y[%at_rsqrt] : tensor<256xf32>, memref<6400xf32>
  %at_sin = arith.constant 5376 : index
  %sin = math.sin %z : tensor<256xf32>
  comms.tile_store %sin, %y[%at_sin] : tensor<256xf32>, memref<6400xf32>
  %at_sinh = arith.constant 5632 : index
  %sinh = math.sinh %z : tensor<256xf32>
  comms.tile_store %sinh, %y[%at_sinh] : tensor<256xf32>, memref<6400xf32>
  %at_tan = arith.constant 5888 : index
  %tan = math.tan %z : tensor<256xf32>
  comms.tile_store %tan, %y[%at_tan] : tensor<256xf32>, memref<6400xf32>
  %at_tanh = arith.constant 6144 : index
  %tanh = math.tanh %z : tensor<256xf32>
  comms.tile_store %tanh, %y[%at_tanh] : tensor<256xf32>, memref<6400xf32>
  comms.return
}
