/*===- commsir.h - CommsIR's C API ---------------------------------*- C
-*-===*\
|*
|* Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* All that other languages and libraries need of CommsIR: compile, check and
|* simulate kernels, and be one rank of a group. Strings are UTF-8, ended by a
|* zero. Requests and reports that have many fields are JSON objects; their keys
|* are in docs/CApi.md.
|*
|* A function that can fail returns COMMSIR_OK or another status; then
|* commsir_error_message() and commsir_error_json() of the same thread tell
more.
|* Strings that a function hands out are freed with commsir_free().
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
  /* What was asked for makes no sense, or a file or device is not there. */
  COMMSIR_USAGE = 2,
  /* The source is wrong, or cannot be compiled. */
  COMMSIR_COMPILE = 3,
  /* The checker has refused the kernel. */
  COMMSIR_CHECKER = 4,
  /* Deadlock, or a peer that did not come in time. */
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

COMMSIR_API const char *commsir_version(void);
/* The interface that this header describes. A program that opens the library at
 * run time compares it with commsir_abi_version(): functions and structs are
 * those of the header only if both are equal. */
#define COMMSIR_ABI_VERSION 1
COMMSIR_API int32_t commsir_abi_version(void);
/* What happened; below it, a line each, what is wrong in the source. */
COMMSIR_API const char *commsir_error_message(void);
/* {"kind", "message", "diagnostics": [{"severity", "message", "file", "line",
 * "column", "notes": […]}], "waiting": [{"rank", "block", "op", "location",
 * "what"}]}: those that there are. */
COMMSIR_API const char *commsir_error_json(void);
/* Whether the thread's last error is not of the call that returned it, but of
 * an earlier launch: commsir_launch reports such a failure before it launches,
 * commsir_group_poll and commsir_group_finish report nothing else. */
COMMSIR_API int commsir_error_is_earlier(void);
COMMSIR_API void commsir_free(void *text);

/*===----------------------------------------------------------------------===*\
|* Groups: one rank of N processes (runtime/group/Group.h)
\*===----------------------------------------------------------------------===*/

/* Threads. Any thread may call any function at any time, also with a group that
 * another thread closes, destroys or drops: then the call fails with
 * COMMSIR_ABORTED. A handle stays a handle until the process ends, and is not
 * used again.
 *
 * - Calls that all ranks make (windows, signals, collectives, kernels and their
 *   launches), and commsir_window_adopt and commsir_window_forget, take turns:
 *   one runs, and those of other threads wait in the order in which they came.
 *   Ranks compare these calls, so threads that make different ones have to
 *   order them themselves, the same on all ranks, or have a group each.
 * - All other functions run at once, beside whatever other threads do: a wait
 *   for a signal keeps no collective waiting, and abort, poll, ended and stats
 *   work while a call waits for peers.
 * - A function that the library calls (an interrupt hook, a store's) may call
 *   the second kind alone for the group that it is called for; the first kind
 *   fails there with COMMSIR_USAGE.
 * - One thread at a time uses arrays: a call reads and writes those that it was
 *   given until it returns (GPU: until the stream has done it).
 */
typedef struct commsir_group commsir_group;
typedef struct commsir_kernel commsir_kernel;

/* Where ranks meet. `get` waits for the key, at most `timeout` seconds, and
 * hands out malloc()ed bytes. Both return 0 when all is well. */
typedef struct {
  void *self;
  int (*set)(void *self, const char *key, const void *data, size_t bytes);
  int (*get)(void *self, const char *key, double timeout, void **data,
             size_t *bytes);
} commsir_store;

typedef struct {
  const char *name;
  int64_t rank, ranks;
  /* GPU, or -1 for the CPU. */
  int32_t device;
  /* Seconds; 0: the default. */
  double timeout;
  /* ncclComm_t of the caller, or null. */
  void *nccl_comm;
  /* GPU: CTAs, at most, of an all_reduce, all_gather or reduce_scatter that
   * takes 0.15 ms or more, for kernels of others that run beside it; 0: as many
   * as are fastest; -1: as many as carry what NCCL does (28). COMMSIR_MAX_CTAS
   * counts where it is set. */
  int64_t ctas;
} commsir_group_options;

/* Collective. `store` is used during the call alone. */
COMMSIR_API commsir_status commsir_group_create(const commsir_group_options *,
                                                const commsir_store *store,
                                                commsir_group **group);
/* A store in a folder that all ranks see. */
COMMSIR_API commsir_status commsir_group_create_in_folder(
    const commsir_group_options *, const char *folder, commsir_group **group);
