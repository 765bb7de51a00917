/*===- failing-malloc.c - A malloc that fails when it is told to -------------===
 *
 * Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===-----------------------------------------------------------------------===
 *
 * For LD_PRELOAD. The allocations of a process are counted. From number FAIL_AT
 * on, or with FAIL_ONCE at this number alone, they fail. With FAIL_COUNT the
 * process writes their number to standard error at its end.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;

static int fails(void) {
  static long at = -2;
  static int once;
  if (at == -2) {
    const char *text = getenv("FAIL_AT");
    once = getenv("FAIL_ONCE") != NULL;
    at = text ? atol(text) : -1;
  }
  long number = atomic_fetch_add(&count, 1);
  if (at < 0 || (once ? number != at : number < at))
    return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }

void *calloc(size_t number, size_t bytes) {
  return fails() ? NULL : __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes) {
  return fails() ? NULL : __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

__attribute__((destructor)) static void writeCount(void) {
  if (getenv("FAIL_COUNT"))
    fprintf(stderr, "allocations: %ld\n", (long)count);
}
