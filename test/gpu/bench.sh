#!/bin/sh
# Runs all measurements by comms-bench on this host, for docs/results.
#
#   test/gpu/bench.sh BIN OUT [RANKS]    BIN has comms-bench; reports go to OUT
#
# Small sizes get many algorithms and shapes, large ones few, because each of them
# holds its own channels. Takes about ten minutes on eight GPUs; COMMS_BENCH_QUICK=1
# takes two.
set -u
bin=${1:?which folder has comms-bench?}
out=${2:?which folder do the reports go to?}
ranks=${3:-$(nvidia-smi -L | wc -l)}
mkdir -p "$out"
status=0

measure() { # NAME OPTION...
  name=$1
  shift
  "$bin/comms-bench" --ranks "$ranks" --json "$out/$name.json" --svg "$out/$name.svg" "$@" >"$out/$name.txt" || status=1
  cat "$out/$name.txt"
}

if [ "${COMMS_BENCH_QUICK:-}" ]; then
  measure quick-small --sizes '1K..256K*16' --algorithm one_shot,two_shot --protocol lamport --threads 64,128
  measure quick-large --sizes '4M..64M*16' --algorithm two_shot --protocol all --threads 512 --no-check
else
  measure all-reduce-small --sizes '1K..1M' --types bf16 --algorithm all --protocol all --threads 64,128,512
  measure all-reduce-large --sizes '4M..64M*4' --types bf16 --algorithm all --protocol all --threads 128,512 --no-check --calls 20
  measure all-reduce-256M --sizes 256M --types bf16 --algorithm auto,two_shot --protocol auto,pull --threads 512 --no-check --calls 5
  measure others-small --op all_gather,reduce_scatter,all_to_all,broadcast --sizes '1K..1M*4' --algorithm all --protocol all --threads 128,512
  measure others-large --op all_gather,reduce_scatter,all_to_all,broadcast --sizes '4M..16M*4' --algorithm all --protocol all --threads 512 --no-check --calls 20
  measure rows --op rows --rows 1,2,8,16,64,128,512 --hidden 8192
  measure rows-others --op all_reduce_rmsnorm --rows 1,8,64,512 --hidden 4096,5120,6144,7168
  measure both-modes --op all --sizes '64..16M*8' --graph --eager --memory windows,plain --least 0.98
  measure eager --sizes '1K..1M*8' --eager --algorithm all --protocol all --threads 128
fi
# Generated against hand-written, where the twins are there or can be built.
python3 "$(dirname "$0")/twins.py" --bin "$bin" --ranks "$ranks" --json "$out/twins.json" || status=1
if python3 -c 'import torch' 2>/dev/null; then
  sizes='1K..64M'
  [ "${COMMS_BENCH_QUICK:-}" ] && sizes='1K..64M*16'
  torchrun --nproc-per-node "$ranks" "$(dirname "$0")/bench_torch.py" --sizes "$sizes" --json "$out/torch.json" || status=1
  set --
  for report in "$out"/quick-small.json "$out"/quick-large.json "$out"/all-reduce-*.json "$out"/torch.json; do
    [ -f "$report" ] && set -- "$@" --show "$report"
  done
  "$bin/comms-bench" "$@" --svg "$out/with-torch.svg" >"$out/with-torch.txt" || status=1
  cat "$out/with-torch.txt"
fi
exit $status
