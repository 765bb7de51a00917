#!/usr/bin/env bash
# Tests CommsIR with torch on the GPUs of this machine, part after part:
#
#   test/gpu/torch.sh PYTHON [LIBRARIES]
#
# PYTHON has torch, pytest and expecttest; LIBRARIES are those of a build (without it, PYTHON has the wheel installed).
# Parts: ops, backend, windows, foreign memory and torch.compile (torch_run.py), the tests of the backend and of
# torch.compile with tensors on GPUs, PyTorch's own suite, the example programs, and training whose losses are NCCL's.
# Without torch or two GPUs it says so and ends with status 0; a torch that cannot be imported is an error.
# COMMSIR_TORCH_PARTS names the parts to run. With COMMSIR_SHARE_GPU=1, CHECK_RANKS ranks (2) take turns on the GPUs that
# exist; parts that need NCCL are then skipped.
set -u
python=${1:?which Python has torch?}
root=$(cd "$(dirname "$0")/../.." && pwd)
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
logs=$(mktemp -d) failed=''
trap '[ -n "$failed" ] || rm -rf "$logs"' EXIT
if [ $# -ge 2 ]; then
  # As where the package is installed: torch finds the backend by its name.
  info=$logs/site/commsir-0.dist-info
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: commsir\nVersion: 0\n' >"$info/METADATA"
  printf '[torch.backends]\ncommsir = commsir.torch:autoload\n' >"$info/entry_points.txt"
  COMMSIR_LIBRARY=$(cd "$2" && pwd) || exit 2
  export COMMSIR_LIBRARY PYTHONPATH="$root/frontend:$logs/site${PYTHONPATH:+:$PYTHONPATH}"
fi
# No multicast, and short timeouts, because a waiting test holds GPUs.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
export CHECK_PATIENCE="${CHECK_PATIENCE:-30}" OMP_NUM_THREADS=1

gpus=0
if "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"; then
  gpus=$("$python" -c "import torch; print(torch.cuda.device_count())") || {
    echo "torch on GPUs: error: $python cannot import its torch" >&2
    exit 2
  }
fi
shares=0
[ "$gpus" -lt 1 ] || case $(echo "${COMMSIR_SHARE_GPU:-0}" | tr A-Z a-z) in 0 | n | no | off | false) ;; *) shares=1 ;; esac
if [ "$gpus" -lt 2 ] && [ $shares = 0 ]; then
  echo "torch on GPUs: not run: $python has no torch, or sees fewer than two GPUs (COMMSIR_SHARE_GPU=1 runs what can be run on one)"
  exit 0
fi
count=$gpus
[ $shares = 0 ] || count=${CHECK_RANKS:-2}
ran=0
part() { # NAME SECONDS COMMAND…
  name=$1 seconds=$2
  shift 2
  case " ${COMMSIR_TORCH_PARTS:-$name} " in *" $name "*) ;; *) return ;; esac
  ran=$((ran + 1)) begin=$(date +%s)
  # By a shell of its own, which knows the functions below.
  if timeout "$seconds" bash -c '"$@"' _ "$@" >"$logs/$name.log" 2>&1; then how=ok; else how="failed, see $logs/$name.log" failed="$failed $name"; fi
  echo "torch, $count ranks, GPUs: $gpus: $name: $how, $(($(date +%s) - begin)) s: $(tail -n 1 "$logs/$name.log" | cut -c 1-160)"
}
ranks() { # PROGRAM…
  "$python" -m torch.distributed.run --standalone --nproc-per-node "$count" "$@"
}
losses() {
  for backend in nccl commsir; do
    ranks -m commsir.examples.torch.fsdp_tp --backend $backend --device cuda --report "$logs/$backend.json" || return
  done
  "$python" - "$logs" <<'PYTHON'
import json, sys
theirs, ours = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("nccl", "commsir"))
apart = max(abs(a - b) / abs(a) for a, b in zip(theirs, ours, strict=True))
print(f"{len(ours)} steps, losses at most {apart:.1e} from those of NCCL" + (" (bit for bit)" if ours == theirs else ""))
sys.exit(not apart <= 1e-3) # Nor NaN.
PYTHON
}
export python count logs
export -f ranks losses
cd "$root/test/python/torch/c10d" || exit
part run 400 ranks "$root/test/gpu/torch_run.py"
part backend 300 env CHECK_RANKS="$count" "$python" -m pytest -q -p no:cacheprovider --tensors cuda \
  test_backend.py test_lasting.py test_windows.py
# What test_ops.py checks torch_run.py has checked.
part compile 3000 "$python" -m pytest -q -p no:cacheprovider --tensors cuda --ignore ../ops/test_ops.py ../ops
[ $shares = 1 ] || part suite 600 "$python" torch_suite.py --ranks "$count"
for program in own_collective quantized_backend push_weights tensor_parallel; do
  case $shares$program in 1own_collective | 1push_weights) continue ;; esac # Over NCCL.
  part "$program" 120 ranks -m commsir.examples.torch.$program --device cuda
done
[ $shares = 1 ] || part losses 300 losses
[ $ran -gt 0 ] || { echo "torch on GPUs: error: '$COMMSIR_TORCH_PARTS' names no part" >&2; exit 2; }
[ -z "$failed" ] || { echo "torch on GPUs: failed:$failed" >&2; exit 1; }
