/*===- commsir.h - CommsIR's C API --------------------------------*- C -*-===*\
|*
|* Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The interface of CommsIR for other languages and libraries: it compiles,
|* checks and simulates kernels, and makes the process one rank of a group.
|* Strings are UTF-8 and end with a zero. Requests and reports with many fields
|* are JSON objects; docs/CApi.md lists their keys.
|*
|* A struct that may grow begins with `size`: set it to sizeof the struct, and
|* each field that you do not need to 0. A struct without `size` does not grow.
|*
|* A function that can fail returns a status. If it is not COMMSIR_OK,
|* commsir_error_message() and commsir_error_json() describe the error, on the
|* same thread. Free strings that a function returns with commsir_free().
|*
\*===----------------------------------------------------------------------===*/

#ifndef COMMSIR_RUNTIME_CAPI_COMMSIR_H
#define COMMSIR_RUNTIME_CAPI_COMMSIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COMMSIR_API __attribute__((visibility("default")))

typedef enum {
  COMMSIR_OK = 0,
  /* The request is invalid, or a file or device is missing. */
  COMMSIR_USAGE = 2,
  /* The source is wrong, or cannot be compiled. */
  COMMSIR_COMPILE = 3,
  /* The checker has refused the kernel. */
  COMMSIR_CHECKER = 4,
  /* A deadlock, or a peer was late. */
  COMMSIR_DEADLOCK = 5,
  /* A result differs from what was expected. */
  COMMSIR_MISMATCH = 6,
  /* A limit on steps or time was reached. */
  COMMSIR_LIMIT = 7,
  /* An access out of bounds. */
  COMMSIR_BOUNDS = 8,
  /* Ranks of a group disagree: different calls, sizes, types, kernels. */
  COMMSIR_DISAGREE = 9,
  /* The group was aborted, or destroyed; a simulation was interrupted. */
  COMMSIR_ABORTED = 10
} commsir_status;

/* The versions of the library and of the LLVM that it was built with. The text
 * stays valid until the process ends. */
COMMSIR_API const char *commsir_version(void);
#define COMMSIR_ABI_VERSION 2
/* The interface that this header describes. A program that opens the library at
 * run time compares it with commsir_abi_version(): functions and structs are
 * those of the header only if both are equal. It stays when the library gets
 * new functions, or a struct with `size` gets new fields at its end; 0 in a new
 * field means what the library did without it. So the library accepts the
 * smaller struct of an older header. It also accepts the larger struct of a
 * newer header if the fields that it does not know are 0; else the call fails
 * with COMMSIR_USAGE. */
COMMSIR_API int32_t commsir_abi_version(void);
/* What happened, followed by one line for each diagnostic of the source. The
 * text stays valid until the thread's next call that fails. */
COMMSIR_API const char *commsir_error_message(void);
/* {"kind", "message", "diagnostics": [{"severity", "message", "file", "line",
 * "column", "notes": […]}], "waiting": [{"rank", "block", "op", "location",
 * "what"}]}. Fields without a value are left out. */
COMMSIR_API const char *commsir_error_json(void);
/* Nonzero if the thread's last error comes from an earlier launch, not from the
 * call that returned it. commsir_launch reports such a failure before it
 * launches; commsir_group_poll and commsir_group_finish report nothing else. */
COMMSIR_API int commsir_error_is_earlier(void);
/* Frees a text that a function has returned; null is allowed. */
COMMSIR_API void commsir_free(void *text);

/*===----------------------------------------------------------------------===*\
|* Groups: one rank of N processes (runtime/group/Group.h)
\*===----------------------------------------------------------------------===*/

/* Threads. Any thread may call any function at any time. If another thread
 * closes, destroys or drops the group, the call fails with COMMSIR_ABORTED. A
 * handle stays valid until the process ends; its address is not used again.
 *
 * - Collective calls (windows, signals, collectives, kernels and their
 *   launches), and commsir_window_adopt and commsir_window_forget, take turns,
 *   first come, first served. Ranks compare these calls. So threads that make
 *   different ones must make them in one order on all ranks, or use a group
 *   each.
 * - All other functions run concurrently: a wait for a signal delays no
 *   collective, and abort, poll, ended and stats work while another call waits
 *   for peers.
 * - A callback (an interrupt hook, a function of a store) may make only calls
 *   of the second kind on its group; the first kind fails with COMMSIR_USAGE.
 * - A call uses its arrays until it returns (GPU: until the stream has run it).
 *   No other thread may use them meanwhile.
 */