/* Begins the group's end: no call begins from now on. Calls of other threads
   that wait for signals or for their turns fail at once (COMMSIR_ABORTED);
   others have 5 s to end, then the group is aborted. Windows, and the group,
   stay until commsir_group_destroy or commsir_group_drop, which do this first
   (drop waits for nobody). */
COMMSIR_API void commsir_group_close(commsir_group *);
/* Ends the group. GPU: waits for what runs there. Over NCCL that is for all
   ranks to do, and waits up to 5 s for those that are late; what they still use
   is lost to the process then. */
COMMSIR_API void commsir_group_destroy(commsir_group *);
/* The same for finalisers of garbage collectors, which run at times that differ
   by rank: waits for nothing. GPU: a thread ends the group when all ranks have
   let go of it; one whose launches graphs have captured stays until the process
   ends. */
COMMSIR_API void commsir_group_drop(commsir_group *);
COMMSIR_API commsir_status commsir_group_abort(commsir_group *,
                                               const char *reason);
COMMSIR_API commsir_status commsir_group_shrink(commsir_group *,
                                                const int64_t *survivors,
                                                size_t count,
                                                const commsir_store *store,
                                                commsir_group **group);
/* Seconds that a rank waits for a peer, from the next call on. GPU: also in
 * launches of graphs that were captured before. */
COMMSIR_API commsir_status commsir_group_set_timeout(commsir_group *,
                                                     double seconds);
/* Adds to what waits of groups on the CPU, for a store's folder, and for the
 * end of a simulation on the CPU, ask every 50 ms or sooner on the thread that
 * waits; when it does not return 0, as after Ctrl-C, the call fails with
 * COMMSIR_ABORTED, and so do later ones of the group (not after
 * commsir_wait_signal). Null: nobody is asked from now on. At most 8. */
COMMSIR_API void commsir_set_interrupt(int (*check)(void));
/* The first failure that launches have reported since. Does not wait. */
COMMSIR_API commsir_status commsir_group_poll(commsir_group *);
/* Why the group can no longer be used, as the first failure has it, to be
 * freed; null: it can. On the CPU so it is, too, after a collective in which
 * ranks disagreed and that has failed on all of them: in the next collective
 * call they meet again. Until then commsir_group_poll and one-sided access say
 * what has failed (COMMSIR_DISAGREE); commsir_window_adopt works. */
COMMSIR_API char *commsir_group_ended(commsir_group *);
/* Waits until what was put into `stream` has ended, then as
 * commsir_group_poll. CPU: calls have ended when they return. */
COMMSIR_API commsir_status commsir_group_finish(commsir_group *, void *stream);
/* {"launches", "compiled", "from_cache", "window_bytes", "channel_bytes",
 * "in_place", "staged"} */
COMMSIR_API char *commsir_group_stats(commsir_group *);

COMMSIR_API commsir_status commsir_window_allocate(commsir_group *,
                                                   size_t bytes, void **base);
/* The same; `purpose` says what all ranks want it for ("f32 (2, 3)"): where
 * that is not the same they fail (COMMSIR_DISAGREE), and the group can be used.
 */
COMMSIR_API commsir_status commsir_window_allocate_for(commsir_group *,
                                                       size_t bytes,
                                                       const char *purpose,
                                                       void **base);
/* Threads that wait for a cell there then fail (COMMSIR_USAGE). */
COMMSIR_API commsir_status commsir_window_release(commsir_group *, void *base);
/* This rank's view of the window that begins at `own` stays mapped when the
 * window is released, until commsir_window_drop has been called as often. Any
 * thread. On a GPU it does not. */
COMMSIR_API void commsir_window_keep(commsir_group *, void *own);
COMMSIR_API void commsir_window_drop(commsir_group *, void *own);
/* Memory that others made symmetric: where this rank reaches each rank's part.
 * Not collective. */
COMMSIR_API commsir_status commsir_window_adopt(commsir_group *, void *own,
                                                size_t bytes,
                                                const uint64_t *parts);
/* Makes memory of this rank's GPU, by whomever it was allocated (cudaMalloc,
 * ncclMemAlloc, CUDA's virtual memory), a window. Collective: the same number
 * of bytes on all ranks. It must stay until all ranks have forgotten it. */
COMMSIR_API commsir_status commsir_window_share(commsir_group *, void *own,
                                                size_t bytes);
/* Ends commsir_window_adopt or commsir_window_share, on this rank. Waits for
 * the calls of other threads that may use the memory. */
COMMSIR_API void commsir_window_forget(commsir_group *, void *own);
COMMSIR_API int commsir_window_contains(commsir_group *, const void *data,
                                        size_t bytes);
