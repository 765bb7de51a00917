// EXEC: comms.math
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'x = np.array([0.1, 2.9], np.float32)' 'y = np.zeros((26, 2), np.int32)'
// RUN: comms-run %s --ranks 1 --quiet --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Functions of constants have the bits of functions of data, though MLIR's folders would have libm's: what differs is 0.
comms.kernel @functions(%x: memref<2xf32>, %y: memref<26x2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.load %x[%c0] : memref<2xf32>
  %b = memref.load %x[%c1] : memref<2xf32>
  %low = arith.constant 0.1 : f32
  %high = arith.constant 2.9 : f32
  %i0 = arith.constant 0 : index
  %l0_0 = math.acos %low : f32
  %r0_0 = math.acos %a : f32
  %m0_0 = arith.bitcast %l0_0 : f32 to i32
  %s0_0 = arith.bitcast %r0_0 : f32 to i32
  %d0_0 = arith.xori %m0_0, %s0_0 : i32
  memref.store %d0_0, %y[%i0, %c0] : memref<26x2xi32>
  %l0_1 = math.acos %high : f32
  %r0_1 = math.acos %b : f32
  %m0_1 = arith.bitcast %l0_1 : f32 to i32
  %s0_1 = arith.bitcast %r0_1 : f32 to i32
  %d0_1 = arith.xori %m0_1, %s0_1 : i32
  memref.store %d0_1, %y[%i0, %c1] : memref<26x2xi32>
  %i1 = arith.constant 1 : index
  %l1_0 = math.acosh %low : f32
  %r1_0 = math.acosh %a : f32
  %m1_0 = arith.bitcast %l1_0 : f32 to i32
  %s1_0 = arith.bitcast %r1_0 : f32 to i32
  %d1_0 = arith.xori %m1_0, %s1_0 : i32
  memref.store %d1_0, %y[%i1, %c0] : memref<26x2xi32>
  %l1_1 = math.acosh %high : f32
  %r1_1 = math.acosh %b : f32
  %m1_1 = arith.bitcast %l1_1 : f32 to i32
  %s1_1 = arith.bitcast %r1_1 : f32 to i32
  %d1_1 = arith.xori %m1_1, %s1_1 : i32
  memref.store %d1_1, %y[%i1, %c1] : memref<26x2xi32>
  %i2 = arith.constant 2 : index
  %l2_0 = math.asin %low : f32
  %r2_0 = math.asin %a : f32
  %m2_0 = arith.bitcast %l2_0 : f32 to i32
  %s2_0 = arith.bitcast %r2_0 : f32 to i32
  %d2_0 = arith.xori %m2_0, %s2_0 : i32
  memref.store %d2_0, %y[%i2, %c0] : memref<26x2xi32>
  %l2_1 = math.asin %high : f32
  %r2_1 = math.asin %b : f32
  %m2_1 = arith.bitcast %l2_1 : f32 to i32
  %s2_1 = arith.bitcast %r2_1 : f32 to i32
  %d2_1 = arith.xori %m2_1, %s2_1 : i32
  memref.store %d2_1, %y[%i2, %c1] : memref<26x2xi32>
  %i3 = arith.constant 3 : index
  %l3_0 = math.asinh %low : f32
  %r3_0 = math.asinh %a : f32
  %m3_0 = arith.bitcast %l3_0 : f32 to i32
  %s3_0 = arith.bitcast %r3_0 : f32 to i32
  %d3_0 = arith.xori %m3_0, %s3_0 : i32
  memref.store %d3_0, %y[%i3, %c0] : memref<26x2xi32>
  %l3_1 = math.asinh %high : f32
  %r3_1 = math.asinh %b : f32
  %m3_1 = arith.bitcast %l3_1 : f32 to i32
  %s3_1 = arith.bitcast %r3_1 : f32 to i32
  %d3_1 = arith.xori %m3_1, %s3_1 : i32
  memref.store %d3_1, %y[%i3, %c1] : memref<26x2xi32>
  %i4 = arith.constant 4 : index
  %l4_0 = math.atan %low : f32
  %r4_0 = math.atan %a : f32
  %m4_0 = arith.bitcast %l4_0 : f32 to i32
  %s4_0 = arith.bitcast %r4_0 : f32 to i32
  %d4_0 = arith.xori %m4_0, %s4_0 : i32
  memref.store %d4_0, %y[%i4, %c0] : memref<26x2xi32>
  %l4_1 = math.atan %high : f32
  %r4_1 = math.atan %b : f32
  %m4_1 = arith.bitcast %l4_1 : f32 to i32
  %s4_1 = arith.bitcast %r4_1 : f32 to i32
  %d4_1 = arith.xori %m4_1, %s4_1 : i32
  memref.store %d4_1, %y[%i4, %c1] : memref<26x2xi32>
  %i5 = arith.constant 5 : index
  %l5_0 = math.atanh %low : f32
  %r5_0 = math.atanh %a : f32
  %m5_0 = arith.bitcast %l5_0 : f32 to i32
  %s5_0 = arith.bitcast %r5_0 : f32 to i32
  %d5_0 = arith.xori %m5_0, %s5_0 : i32
  memref.store %d5_0, %y[%i5, %c0] : memref<26x2xi32>
  %l5_1 = math.atanh %high : f32
  %r5_1 = math.atanh %b : f32
  %m5_1 = arith.bitcast %l5_1 : f32 to i32
  %s5_1 = arith.bitcast %r5_1 : f32 to i32
  %d5_1 = arith.xori %m5_1, %s5_1 : i32
  memref.store %d5_1, %y[%i5, %c1] : memref<26x2xi32>
  %i6 = arith.constant 6 : index
  %l6_0 = math.cbrt %low : f32
  %r6_0 = math.cbrt %a : f32
  %m6_0 = arith.bitcast %l6_0 : f32 to i32
  %s6_0 = arith.bitcast %r6_0 : f32 to i32
  %d6_0 = arith.xori %m6_0, %s6_0 : i32
  memref.store %d6_0, %y[%i6, %c0] : memref<26x2xi32>
  %l6_1 = math.cbrt %high : f32
  %r6_1 = math.cbrt %b : f32
  %m6_1 = arith.bitcast %l6_1 : f32 to i32
  %s6_1 = arith.bitcast %r6_1 : f32 to i32
  %d6_1 = arith.xori %m6_1, %s6_1 : i32
  memref.store %d6_1, %y[%i6, %c1] : memref<26x2xi32>
  %i7 = arith.constant 7 : index
  %l7_0 = math.cos %low : f32
  %r7_0 = math.cos %a : f32
  %m7_0 = arith.bitcast %l7_0 : f32 to i32
  %s7_0 = arith.bitcast %r7_0 : f32 to i32
  %d7_0 = arith.xori %m7_0, %s7_0 : i32
  memref.store %d7_0, %y[%i7, %c0] : memref<26x2xi32>
  %l7_1 = math.cos %high : f32
  %r7_1 = math.cos %b : f32
  %m7_1 = arith.bitcast %l7_1 : f32 to i32
  %s7_1 = arith.bitcast %r7_1 : f32 to i32
  %d7_1 = arith.xori %m7_1, %s7_1 : i32
  memref.store %d7_1, %y[%i7, %c1] : memref<26x2xi32>
  %i8 = arith.constant 8 : index
  %l8_0 = math.cosh %low : f32
  %r8_0 = math.cosh %a : f32
  %m8_0 = arith.bitcast %l8_0 : f32 to i32
  %s8_0 = arith.bitcast %r8_0 : f32 to i32
  %d8_0 = arith.xori %m8_0, %s8_0 : i32
  memref.store %d8_0, %y[%i8, %c0] : memref<26x2xi32>
  %l8_1 = math.cosh %high : f32
  %r8_1 = math.cosh %b : f32
  %m8_1 = arith.bitcast %l8_1 : f32 to i32
  %s8_1 = arith.bitcast %r8_1 : f32 to i32
  %d8_1 = arith.xori %m8_1, %s8_1 : i32
  memref.store %d8_1, %y[%i8, %c1] : memref<26x2xi32>
  %i9 = arith.constant 9 : index
  %l9_0 = math.erf %low : f32
  %r9_0 = math.erf %a : f32
  %m9_0 = arith.bitcast %l9_0 : f32 to i32
  %s9_0 = arith.bitcast %r9_0 : f32 to i32
  %d9_0 = arith.xori %m9_0, %s9_0 : i32
  memref.store %d9_0, %y[%i9, %c0] : memref<26x2xi32>
  %l9_1 = math.erf %high : f32
  %r9_1 = math.erf %b : f32
  %m9_1 = arith.bitcast %l9_1 : f32 to i32
  %s9_1 = arith.bitcast %r9_1 : f32 to i32
  %d9_1 = arith.xori %m9_1, %s9_1 : i32
  memref.store %d9_1, %y[%i9, %c1] : memref<26x2xi32>
  %i10 = arith.constant 10 : index
  %l10_0 = math.erfc %low : f32
  %r10_0 = math.erfc %a : f32
  %m10_0 = arith.bitcast %l10_0 : f32 to i32
  %s10_0 = arith.bitcast %r10_0 : f32 to i32
  %d10_0 = arith.xori %m10_0, %s10_0 : i32
  memref.store %d10_0, %y[%i10, %c0] : memref<26x2xi32>
  %l10_1 = math.erfc %high : f32
  %r10_1 = math.erfc %b : f32
  %m10_1 = arith.bitcast %l10_1 : f32 to i32
  %s10_1 = arith.bitcast %r10_1 : f32 to i32
  %d10_1 = arith.xori %m10_1, %s10_1 : i32
  memref.store %d10_1, %y[%i10, %c1] : memref<26x2xi32>
  %i11 = arith.constant 11 : index
  %l11_0 = math.exp %low : f32
  %r11_0 = math.exp %a : f32
  %m11_0 = arith.bitcast %l11_0 : f32 to i32
  %s11_0 = arith.bitcast %r11_0 : f32 to i32
  %d11_0 = arith.xori %m11_0, %s11_0 : i32
  memref.store %d11_0, %y[%i11, %c0] : memref<26x2xi32>
  %l11_1 = math.exp %high : f32
  %r11_1 = math.exp %b : f32
  %m11_1 = arith.bitcast %l11_1 : f32 to i32
  %s11_1 = arith.bitcast %r11_1 : f32 to i32
  %d11_1 = arith.xori %m11_1, %s11_1 : i32
  memref.store %d11_1, %y[%i11, %c1] : memref<26x2xi32>
  %i12 = arith.constant 12 : index
  %l12_0 = math.exp2 %low : f32
  %r12_0 = math.exp2 %a : f32
  %m12_0 = arith.bitcast %l12_0 : f32 to i32
  %s12_0 = arith.bitcast %r12_0 : f32 to i32
  %d12_0 = arith.xori %m12_0, %s12_0 : i32
  memref.store %d12_0, %y[%i12, %c0] : memref<26x2xi32>
  %l12_1 = math.exp2 %high : f32
  %r12_1 = math.exp2 %b : f32
  %m12_1 = arith.bitcast %l12_1 : f32 to i32
  %s12_1 = arith.bitcast %r12_1 : f32 to i32
  %d12_1 = arith.xori %m12_1, %s12_1 : i32
  memref.store %d12_1, %y[%i12, %c1] : memref<26x2xi32>
  %i13 = arith.constant 13 : index
  %l13_0 = math.expm1 %low : f32
  %r13_0 = math.expm1 %a : f32
  %m13_0 = arith.bitcast %l13_0 : f32 to i32
  %s13_0 = arith.bitcast %r13_0 : f32 to i32
  %d13_0 = arith.xori %m13_0, %s13_0 : i32
  memref.store %d13_0, %y[%i13, %c0] : memref<26x2xi32>
  %l13_1 = math.expm1 %high : f32
  %r13_1 = math.expm1 %b : f32
  %m13_1 = arith.bitcast %l13_1 : f32 to i32
  %s13_1 = arith.bitcast %r13_1 : f32 to i32
  %d13_1 = arith.xori %m13_1, %s13_1 : i32
  memref.store %d13_1, %y[%i13, %c1] : memref<26x2xi32>
  %i14 = arith.constant 14 : index
  %l14_0 = math.log %low : f32
  %r14_0 = math.log %a : f32
  %m14_0 = arith.bitcast %l14_0 : f32 to i32
  %s14_0 = arith.bitcast %r14_0 : f32 to i32
  %d14_0 = arith.xori %m14_0, %s14_0 : i32
  memref.store %d14_0, %y[%i14, %c0] : memref<26x2xi32>
  %l14_1 = math.log %high : f32
  %r14_1 = math.log %b : f32
  %m14_1 = arith.bitcast %l14_1 : f32 to i32
  %s14_1 = arith.bitcast %r14_1 : f32 to i32
  %d14_1 = arith.xori %m14_1, %s14_1 : i32
  memref.store %d14_1, %y[%i14, %c1] : memref<26x2xi32>
  %i15 = arith.constant 15 : index
  %l15_0 = math.log1p %low : f32
  %r15_0 = math.log1p %a : f32
  %m15_0 = arith.bitcast %l15_0 : f32 to i32
  %s15_0 = arith.bitcast %r15_0 : f32 to i32
  %d15_0 = arith.xori %m15_0, %s15_0 : i32
  memref.store %d15_0, %y[%i15, %c0] : memref<26x2xi32>
  %l15_1 = math.log1p %high : f32
  %r15_1 = math.log1p %b : f32
  %m15_1 = arith.bitcast %l15_1 : f32 to i32
  %s15_1 = arith.bitcast %r15_1 : f32 to i32
  %d15_1 = arith.xori %m15_1, %s15_1 : i32
  memref.store %d15_1, %y[%i15, %c1] : memref<26x2xi32>
  %i16 = arith.constant 16 : index
  %l16_0 = math.log2 %low : f32
  %r16_0 = math.log2 %a : f32
  %m16_0 = arith.bitcast %l16_0 : f32 to i32
  %s16_0 = arith.bitcast %r16_0 : f32 to i32
  %d16_0 = arith.xori %m16_0, %s16_0 : i32
  memref.store %d16_0, %y[%i16, %c0] : memref<26x2xi32>
  %l16_1 = math.log2 %high : f32
  %r16_1 = math.log2 %b : f32
  %m16_1 = arith.bitcast %l16_1 : f32 to i32
  %s16_1 = arith.bitcast %r16_1 : f32 to i32
  %d16_1 = arith.xori %m16_1, %s16_1 : i32
  memref.store %d16_1, %y[%i16, %c1] : memref<26x2xi32>
  %i17 = arith.constant 17 : index
  %l17_0 = math.round %low : f32
  %r17_0 = math.round %a : f32
  %m17_0 = arith.bitcast %l17_0 : f32 to i32
  %s17_0 = arith.bitcast %r17_0 : f32 to i32
  %d17_0 = arith.xori %m17_0, %s17_0 : i32
  memref.store %d17_0, %y[%i17, %c0] : memref<26x2xi32>
  %l17_1 = math.round %high : f32
  %r17_1 = math.round %b : f32
  %m17_1 = arith.bitcast %l17_1 : f32 to i32
  %s17_1 = arith.bitcast %r17_1 : f32 to i32
  %d17_1 = arith.xori %m17_1, %s17_1 : i32
  memref.store %d17_1, %y[%i17, %c1] : memref<26x2xi32>
  %i18 = arith.constant 18 : index
  %l18_0 = math.rsqrt %low : f32
  %r18_0 = math.rsqrt %a : f32
  %m18_0 = arith.bitcast %l18_0 : f32 to i32
  %s18_0 = arith.bitcast %r18_0 : f32 to i32
  %d18_0 = arith.xori %m18_0, %s18_0 : i32
  memref.store %d18_0, %y[%i18, %c0] : memref<26x2xi32>
  %l18_1 = math.rsqrt %high : f32
  %r18_1 = math.rsqrt %b : f32
  %m18_1 = arith.bitcast %l18_1 : f32 to i32
  %s18_1 = arith.bitcast %r18_1 : f32 to i32
  %d18_1 = arith.xori %m18_1, %s18_1 : i32
  memref.store %d18_1, %y[%i18, %c1] : memref<26x2xi32>
  %i19 = arith.constant 19 : index
  %l19_0 = math.sin %low : f32
  %r19_0 = math.sin %a : f32
  %m19_0 = arith.bitcast %l19_0 : f32 to i32
  %s19_0 = arith.bitcast %r19_0 : f32 to i32
  %d19_0 = arith.xori %m19_0, %s19_0 : i32
  memref.store %d19_0, %y[%i19, %c0] : memref<26x2xi32>
  %l19_1 = math.sin %high : f32
  %r19_1 = math.sin %b : f32
  %m19_1 = arith.bitcast %l19_1 : f32 to i32
  %s19_1 = arith.bitcast %r19_1 : f32 to i32
  %d19_1 = arith.xori %m19_1, %s19_1 : i32
  memref.store %d19_1, %y[%i19, %c1] : memref<26x2xi32>
  %i20 = arith.constant 20 : index
  %l20_0 = math.sinh %low : f32
  %r20_0 = math.sinh %a : f32
  %m20_0 = arith.bitcast %l20_0 : f32 to i32
  %s20_0 = arith.bitcast %r20_0 : f32 to i32
  %d20_0 = arith.xori %m20_0, %s20_0 : i32
  memref.store %d20_0, %y[%i20, %c0] : memref<26x2xi32>
  %l20_1 = math.sinh %high : f32
  %r20_1 = math.sinh %b : f32
  %m20_1 = arith.bitcast %l20_1 : f32 to i32
  %s20_1 = arith.bitcast %r20_1 : f32 to i32
  %d20_1 = arith.xori %m20_1, %s20_1 : i32
  memref.store %d20_1, %y[%i20, %c1] : memref<26x2xi32>
  %i21 = arith.constant 21 : index
  %l21_0 = math.tan %low : f32
  %r21_0 = math.tan %a : f32
  %m21_0 = arith.bitcast %l21_0 : f32 to i32
  %s21_0 = arith.bitcast %r21_0 : f32 to i32
  %d21_0 = arith.xori %m21_0, %s21_0 : i32
  memref.store %d21_0, %y[%i21, %c0] : memref<26x2xi32>
  %l21_1 = math.tan %high : f32
  %r21_1 = math.tan %b : f32
  %m21_1 = arith.bitcast %l21_1 : f32 to i32
  %s21_1 = arith.bitcast %r21_1 : f32 to i32
  %d21_1 = arith.xori %m21_1, %s21_1 : i32
  memref.store %d21_1, %y[%i21, %c1] : memref<26x2xi32>
  %i22 = arith.constant 22 : index
  %l22_0 = math.tanh %low : f32
  %r22_0 = math.tanh %a : f32
  %m22_0 = arith.bitcast %l22_0 : f32 to i32
  %s22_0 = arith.bitcast %r22_0 : f32 to i32
  %d22_0 = arith.xori %m22_0, %s22_0 : i32
  memref.store %d22_0, %y[%i22, %c0] : memref<26x2xi32>
  %l22_1 = math.tanh %high : f32
  %r22_1 = math.tanh %b : f32
  %m22_1 = arith.bitcast %l22_1 : f32 to i32
  %s22_1 = arith.bitcast %r22_1 : f32 to i32
  %d22_1 = arith.xori %m22_1, %s22_1 : i32
  memref.store %d22_1, %y[%i22, %c1] : memref<26x2xi32>
  %i23 = arith.constant 23 : index
  %l23_0 = math.powf %low, %high : f32
  %r23_0 = math.powf %a, %b : f32
  %m23_0 = arith.bitcast %l23_0 : f32 to i32
  %s23_0 = arith.bitcast %r23_0 : f32 to i32
  %d23_0 = arith.xori %m23_0, %s23_0 : i32
  memref.store %d23_0, %y[%i23, %c0] : memref<26x2xi32>
  %l23_1 = math.powf %high, %low : f32
  %r23_1 = math.powf %b, %a : f32
  %m23_1 = arith.bitcast %l23_1 : f32 to i32
  %s23_1 = arith.bitcast %r23_1 : f32 to i32
  %d23_1 = arith.xori %m23_1, %s23_1 : i32
  memref.store %d23_1, %y[%i23, %c1] : memref<26x2xi32>
  %i24 = arith.constant 24 : index
  %l24_0 = math.atan2 %low, %high : f32
  %r24_0 = math.atan2 %a, %b : f32
  %m24_0 = arith.bitcast %l24_0 : f32 to i32
  %s24_0 = arith.bitcast %r24_0 : f32 to i32
  %d24_0 = arith.xori %m24_0, %s24_0 : i32
  memref.store %d24_0, %y[%i24, %c0] : memref<26x2xi32>
  %l24_1 = math.atan2 %high, %low : f32
  %r24_1 = math.atan2 %b, %a : f32
  %m24_1 = arith.bitcast %l24_1 : f32 to i32
  %s24_1 = arith.bitcast %r24_1 : f32 to i32
  %d24_1 = arith.xori %m24_1, %s24_1 : i32
  memref.store %d24_1, %y[%i24, %c1] : memref<26x2xi32>
  // Written as what the compiler makes of it.
  %i25 = arith.constant 25 : index
  %l25_0 = comms.math sin(%low) : f32
  %r25_0 = math.sin %a : f32
  %m25_0 = arith.bitcast %l25_0 : f32 to i32
  %s25_0 = arith.bitcast %r25_0 : f32 to i32
  %d25_0 = arith.xori %m25_0, %s25_0 : i32
  memref.store %d25_0, %y[%i25, %c0] : memref<26x2xi32>
  %l25_1 = comms.math sin(%high) : f32
  %r25_1 = math.sin %b : f32
  %m25_1 = arith.bitcast %l25_1 : f32 to i32
  %s25_1 = arith.bitcast %r25_1 : f32 to i32
  %d25_1 = arith.xori %m25_1, %s25_1 : i32
  memref.store %d25_1, %y[%i25, %c1] : memref<26x2xi32>
  comms.return
}
