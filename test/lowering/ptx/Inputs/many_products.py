"""Prints a kernel of many products by a number of weights, in turn: many_products.py PRODUCTS WEIGHTS."""

import sys

products, count = map(int, sys.argv[1:])
weights = ", ".join(f"%w{i}: memref<64x512xbf16>" for i in range(count))
print(f"comms.kernel @many(%a: memref<64x64xbf16>, {weights}, %c: memref<64x512xf32>) {{")
print("  %c0 = arith.constant 0 : index\n  %c64 = arith.constant 64 : index")
for i in range(products):
    print(f"  comms.contract %a[%c0, %c0], %w{i % count}[%c0, %c0] to %c[%c0, %c0] tile [64, 512] depth %c64")
    print("    : memref<64x64xbf16>, memref<64x512xbf16>, memref<64x512xf32>")
print("  comms.return\n}")
