#!/usr/bin/env bash
# torchcomms with the backend commsir: torchcomms_checks.py, then torchcomms' own tests, on CPU tensors, or on CUDA's
# with TEST_DEVICE=cuda:
#
#   test/integration/torchcomms.sh SOURCES SITE [RANKS] [TEST...]
#
# SOURCES is a checkout of torchcomms, SITE a folder with the package torchcomms that was built from it for the Python
# in .venv, and with CommsIR's wheel unpacked (torchcomms finds the backend by its entry points). The library is that
# of build/lib. COMMSIR_TORCHCOMMS=python selects the backend in Python, without the tests that need the C++ backend. The
# list below omits the tests of windows, registered memory and reconfigure, which the backend lacks, of GPUs, and of
# torch.compile, which all skip with torch 2.11.
set -u
sources=$(cd "${1:?which folder has the sources of torchcomms?}" && pwd) || exit 2
site=$(cd "${2:?which folder has the built package torchcomms?}" && pwd) || exit 2
ranks=${3:-2}
shift $(($# < 3 ? $# : 3))
root=$(cd "$(dirname "$0")/../.." && pwd)
# WaitBlockingTest requires that there is no wait_blocking, which the C++ backend has.
in_cpp="AllReduce BackendWrapperCoalescing BatchSendRecv C10dBatchIsendIrecv FSDPComm"
[ "${COMMSIR_TORCHCOMMS:-}" != python ] || in_cpp=WaitBlocking
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- AllGather AllGatherSingle AllGatherV AllToAll AllToAllSingle AllToAllvSingle Barrier Broadcast \
  Gather GatherSingle ReduceScatter ReduceScatterSingle ReduceScatterV Reduce Scatter SendRecv Split MultiComm ObjCol \
  Options BackendWrapperAllGatherAliased BackendWrapperShutdown C10dTorchComm DDPComm DeviceMesh \
  FinalizeWarning TPComm $in_cpp
export TEST_BACKEND=commsir TEST_DEVICE=${TEST_DEVICE:-cpu} TEST_FULL_SWEEP=0 OMP_NUM_THREADS=1 COMMSIR_TORCHCOMMS_SOURCE="$sources"
export PYTHONPATH="$site:$sources:${COMMSIR_SITE:-$root/frontend}" COMMSIR_LIBRARY="${COMMSIR_LIBRARY:-$root/build/lib}"
logs=$(mktemp -d) status=0
python=${PYTHON:-$root/.venv/bin/python}
run() { # NAME PROGRAM
  timeout 150 "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" "$2" >"$logs/$1.log" 2>&1
}
if run checks "$root/test/integration/torchcomms_checks.py"; then
  echo "ok      torchcomms_checks.py: $(grep -m 1 '^all .* passed' "$logs/checks.log") on $ranks ranks"
else
  echo "failed  torchcomms_checks.py: see $logs/checks.log"
  status=1
fi
# Each rank's own GPU is what they take where nothing is said.
[ "$TEST_DEVICE" = cpu ] || unset TEST_DEVICE
cd "$sources/comms/torchcomms/tests/integration/py" || exit 2
for name; do
  if run "$name" "${name}Test.py"; then
    ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' "$logs/$name.log" | head -1)
    skipped=$(sed -n 's/.*skipped=\([0-9]*\).*/\1/p' "$logs/$name.log" | head -1)
    if [ $((${ran:-0} - ${skipped:-0})) -gt 0 ]; then how="ok     "; else how="skipped"; fi
    echo "$how $name: ${ran:-0} tests on each of $ranks ranks, ${skipped:-0} of them skipped"
  else
    echo "failed  $name: see $logs/$name.log"
    status=1
  fi
done
[ $status != 0 ] || rm -rf "$logs"
exit $status