/* One rank of a group, and a kernel that was compiled for it. */
typedef struct commsir_group commsir_group;
typedef struct commsir_kernel commsir_kernel;

/* A key-value store through which ranks find each other. `get` waits for the
 * key, at most `timeout` seconds, and returns bytes from malloc(). Both
 * functions return 0 on success. */
typedef struct {
  size_t size;
  void *self;
  int (*set)(void *self, const char *key, const void *data, size_t bytes);
  int (*get)(void *self, const char *key, double timeout, void **data,
             size_t *bytes);
} commsir_store;

/* How this process takes part in a group. */
typedef struct {
  size_t size;
  /* The same on all ranks, and on no other group of the store at that time. */
  const char *name;
  int64_t rank, ranks;
  /* GPU, or -1 for the CPU. */
  int32_t device;
  /* Seconds; 0: the default. */
  double timeout;
  /* ncclComm_t of the caller, or null. */
  void *nccl_comm;
  /* GPU: the most CTAs of an all_reduce, all_gather or reduce_scatter that
   * takes 0.15 ms or more, which leaves the rest to other kernels. 0: as many
   * as are fastest; -1: 28, enough for NCCL's bandwidth. COMMSIR_MAX_CTAS
   * overrides it. */
  int64_t ctas;
} commsir_group_options;

/* Collective. Uses `store` only during the call. */
COMMSIR_API commsir_status commsir_group_create(const commsir_group_options *,
                                                const commsir_store *store,
                                                commsir_group **group);
/* A store in a folder that all ranks see. */
COMMSIR_API commsir_status commsir_group_create_in_folder(
    const commsir_group_options *, const char *folder, commsir_group **group);
/* Refuses new calls. Calls of other threads that wait for signals or for their
   turns fail at once (COMMSIR_ABORTED); others have 5 s to end before the group
   is aborted. Windows and the group stay until commsir_group_destroy or
   commsir_group_drop, which close the group first (drop without waiting). */
COMMSIR_API void commsir_group_close(commsir_group *);
/* Ends the group. GPU: waits for running kernels. With NCCL windows the call is
   collective, and waits up to 5 s for late ranks; memory that they still use is
   then not returned before the process ends. */
COMMSIR_API void commsir_group_destroy(commsir_group *);
/* The same without waiting, for finalizers of garbage collectors, which run at
   different times on each rank. GPU: a background thread ends the group when
   all ranks have dropped it. A group whose launches a graph has captured stays
   until the process ends. */
COMMSIR_API void commsir_group_drop(commsir_group *);
/* Ends all present and future waits of this rank; calls fail from now on with
 * COMMSIR_ABORTED and a message that has `reason`. Peers that need this rank
 * get an error. Does not wait. */
COMMSIR_API commsir_status commsir_group_abort(commsir_group *,
                                               const char *reason);
/* Aborts this group, and makes a new one of `count` of its ranks, `survivors`:
 * an ascending list with this rank, the same on all survivors, which all call
 * this. They find each other through `store`, which is used only during the
 * call. A rank's place in the list is its new rank. COMMSIR_USAGE: the list is
 * another. COMMSIR_DEADLOCK: a survivor was later than the group's timeout. */
COMMSIR_API commsir_status commsir_group_shrink(commsir_group *,
                                                const int64_t *survivors,
                                                size_t count,
                                                const commsir_store *store,
                                                commsir_group **group);
/* Seconds that a rank waits for a peer, from the next call on. GPU: also in
 * launches of graphs that were captured before. */
COMMSIR_API commsir_status commsir_group_set_timeout(commsir_group *,
                                                     double seconds);
/* Adds a function, at most 8. Waits of groups on the CPU, waits for a store's
 * folder, and simulations on the CPU call it at least every 50 ms, on the
 * waiting thread. If it does not return 0, as after Ctrl-C, the call fails with
 * COMMSIR_ABORTED, and so do later calls of the group (except after
 * commsir_wait_signal). Null removes all functions. */
COMMSIR_API void commsir_set_interrupt(int (*check)(void));
/* Returns the first failure that launches have reported so far. Does not wait.
 */
COMMSIR_API commsir_status commsir_group_poll(commsir_group *);
/* Why the group can no longer be used, from its first failure, to be freed;
 * null: it can be used. It can on the CPU after a collective in which ranks
 * disagreed and that failed on all of them: the next collective call recovers
 * the group. Until then commsir_group_poll and one-sided access return that
 * failure (COMMSIR_DISAGREE); commsir_window_adopt works. */
