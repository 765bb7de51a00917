#!/usr/bin/env bash
# torchcomms' own tests, with the backend commsir, on CPU tensors:
#
#   test/integration/torchcomms.sh SOURCES SITE [RANKS] [TEST...]
#
# SOURCES is a checkout of torchcomms, SITE a folder with the package torchcomms that was built from it for the Python
# in .venv, and with a wheel of ours unpacked (its entry points are what torchcomms finds us by). The library is that
# of build/lib. Not among the tests named here: those that need windows, aborts, batches or GPUs; AllReduceTest and
# FSDPCommTest ask for PREMUL_SUM (docs/Torch.md says what to do).
set -u
sources=$(cd "${1:?which folder has the sources of torchcomms?}" && pwd) || exit 2
site=$(cd "${2:?which folder has the built package torchcomms?}" && pwd) || exit 2
ranks=${3:-2}
shift $(($# < 3 ? $# : 3))
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- AllGather AllGatherSingle AllGatherV AllToAll AllToAllSingle AllToAllvSingle Barrier Broadcast \
  Gather GatherSingle ReduceScatter ReduceScatterSingle ReduceScatterV Reduce Scatter SendRecv Split MultiComm ObjCol \
  Options BackendWrapperAllGatherAliased BackendWrapperShutdown C10dTorchComm DDPComm DeviceMesh WaitBlocking
export TEST_BACKEND=commsir TEST_DEVICE=cpu TEST_FULL_SWEEP=0 OMP_NUM_THREADS=1
export PYTHONPATH="$site:$sources:$root/frontend" COMMSIR_LIBRARY="$root/build/lib"
logs=$(mktemp -d) status=0
cd "$sources/comms/torchcomms/tests/integration/py" || exit 2
for name; do
  if timeout 150 "$root/.venv/bin/python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" \
    "${name}Test.py" >"$logs/$name.log" 2>&1; then
    echo "ok      $name: $(grep -m 1 -o '^Ran [0-9]* test' "$logs/$name.log")s on each of $ranks ranks"
  else
    echo "failed  $name: see $logs/$name.log"
    status=1
  fi
done
[ $status != 0 ] || rm -rf "$logs"
exit $status