COMMSIR_API void *commsir_window_peer(commsir_group *, const void *data,
                                      int64_t peer);

/*===----------------------------------------------------------------------===*\
|* One-sided access (runtime/group/OneSided.h): the other rank is in no call.
|* docs/Groups.md says what is ordered.
\*===----------------------------------------------------------------------===*/

/* To the peer's part of a window, and from it. `to` of a put and `from` of a
 * get lie in this rank's part, at the offset that is meant. CPU: done when the
 * call returns; `stream` is null. GPU: put into `stream`, which may be
 * capturing. COMMSIR_DEADLOCK: the peer is gone. */
COMMSIR_API commsir_status commsir_put(commsir_group *, int64_t peer, void *to,
                                       const void *from, size_t bytes,
                                       void *stream);
COMMSIR_API commsir_status commsir_get(commsir_group *, int64_t peer,
                                       const void *from, void *to, size_t bytes,
                                       void *stream);

/* Cells of signals: numbers from 0 to 2^63 - 1, one of each cell on each rank,
 * at first 0. Both are collective; `first` is the number of the first cell.
 * Releasing cells ends waits of other threads for them (COMMSIR_USAGE). */
COMMSIR_API commsir_status commsir_signals_reserve(commsir_group *,
                                                   int64_t count,
                                                   int64_t *first);
COMMSIR_API commsir_status commsir_signals_release(commsir_group *,
                                                   int64_t first);

/* The kinds of signals and of waits. */
enum { COMMSIR_SIGNAL_SET = 0, COMMSIR_SIGNAL_ADD = 1 };
enum { COMMSIR_WAIT_EQ = 0, COMMSIR_WAIT_GE = 1 };

/* Changes a cell of the peer, after what this rank has put before. */
COMMSIR_API commsir_status commsir_signal(commsir_group *, int64_t peer,
                                          int64_t cell, int32_t kind,
                                          int64_t value, void *stream);
/* Put, then signal: who has waited for the signal sees the data. */
COMMSIR_API commsir_status commsir_put_signal(commsir_group *, int64_t peer,
                                              void *to, const void *from,
                                              size_t bytes, int64_t cell,
                                              int32_t kind, int64_t value,
                                              void *stream);
/* Waits for a cell of this rank, which `source` (-1: any rank) has to signal.
 * `timeout` in seconds. CPU: 0 is the group's. GPU: with 0 the stream waits,
 * for ever if need be; else the host does, and `stream` is not used. A wait
 * that fails (COMMSIR_DEADLOCK: the source is gone, or the time is over;
 * COMMSIR_ABORTED: interrupted) leaves the group as it was. */
COMMSIR_API commsir_status commsir_wait_signal(commsir_group *, int64_t cell,
                                               int32_t kind, int64_t value,
                                               int64_t source, double timeout,
                                               void *stream);
/* Waits until a cell of this rank holds `value` or more, and takes so much from
 * it: the other end of signals that add. It waits for the group's timeout at
 * most. CPU: done when the call returns, with the errors of a wait. GPU: the
 * stream waits; commsir_group_poll tells of a wait in vain
 * (COMMSIR_DEADLOCK), after which the group has ended. */
COMMSIR_API commsir_status commsir_take_signal(commsir_group *, int64_t cell,
                                               int64_t value, int64_t source,
                                               void *stream);
/* A cell of this rank: now, and made 0. GPU: the first does not follow any
 * stream; the second goes into `stream`. */
COMMSIR_API commsir_status commsir_read_signal(commsir_group *, int64_t cell,
                                               int64_t *value);
COMMSIR_API commsir_status commsir_reset_signal(commsir_group *, int64_t cell,
                                                void *stream);

/*===----------------------------------------------------------------------===*\
|* Sends and receives between processes of one host, on the CPU
|* (runtime/group/PointToPoint.h). Nothing is collective, and any thread may
|* call.
\*===----------------------------------------------------------------------===*/

typedef struct commsir_p2p commsir_p2p;
typedef struct commsir_transfer commsir_transfer;

/* One rank of `ranks` that use the same `name`. `store` is used until
 * commsir_p2p_destroy, from any thread; `get` with a timeout of 0 does not
 * wait. */
COMMSIR_API commsir_status commsir_p2p_create(const char *name, int64_t rank,
                                              int64_t ranks,
                                              const commsir_store *store,
                                              commsir_p2p **p2p);
/* What is not in a peer's ring by now is lost, and all transfers are over,
 * which may be freed later. COMMSIR_DEADLOCK: the store has been asked, and
 * does not answer for seconds; it has to stay until the process ends. */