COMMSIR_API char *commsir_group_ended(commsir_group *);
/* Waits until `stream` has run all work queued so far, then acts as
 * commsir_group_poll. CPU: calls have ended when they return. */
COMMSIR_API commsir_status commsir_group_finish(commsir_group *, void *stream);
/* {"launches", "compiled", "from_cache", "window_bytes", "channel_bytes",
 * "in_place", "staged"} */
COMMSIR_API char *commsir_group_stats(commsir_group *);

/* Allocates a window: `bytes` bytes on each rank, zero at first, which peers
 * can reach. `base` gets the address of this rank's part. Collective, with the
 * same size on all ranks (else COMMSIR_DISAGREE). The memory lives until
 * commsir_window_release, or until the group ends. */
COMMSIR_API commsir_status commsir_window_allocate(commsir_group *,
                                                   size_t bytes, void **base);
/* The same. `purpose` describes the use of the memory ("f32 (2, 3)"). If it
 * differs between ranks, the call fails on all of them (COMMSIR_DISAGREE), and
 * the group can still be used. */
COMMSIR_API commsir_status commsir_window_allocate_for(commsir_group *,
                                                       size_t bytes,
                                                       const char *purpose,
                                                       void **base);
/* Frees a window by the address that allocating it gave. Collective. CPU: its
 * memory stays mapped while commsir_window_keep holds it. Waits of other
 * threads for a cell in it fail (COMMSIR_USAGE). */
COMMSIR_API commsir_status commsir_window_release(commsir_group *, void *base);
/* CPU: keeps this rank's view of the window at `own` mapped after the window is
 * released, until commsir_window_drop was called as many times or the group is
 * destroyed. Any thread. On a GPU this has no effect. */
COMMSIR_API void commsir_window_keep(commsir_group *, void *own);
COMMSIR_API void commsir_window_drop(commsir_group *, void *own);
/* Adopts memory that is symmetric already. `parts` has the address at which
 * this rank reaches each rank's part. Not collective. */
COMMSIR_API commsir_status commsir_window_adopt(commsir_group *, void *own,
                                                size_t bytes,
                                                const uint64_t *parts);
/* Makes memory of this rank's GPU a window, whatever allocated it (cudaMalloc,
 * ncclMemAlloc, CUDA's virtual memory). Collective, with the same number of
 * bytes on all ranks. Keep the memory until all ranks have called
 * commsir_window_forget. */
COMMSIR_API commsir_status commsir_window_share(commsir_group *, void *own,
                                                size_t bytes);
/* Ends commsir_window_adopt or commsir_window_share, on this rank. Waits for
 * the calls of other threads that may use the memory. */
COMMSIR_API void commsir_window_forget(commsir_group *, void *own);
/* Nonzero if the `bytes` bytes at `data` lie in one window of the group. */
COMMSIR_API int commsir_window_contains(commsir_group *, const void *data,
                                        size_t bytes);
/* The address at which this rank reaches the same place of the part of rank
 * `peer`. Null: `data` lies in no window, or the peer is out of reach. */
COMMSIR_API void *commsir_window_peer(commsir_group *, const void *data,
                                      int64_t peer);

/*===----------------------------------------------------------------------===*\
|* One-sided access (runtime/group/OneSided.h): the other rank makes no call.
|* docs/GroupsReference.md says what is ordered.
\*===----------------------------------------------------------------------===*/

/* Copy to the peer's part of a window, and from it. `to` of a put and `from` of
 * a get are addresses in this rank's part; the copy accesses the same offset of
 * the peer's part. CPU: done when the call returns; `stream` is null. GPU:
 * queued in `stream`, which may be capturing. COMMSIR_DEADLOCK: the peer has
 * left or died. */
COMMSIR_API commsir_status commsir_put(commsir_group *, int64_t peer, void *to,
                                       const void *from, size_t bytes,
                                       void *stream);
COMMSIR_API commsir_status commsir_get(commsir_group *, int64_t peer,
                                       const void *from, void *to, size_t bytes,
                                       void *stream);

/* Signal cells: each rank has one number per cell, from 0 to 2^63 - 1, at first
 * 0. Both functions are collective; `first` is the number of the first cell.
 * Releasing cells ends waits of other threads for them (COMMSIR_USAGE). */
