#!/bin/sh
# Uses the portable programs like a host without anything else:
#   use-elsewhere.sh BIN FILES [DRIVER]
# BIN has comms-run and the other programs; FILES has the kernels and arrays of
# elsewhere-files.sh, and can be written; DRIVER is the folder of a fake CUDA driver
# (test/gpu/FakeCuda.cpp). Needs only a shell and grep: no Python, no LLVM, no CUDA.
set -eu
bin=$1 files=$2 driver=${3:-}
cd "$files"
export HOME="$files" COMMSIR_CACHE_DIR="$files/cache"

expect() { # STATUS WORDS COMMAND...
  status=$1 words=$2 got=0
  shift 2
  "$@" >said 2>&1 || got=$?
  if [ "$got" != "$status" ] || ! grep -q "$words" said; then
    echo "use-elsewhere.sh: error: status $got, not $status, or not said '$words': $*" >&2
    cat said >&2
    exit 1
  fi
}

for name in comms-run comms-opt comms-bench; do
  [ ! -e "$bin/$name" ] || expect 0 . "$bin/$name" --version
done
# The demo: what it computes, what it refuses, what it tells of a deadlock.
arrays="--input=x=x-%r.npy --input=residual=residual.npy --input=weight=weight.npy"
expect 0 'all as expected' "$bin/comms-run" rmsnorm.mlir --ranks=8 --blocks=2 $arrays --expect=y=y.npy --expect=next=next.npy
expect 4 'error' "$bin/comms-run" deadlock.mlir --ranks=4
expect 5 'wait' "$bin/comms-run" deadlock.mlir --ranks=4 --no-check
expect 0 'sum: 3 ranks' "$bin/comms-run" sum.mlir --ranks=3 --input=x=iota --output=y=sum-%r.npy
if [ -e "$bin/comms-bench" ]; then
  expect 0 'right, exact' "$bin/comms-bench" --target=cpu --ranks=2 --sizes=4K --calls=1 --replays=1 --repetitions=2
fi
[ "$driver" ] || exit 0
# GPUs: compiled by what is in the program, translated by the driver.
cuda="--target=cuda --windows=plain --protocol=pull --algorithm=one_shot --blocks=2 --threads=64"
export LD_LIBRARY_PATH="$driver" COMMSIR_FAKE_GPUS=8
export COMMSIR_FAKE_KERNEL="exchange 24"
expect 0 '72 elements compared on 3 ranks: all as expected' \
  "$bin/comms-run" sum.mlir $cuda --ranks=3 --input=x=iota --launches=3 --expect=y=sum-%r.npy
expect 0 '72 elements compared on 3 ranks: all as expected' \
  "$bin/comms-run" sum.mlir $cuda --ranks=3 --input=x=iota --graph --expect=y=sum-%r.npy
# The demo's kernel too, whose waits the driver does not end: that is told.
export COMMSIR_FAKE_KERNEL=timeout
expect 5 'gave up waiting after 1.00 s' \
  "$bin/comms-run" rmsnorm.mlir --target=cuda --ranks=8 --windows=plain --timeout=1 $arrays --shape=y=192x64 --shape=next=192x64