COMMSIR_API commsir_status commsir_p2p_destroy(commsir_p2p *);
/* Ends all transfers, also on the other side. */
COMMSIR_API commsir_status commsir_p2p_abort(commsir_p2p *, const char *reason);
/* The same in an orderly way, as at the end of a program: sends have at most
 * `timeout` seconds to get into their peers' rings, whose programs take them
 * from there later. COMMSIR_DEADLOCK as of commsir_p2p_destroy. */
COMMSIR_API commsir_status commsir_p2p_leave(commsir_p2p *, double timeout);
/* All ranks have called commsir_p2p_create, as the caller knows by other means:
 * whoever is gone is gone from this group. Without it a rank that ends before
 * its first message is missed after five seconds, for it may be one of an
 * earlier group of the name. Does not wait. */
COMMSIR_API commsir_status commsir_p2p_confirm(commsir_p2p *);
/* Whether `peer` (-1: every rank) can be sent to, the same on both sides. Waits
 * at most `timeout` seconds until it has called commsir_p2p_create
 * (COMMSIR_DEADLOCK: it has not). */
COMMSIR_API commsir_status commsir_p2p_reaches(commsir_p2p *, int64_t peer,
                                               double timeout, int *reached);

/* `what` says what the data is: the same on both sides, or both fail
 * (COMMSIR_DISAGREE), as does what follows between them. */
typedef struct {
  /* Receive: -1 is any rank. */
  int64_t peer, tag;
  void *data;
  size_t bytes;
  const char *what;
} commsir_message;
/* Do not wait. The data stays where it is until the transfer is over. */
COMMSIR_API commsir_status commsir_p2p_send(commsir_p2p *,
                                            const commsir_message *,
                                            commsir_transfer **);
COMMSIR_API commsir_status commsir_p2p_receive(commsir_p2p *,
                                               const commsir_message *,
                                               commsir_transfer **);
/* A send is done when its message has been taken. COMMSIR_DEADLOCK: the other
 * side has not come within `timeout` seconds, and the transfer is given up, or
 * it is gone. */
COMMSIR_API commsir_status commsir_transfer_wait(commsir_transfer *,
                                                 double timeout);
/* Whether it is done, or has failed. */
COMMSIR_API int commsir_transfer_is_over(commsir_transfer *);
/* Who has sent what was received. */
COMMSIR_API int64_t commsir_transfer_source(commsir_transfer *);
/* The transfer goes on. No other thread is in a call of it. */
COMMSIR_API void commsir_transfer_free(commsir_transfer *);

/* A plain collective; elements are counted as in runtime/group/Collective.h.
 * `type` is MLIR's name ("bf16"), `op` "all_reduce", `reduction` "sum" or "".
 * `stream`: a cudaStream_t, or null on the CPU. */
typedef struct {
  const char *op, *reduction, *type;
  int64_t root, peer;
  const void *input;
  int64_t input_elements;
  void *output;
  int64_t output_elements;
  const char *algorithm, *protocol;
  /* all_to_all_v alone: elements to and from each rank; else not read. */
  const int64_t *send_counts, *recv_counts;
  /* What the caller takes the elements for ("ui8", "complex<f32>"), where
   * `type` says only how they are moved: ranks whose names differ are told so
   * (COMMSIR_DISAGREE). Null: `type`. */
  const char *type_name;
} commsir_collective;
COMMSIR_API commsir_status commsir_group_collective(commsir_group *,
                                                    const commsir_collective *,
                                                    void *stream);

/* A prepared collective: described once, launched many times on other arrays of
 * the same sizes. A launch finds its kernel without comparing texts. */