COMMSIR_API commsir_status commsir_signals_reserve(commsir_group *,
                                                   int64_t count,
                                                   int64_t *first);
COMMSIR_API commsir_status commsir_signals_release(commsir_group *,
                                                   int64_t first);

/* The kinds of signals and of waits. */
enum { COMMSIR_SIGNAL_SET = 0, COMMSIR_SIGNAL_ADD = 1 };
enum { COMMSIR_WAIT_EQ = 0, COMMSIR_WAIT_GE = 1 };

/* Changes a cell of the peer after all earlier puts of this rank. */
COMMSIR_API commsir_status commsir_signal(commsir_group *, int64_t peer,
                                          int64_t cell, int32_t kind,
                                          int64_t value, void *stream);
/* A put, then a signal. A rank that waits for the signal is then guaranteed to
 * see the data. */
COMMSIR_API commsir_status commsir_put_signal(commsir_group *, int64_t peer,
                                              void *to, const void *from,
                                              size_t bytes, int64_t cell,
                                              int32_t kind, int64_t value,
                                              void *stream);
/* Waits for a cell of this rank, which `source` (-1: any rank) signals.
 * `timeout` is in seconds. CPU: 0 means the group's. GPU: with 0 the stream
 * waits, without a limit; otherwise the host waits, and `stream` is not used.
 * After a wait that fails the group can still be used (COMMSIR_DEADLOCK: the
 * source has left or died, or the timeout; COMMSIR_ABORTED: interrupted). */
COMMSIR_API commsir_status commsir_wait_signal(commsir_group *, int64_t cell,
                                               int32_t kind, int64_t value,
                                               int64_t source, double timeout,
                                               void *stream);
/* Waits until a cell of this rank holds at least `value`, and subtracts `value`
 * from it: the counterpart of signals that add. It waits at most for the
 * group's timeout. CPU: done when the call returns, with the errors of a wait.
 * GPU: the stream waits; commsir_group_poll reports a timeout
 * (COMMSIR_DEADLOCK), after which the group has ended. */
COMMSIR_API commsir_status commsir_take_signal(commsir_group *, int64_t cell,
                                               int64_t value, int64_t source,
                                               void *stream);
/* The same with a cell for each rank: the first adds `value` to cell `first` +
 * this rank of every other rank, after all earlier puts of this rank; the
 * second takes `value` from cell `first` + r of this rank for every other rank
 * r. GPU: one launch each, whatever the number of ranks. */
COMMSIR_API commsir_status commsir_signal_others(commsir_group *, int64_t first,
                                                 int64_t value, void *stream);
COMMSIR_API commsir_status commsir_take_from_others(commsir_group *,
                                                    int64_t first,
                                                    int64_t value,
                                                    void *stream);
/* Read a cell of this rank, and set it to 0. GPU: the read is not ordered with
 * any stream; the reset is queued in `stream`. */
COMMSIR_API commsir_status commsir_read_signal(commsir_group *, int64_t cell,
                                               int64_t *value);
COMMSIR_API commsir_status commsir_reset_signal(commsir_group *, int64_t cell,
                                                void *stream);

/*===----------------------------------------------------------------------===*\
|* Sends and receives between processes of one host, on the CPU
|* (runtime/group/PointToPoint.h). No call is collective. Any thread may call.
\*===----------------------------------------------------------------------===*/

typedef struct commsir_p2p commsir_p2p;
typedef struct commsir_transfer commsir_transfer;

/* Makes this process one of `ranks` ranks that use the same `name`. Uses
 * `store` until commsir_p2p_destroy, from any thread. Its `get` with a timeout
 * of 0 must not wait. */
COMMSIR_API commsir_status commsir_p2p_create(const char *name, int64_t rank,
                                              int64_t ranks,
                                              const commsir_store *store,
                                              commsir_p2p **p2p);
/* Ends all transfers; messages that are not in a peer's ring yet are lost.
 * Transfers may be freed later. COMMSIR_DEADLOCK: the store did not answer for
 * seconds; keep it until the process ends. */
COMMSIR_API commsir_status commsir_p2p_destroy(commsir_p2p *);
/* Ends all transfers, also on the other side. */
COMMSIR_API commsir_status commsir_p2p_abort(commsir_p2p *, const char *reason);
/* For the end of a program: waits at most `timeout` seconds until all sends are
 * in their peers' rings, from which the peers can still receive them. Then ends
 * all transfers, as commsir_p2p_abort does. COMMSIR_DEADLOCK as for
 * commsir_p2p_destroy, which has to follow. */
