/*===- Glibc.c - What an older glibc lacks -------------------------*- C
-*-===*\
|*
|* Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Linked into the library that travels alone. The static archives of LLVM were
|* built with glibc 2.36 and call arc4random, which 2.35 does not have.
|*
\*===----------------------------------------------------------------------===*/

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
    abort();
  return value;
}
