//===- NvrtcAtomic.h - <cuda/atomic> for NVRTC ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replacement, in PTX, for the parts of <cuda/atomic> that NCCL's device
// headers use. A machine that runs kernels has NVRTC (it comes with torch), but
// seldom CUDA's C++ library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_DEVICE_NVRTCATOMIC_H
#define COMMSIR_LOWERING_NVVM_DEVICE_NVRTCATOMIC_H

namespace cuda {

enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread = 10
};

enum memory_order {
  memory_order_relaxed,
  memory_order_consume,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
};

namespace std {
using cuda::memory_order;
using cuda::memory_order_acq_rel;
using cuda::memory_order_acquire;
using cuda::memory_order_relaxed;
using cuda::memory_order_release;
using cuda::memory_order_seq_cst;
} // namespace std

namespace commsir {

// PTX has no narrower scope than a block.
#define COMMSIR_SCOPED(scope, text, ...)                                       \
  do {                                                                         \
    if ((scope) == thread_scope_system)                                        \
      asm volatile(text("sys") __VA_ARGS__);                                   \
    else if ((scope) == thread_scope_device)                                   \
      asm volatile(text("gpu") __VA_ARGS__);                                   \
    else                                                                       \
      asm volatile(text("cta") __VA_ARGS__);                                   \
  } while (0)

__device__ __forceinline__ void fence(memory_order order, thread_scope scope) {
#define COMMSIR_TEXT(scope) "fence.sc." scope ";"
  if (order == memory_order_seq_cst)
    COMMSIR_SCOPED(scope, COMMSIR_TEXT, :: : "memory");
#undef COMMSIR_TEXT
#define COMMSIR_TEXT(scope) "fence.acq_rel." scope ";"
  else if (order != memory_order_relaxed)
    COMMSIR_SCOPED(scope, COMMSIR_TEXT, :: : "memory");
#undef COMMSIR_TEXT
}

inline constexpr bool acquires(memory_order order) {
  return order != memory_order_relaxed && order != memory_order_release;
}
inline constexpr bool releases(memory_order order) {
  return order == memory_order_release || order == memory_order_acq_rel ||
         order == memory_order_seq_cst;
}

/// Instructions on words of one size.
template <unsigned bytes>
struct Word;

#define COMMSIR_LOAD_RELAXED_32(scope) "ld.relaxed." scope ".b32 %0, [%1];"
#define COMMSIR_LOAD_ACQUIRE_32(scope) "ld.acquire." scope ".b32 %0, [%1];"
#define COMMSIR_STORE_RELAXED_32(scope) "st.relaxed." scope ".b32 [%0], %1;"
#define COMMSIR_STORE_RELEASE_32(scope) "st.release." scope ".b32 [%0], %1;"
#define COMMSIR_ADD_32(scope) "atom.relaxed." scope ".add.u32 %0, [%1], %2;"
#define COMMSIR_MAX_32(scope) "atom.relaxed." scope ".max.u32 %0, [%1], %2;"
#define COMMSIR_SWAP_32(scope)                                                 \
  "atom.relaxed." scope ".cas.b32 %0, [%1], %2, %3;"
#define COMMSIR_LOAD_RELAXED_64(scope) "ld.relaxed." scope ".b64 %0, [%1];"
#define COMMSIR_LOAD_ACQUIRE_64(scope) "ld.acquire." scope ".b64 %0, [%1];"
#define COMMSIR_STORE_RELAXED_64(scope) "st.relaxed." scope ".b64 [%0], %1;"
#define COMMSIR_STORE_RELEASE_64(scope) "st.release." scope ".b64 [%0], %1;"
#define COMMSIR_ADD_64(scope) "atom.relaxed." scope ".add.u64 %0, [%1], %2;"
#define COMMSIR_MAX_64(scope) "atom.relaxed." scope ".max.u64 %0, [%1], %2;"

#define COMMSIR_SWAP_64(scope)                                                 \
  "atom.relaxed." scope ".cas.b64 %0, [%1], %2, %3;"

#define COMMSIR_WORD(bytes, bits, type, constraint)                                    \
  template <>                                                                          \
  struct Word<bytes> {                                                                 \
    using Type = type;                                                                 \
    static __device__ __forceinline__ type load(void const *p, bool acquire,           \
                                                thread_scope scope) {                  \
      type value;                                                                      \
      if (acquire)                                                                     \
        COMMSIR_SCOPED(                                                                \
            scope,                                                                     \
            COMMSIR_LOAD_ACQUIRE_##bits, : "=" constraint(value) : "l"(p) : "memory"); \
      else                                                                             \
        COMMSIR_SCOPED(                                                                \
            scope,                                                                     \
            COMMSIR_LOAD_RELAXED_##bits, : "=" constraint(value) : "l"(p) : "memory"); \
      return value;                                                                    \
    }                                                                                  \
    static __device__ __forceinline__ void                                             \
    store(void *p, type value, bool release, thread_scope scope) {                     \
      if (release)                                                                     \
        COMMSIR_SCOPED(scope, COMMSIR_STORE_RELEASE_##bits, ::"l"(p),                  \
                       constraint(value) : "memory");                                  \
      else                                                                             \
        COMMSIR_SCOPED(scope, COMMSIR_STORE_RELAXED_##bits, ::"l"(p),                  \
                       constraint(value) : "memory");                                  \
    }                                                                                  \
    static __device__ __forceinline__ type add(void *p, type value,                    \
                                               thread_scope scope) {                   \
      type before;                                                                     \
      COMMSIR_SCOPED(scope,                                                            \
                     COMMSIR_ADD_##bits, : "=" constraint(before) : "l"(p),            \
                     constraint(value) : "memory");                                    \
      return before;                                                                   \
    }                                                                                  \
    static __device__ __forceinline__ type max(void *p, type value,                    \
                                               thread_scope scope) {                   \
      type before;                                                                     \
      COMMSIR_SCOPED(scope,                                                            \
                     COMMSIR_MAX_##bits, : "=" constraint(before) : "l"(p),            \
                     constraint(value) : "memory");                                    \
      return before;                                                                   \
    }                                                                                  \
    static __device__ __forceinline__ type swap(void *p, type old, type value,         \
                                                thread_scope scope) {                  \
      type before;                                                                     \
      COMMSIR_SCOPED(scope,                                                            \
                     COMMSIR_SWAP_##bits, : "=" constraint(before) : "l"(p),           \
                     constraint(old), constraint(value) : "memory");                   \
      return before;                                                                   \
    }                                                                                  \
  };
COMMSIR_WORD(4, 32, unsigned, "r")
COMMSIR_WORD(8, 64, unsigned long, "l")

} // namespace commsir

__device__ __forceinline__ void
atomic_thread_fence(memory_order order,
                    thread_scope scope = thread_scope_system) {
  commsir::fence(order, scope);
}

/// Words of 4 and 8 bytes; numbers are compared as unsigned ones.
template <typename T, thread_scope scope = thread_scope_system>
struct atomic_ref {
  using Word = commsir::Word<sizeof(T)>;
  using Type = typename Word::Type;