COMMSIR_API commsir_status commsir_p2p_leave(commsir_p2p *, double timeout);
/* States that all ranks have called commsir_p2p_create, which the caller knows
 * by other means. A rank that is missing then counts as gone at once. Without
 * this call, a rank that ended before its first message counts as gone after
 * five seconds, because it may belong to an earlier group of the same name.
 * Does not wait. */
COMMSIR_API commsir_status commsir_p2p_confirm(commsir_p2p *);
/* Whether messages can reach `peer` (-1: every rank); both sides get the same
 * answer. Waits at most `timeout` seconds until the peer has called
 * commsir_p2p_create (COMMSIR_DEADLOCK: it has not). */
COMMSIR_API commsir_status commsir_p2p_reaches(commsir_p2p *, int64_t peer,
                                               double timeout, int *reached);

/* `what` describes the data ("4 x float32"). If it differs between the two
 * sides, both fail (COMMSIR_DISAGREE), and so do later messages between them.
 */
typedef struct {
  size_t size;
  /* Receive: -1 is any rank. */
  int64_t peer, tag;
  void *data;
  size_t bytes;
  const char *what;
} commsir_message;
/* Do not wait. Keep the data in place until the transfer is over. */
COMMSIR_API commsir_status commsir_p2p_send(commsir_p2p *,
                                            const commsir_message *,
                                            commsir_transfer **);
COMMSIR_API commsir_status commsir_p2p_receive(commsir_p2p *,
                                               const commsir_message *,
                                               commsir_transfer **);
/* A send is done when the receiver has taken its message. COMMSIR_DEADLOCK: the
 * other side was later than `timeout` seconds, which cancels the transfer, or
 * it has left or died. */
COMMSIR_API commsir_status commsir_transfer_wait(commsir_transfer *,
                                                 double timeout);
/* Nonzero if the transfer is done or has failed. */
COMMSIR_API int commsir_transfer_is_over(commsir_transfer *);
/* The rank that sent the received message. */
COMMSIR_API int64_t commsir_transfer_source(commsir_transfer *);
/* Frees the handle; the transfer continues. No other thread may be in a call
 * with it. */
COMMSIR_API void commsir_transfer_free(commsir_transfer *);

/* A plain collective; elements are counted as in runtime/group/Collective.h.
 * `type` is MLIR's name ("bf16"), `op` "all_reduce", `reduction` "sum" or "".
 * `stream`: a cudaStream_t, or null on the CPU. */
typedef struct {
  size_t size;
  const char *op, *reduction, *type;
  int64_t root, peer;
  const void *input;
  int64_t input_elements;
  void *output;
  int64_t output_elements;
  const char *algorithm, *protocol;
  /* Only for all_to_all_v: elements to and from each rank. */
  const int64_t *send_counts, *recv_counts;
  /* The caller's name of the element type ("ui8", "complex<f32>"), if `type`
   * says only how to move the elements. Ranks whose names differ get
   * COMMSIR_DISAGREE. Null: `type`. */
  const char *type_name;
} commsir_collective;
/* Runs a collective. All ranks make the same call (else COMMSIR_DISAGREE). CPU:
 * done when the call returns. GPU: queued in `stream`, and ordered with the
 * stream's other work; commsir_group_poll reports what fails later.
 * COMMSIR_USAGE: CommsIR does not compile the call, or its sizes do not fit.
 * COMMSIR_DEADLOCK: a peer was later than the group's timeout. */
COMMSIR_API commsir_status commsir_group_collective(commsir_group *,
                                                    const commsir_collective *,
                                                    void *stream);
/* Compares `text` among the ranks: COMMSIR_DISAGREE, with the texts of two
 * ranks, unless all pass the same. For what a collective's sizes do not show,
 * such as the shape of a matrix, before the collective is called. Collective.
 * GPU: the calling threads meet, not the streams; nothing is compared while
 * `stream` is captured. */
COMMSIR_API commsir_status commsir_group_compare(commsir_group *,
                                                 const char *text,
                                                 void *stream);

/* A prepared collective: described once, launched many times on other arrays of
 * the same sizes. A launch finds its kernel without comparing texts. */