typedef struct commsir_prepared commsir_prepared;
typedef struct {
  /* sizeof(commsir_prepare_options). Fields behind it keep their defaults. */
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
/* Frees it, before or after its group. No other thread is in a launch of it;
 * launches that are under way on a GPU go on. A later call with it fails
 * (COMMSIR_USAGE). */
COMMSIR_API void commsir_prepared_release(commsir_prepared *);

/* A collective on arrays whose parts lie by themselves, in place of `input` or
 * `output` of the call: `inputs`, `outputs` are one a rank, or one where the
 * array is one part; null: that array is whole. A part may have less than
 * `elements`, which is the most that any has, and the same on all ranks. */
typedef struct {
  void *data;
  int64_t elements;
} commsir_part;
typedef struct {
  const commsir_part *inputs;
  size_t input_count;
  const commsir_part *outputs;
  size_t output_count;
  int64_t elements;
} commsir_parts;
COMMSIR_API commsir_status
commsir_group_collective_parts(commsir_group *, const commsir_collective *,
                               const commsir_parts *, void *stream);
/* Null: CommsIR compiles this call; else the reason why not, to be freed. */
COMMSIR_API char *commsir_group_why_not(commsir_group *,
                                        const commsir_collective *);

typedef struct {
  void *data;
  int64_t elements;
  const char *type;
  int32_t per_row;
  int64_t columns;
} commsir_operand;
typedef struct {
  const char *op, *reduction, *type;
  int64_t rows, columns;
  const void *input;
  const commsir_operand *arguments;
  size_t argument_count;
  const commsir_operand *outputs;
  size_t output_count;
  /* MLIR text of the region: "(%sum: tensor<64xf32>, …) { … comms.yield … }" */
  const char *consume;
  /* The same for what travels, of a row of `input` and one of each source:
   * "(%x: tensor<64xf32>, …) { … }". Null or empty: `input` travels. */
  const char *produce;
  const commsir_operand *sources;
  size_t source_count;
} commsir_fused;
COMMSIR_API commsir_status commsir_group_fused(commsir_group *,
                                               const commsir_fused *,
                                               void *stream);
/* As commsir_prepare. Texts and operands of `call` are copied; `input` and the
 * `data` of operands do not count. The first launch compiles the regions.
 * COMMSIR_USAGE: the sizes or types of the operands do not fit. */
COMMSIR_API commsir_status commsir_prepare_fused(
    commsir_group *, const commsir_fused *call, const commsir_prepare_options *,
    commsir_prepared **prepared);
/* As commsir_launch, of a call by commsir_prepare_fused. `arrays` has `count`
 * addresses: the input, then those of the sources, the arguments and the
 * outputs, in the order of the call. COMMSIR_USAGE: another count. */
COMMSIR_API commsir_status commsir_launch_fused(commsir_prepared *,
                                                void *const *arrays,
                                                size_t count, void *stream);

/* A kernel of the caller's own. `options` is JSON: algorithm, protocol, blocks,
 * threads, cluster, check, impl ("nccl": calls of NCCL's device library),
 * concurrent (true: on GPUs its launches need not follow the group's others; it
 * has to fit beside them); null: none. It lives as long as the group. */
COMMSIR_API commsir_status commsir_group_kernel(commsir_group *,
                                                const char *source,
                                                const char *name,
                                                const char *options,
                                                commsir_kernel **kernel);
typedef struct {
  void *data;
  size_t bytes;
} commsir_argument;
COMMSIR_API commsir_status commsir_kernel_launch(commsir_kernel *,
                                                 const commsir_argument *,
                                                 size_t count, void *stream);
/* JSON: name, arguments (name, kind, type, shape), choices. */
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
/* Runs a kernel on N ranks of this process: on the CPU world, or ("target":
 * "cuda") one GPU a rank. `request`: as above, and "launches", "seed",
 * "shuffle", "fast", "max_steps", "time_limit", "trace", "scalars": {name:
 * value or one a rank}. Inputs are read from `arrays`; what the kernel wrote is
 * written back to them. `result` is the report of comms-run --json. */
COMMSIR_API commsir_status commsir_simulate(const char *request,
                                            commsir_host_array *arrays,
                                            size_t count, char **result);

/* Takes measured tables (comms-bench --tune) of a file, or of a folder of
 * *.json, from the next choice of an algorithm, protocol and launch on, in
 * place of those that COMMSIR_TABLES or an earlier call named; null or "": none
 * but those that are built in. After an error all is as before. Ranks of a
 * group on GPUs call it with the same tables, between the same calls of the
 * group; then its collectives are compiled anew, and a stream that captures
 * them next has to have seen them once before. */
COMMSIR_API commsir_status commsir_load_tables(const char *path);

/* What this machine has: {"version", "cuda": …, "nccl": …, "linker": …,
 * "cache": …}, each with what to do where something is missing. */
COMMSIR_API char *commsir_doctor(void);

/* The table of collectives, as JSON: [{"name": "all_reduce", "movement":
 * "Same", "direction": "AllToAll", "reduces": true, "rows_vary": false}, …].
 * Columns are those of dialect/Collectives.def. The caller frees it by
 * commsir_free. */
COMMSIR_API char *commsir_collectives(void);

/* What the program of the name argv[0] does: comms-run, comms-opt, comms-bench
 * or comms-translate. Returns its exit status. For a process of its own: it may
 * set signal handlers, and prints. */
COMMSIR_API int commsir_tool(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* COMMSIR_RUNTIME_CAPI_COMMSIR_H */