  __device__ __forceinline__ explicit atomic_ref(T &value) : p(&value) {}

  __device__ __forceinline__ T
  load(memory_order order = memory_order_seq_cst) const {
    if (order == memory_order_seq_cst)
      commsir::fence(order, scope);
    return T(Word::load(p, commsir::acquires(order), scope));
  }
  __device__ __forceinline__ void
  store(T value, memory_order order = memory_order_seq_cst) const {
    if (order == memory_order_seq_cst)
      commsir::fence(order, scope);
    Word::store(p, Type(value), commsir::releases(order), scope);
  }
  __device__ __forceinline__ T
  fetch_add(T value, memory_order order = memory_order_seq_cst) const {
    return update(order, [&] { return Word::add(p, Type(value), scope); });
  }
  __device__ __forceinline__ T
  fetch_max(T value, memory_order order = memory_order_seq_cst) const {
    static_assert(T(-1) > T(0), "unsigned numbers only");
    return update(order, [&] { return Word::max(p, Type(value), scope); });
  }
  /// Never fails spuriously. If the values differ, the stronger order applies.
  __device__ __forceinline__ bool
  compare_exchange_weak(T &expected, T value, memory_order order,
                        memory_order failure) const {
    bool acquires = commsir::acquires(order) || commsir::acquires(failure);
    if (acquires && !commsir::acquires(order))
      order = memory_order_acq_rel;
    T before = update(order, [&] {
      return Word::swap(p, Type(expected), Type(value), scope);
    });
    bool same = before == expected;
    expected = before;
    return same;
  }

private:
  template <typename F>
  __device__ __forceinline__ static T update(memory_order order, F apply) {
    if (commsir::releases(order))
      commsir::fence(order, scope);
    T before = T(apply());
    if (commsir::acquires(order))
      commsir::fence(order, scope);
    return before;
  }

  T *p;
};

} // namespace cuda

#endif // COMMSIR_LOWERING_NVVM_DEVICE_NVRTCATOMIC_H