typedef struct commsir_prepared commsir_prepared;
typedef struct {
  size_t size;
  /* Seconds that a launch lets a rank wait for a peer: it becomes the group's
   * timeout, as by commsir_group_set_timeout. 0: the group's stays. */
  double timeout;
} commsir_prepare_options;
/* Prepares `call`, whose texts are copied. `input_elements` and
 * `output_elements` (0: this rank has no such array) count; `input` and
 * `output` do not. Not collective; compiles nothing. COMMSIR_USAGE: CommsIR
 * does not compile the call, its sizes do not fit, or it is all_to_all_v, whose
 * sizes differ by call. `options` may be null. */
COMMSIR_API commsir_status commsir_prepare(commsir_group *,
                                           const commsir_collective *call,
                                           const commsir_prepare_options *,
                                           commsir_prepared **prepared);
/* Collective. GPU: reports what earlier launches have failed with, as
 * commsir_group_poll does. Then sets the timeout and runs the call, as
 * commsir_group_set_timeout and commsir_group_collective do. `input` and
 * `output` are arrays of the sizes that were prepared; null where the rank has
 * none. `stream`: a cudaStream_t of the group's GPU; on the CPU null, else
 * COMMSIR_USAGE. */
COMMSIR_API commsir_status commsir_launch(commsir_prepared *, const void *input,
                                          void *output, void *stream);
/* Frees it, before or after its group. No other thread may be launching it;
 * launches in flight on a GPU continue. A later call with it fails
 * (COMMSIR_USAGE). */
COMMSIR_API void commsir_prepared_release(commsir_prepared *);

/* A collective on arrays whose parts lie apart. `inputs` and `outputs` replace
 * `input` and `output` of the call: one part for each rank, or one part if the
 * array has only one; null: the array is in one piece. A part has at most
 * `elements` elements, the same number on all ranks. */
typedef struct {
  void *data;
  int64_t elements;
} commsir_part;
typedef struct {
  size_t size;
  const commsir_part *inputs;
  size_t input_count;
  const commsir_part *outputs;
  size_t output_count;
  int64_t elements;
} commsir_parts;
/* As commsir_group_collective. COMMSIR_USAGE: the number of parts is neither 1
 * nor that of ranks, or a part has more than `elements` elements. */
COMMSIR_API commsir_status
commsir_group_collective_parts(commsir_group *, const commsir_collective *,
                               const commsir_parts *, void *stream);
/* Null if CommsIR compiles this call; otherwise the reason, to be freed. */
COMMSIR_API char *commsir_group_why_not(commsir_group *,
                                        const commsir_collective *);

/* An array of a fused collective: `elements` elements of `type`, in rows of
 * `columns` (0: those of the call). `per_row` is nonzero if each row of the
 * call has a row of it, 0 if all rows share one. */
typedef struct {
  void *data;
  int64_t elements;
  const char *type;
  int32_t per_row;
  int64_t columns;
} commsir_operand;
/* A collective with arithmetic. `input` has `rows` rows of `columns` elements
 * of `type`. Regions see one row at a time. */
typedef struct {
  size_t size;
  const char *op, *reduction, *type;
  int64_t rows, columns;
  const void *input;
  const commsir_operand *arguments;
  size_t argument_count;
  const commsir_operand *outputs;
  size_t output_count;
  /* MLIR text of the region: "(%sum: tensor<64xf32>, …) { … comms.yield … }".
   */
  const char *consume;
  /* The region that computes the row to send from a row of `input` and one of
   * each source: "(%x: tensor<64xf32>, …) { … }". Null or empty: the row of
   * `input` is sent. */
  const char *produce;
  const commsir_operand *sources;
  size_t source_count;
} commsir_fused;
/* Runs it, as commsir_group_collective; the first call with its texts and sizes
 * compiles. COMMSIR_COMPILE: a region is wrong. */
COMMSIR_API commsir_status commsir_group_fused(commsir_group *,
                                               const commsir_fused *,
                                               void *stream);
/* As commsir_prepare, with arithmetic. Copies the texts and operands of `call`;
 * `input` and the `data` of operands are not used. The first launch compiles
 * the regions. COMMSIR_USAGE: the sizes or types of the operands do not fit. */
COMMSIR_API commsir_status commsir_prepare_fused(
    commsir_group *, const commsir_fused *call, const commsir_prepare_options *,
    commsir_prepared **prepared);
/* As commsir_launch, for a call from commsir_prepare_fused. `arrays` has
 * `count` addresses: the input, then the sources, the arguments and the
 * outputs, in the order of the call. COMMSIR_USAGE: the count is wrong. */
COMMSIR_API commsir_status commsir_launch_fused(commsir_prepared *,
                                                void *const *arrays,
                                                size_t count, void *stream);

/* Compiles a kernel of the caller, which lives as long as the group. `options`
 * is JSON or null: algorithm, protocol, blocks, threads, cluster, check, impl
 * ("nccl": calls of NCCL's device library), concurrent (true: on GPUs the
 * caller orders its launches, which must fit on the GPU with the group's
 * others). */
COMMSIR_API commsir_status commsir_group_kernel(commsir_group *,
                                                const char *source,
                                                const char *name,
                                                const char *options,
                                                commsir_kernel **kernel);
/* An array of this rank, or a scalar by its address. */
typedef struct {
  void *data;
  size_t bytes;
} commsir_argument;
/* Launches a kernel with `count` arguments, in the kernel's order. Collective.
 * CPU: done when the call returns. GPU: queued in `stream`. COMMSIR_USAGE if
 * two arguments share memory that the kernel writes through one of them. */
COMMSIR_API commsir_status commsir_kernel_launch(commsir_kernel *,
                                                 const commsir_argument *,
                                                 size_t count, void *stream);
/* JSON: name, arguments (name, kind, type, shape), choices, proof (the
   checker's verdict, its scope and assumptions, the kernel's digest). */
COMMSIR_API char *commsir_kernel_describe(commsir_kernel *);

/*===----------------------------------------------------------------------===*\
|* Kernels: check, print, simulate (runtime/capi/Kernels.cpp)
\*===----------------------------------------------------------------------===*/

/* Runs passes or a translation on a module. `request`: {"source", "file",
 * "kernel", "ranks", "blocks", "algorithm", "protocol", "chip", "threads",
 * "cluster", "produce": "ir" | "lowered" | "llvm" | "ptx" | "explain" |
 * "check"}. `result`: {"text"} or, for check and explain, a report. */
COMMSIR_API commsir_status commsir_compile(const char *request, char **result);

/* An array of one argument of one rank, in host memory. */
typedef struct {
  const char *argument;
  int64_t rank;
  void *data;
  size_t bytes;
} commsir_host_array;
/* Runs a kernel on N ranks of this process: in the CPU world, or ("target":
 * "cuda") on one GPU per rank. `request` has the keys above, and "launches",
 * "seed", "shuffle", "fast", "max_steps", "time_limit", "trace", "scalars":
 * {name: a value, or one per rank}. Reads inputs from `arrays` and writes the
 * kernel's results back to them. `result` is the report of comms-run --json. */
COMMSIR_API commsir_status commsir_simulate(const char *request,
                                            commsir_host_array *arrays,
                                            size_t count, char **result);

/* Loads measured tables (comms-bench --tune) from a file, or from a folder of
 * *.json. They replace those that COMMSIR_TABLES or an earlier call named, for
 * every later choice of algorithm, protocol and launch; null or "": only the
 * built-in tables. An error changes nothing. All ranks of a group on GPUs must
 * load the same tables between the same calls of the group. Its collectives are
 * then compiled again, so make each call once before a stream captures it. */
COMMSIR_API commsir_status commsir_load_tables(const char *path);

/* Whether later collectives of GPU groups wait for their kernels, as warm-ups
 * need. Otherwise the kernel of a large size that is repeated is compiled
 * in another thread, and calls use other kernels meanwhile. Each call with 1
 * needs one with 0, on all ranks between the same calls of their groups. */
COMMSIR_API void commsir_compile_at_once(int32_t enabled);

/* What this machine has: {"version", "cuda": …, "nccl": …, "linker": …,
 * "cache": …}, each with advice if something is missing. */
COMMSIR_API char *commsir_doctor(void);

/* The table of collectives, as JSON: [{"name": "all_reduce", "movement":
 * "Same", "direction": "AllToAll", "reduces": true, "rows_vary": false}, …].
 * Columns are those of dialect/Collectives.def. The caller frees it by
 * commsir_free. */
COMMSIR_API char *commsir_collectives(void);

/* Runs the program named by argv[0]: comms-run, comms-opt, comms-bench or
 * comms-translate. Returns its exit status. Use a separate process, because it
 * prints and may set signal handlers. */
COMMSIR_API int commsir_tool(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* COMMSIR_RUNTIME_CAPI_COMMSIR_H */
