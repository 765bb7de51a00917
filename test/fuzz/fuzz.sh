#!/usr/bin/env bash
# Runs one fuzzer: first on every kept input, then on mutations of them.
#   fuzz.sh NAME 0        a fixed seed and number of runs (what `make test` does)
#   fuzz.sh NAME SECONDS  that long, with a new seed
# many.py runs several at once: COMMSIR_FUZZ_WORK is the folder of one of them.
# A finding ends it with the input's path and how to run it again.
set -u
name=$1 seconds=$2
source=${COMMSIR_SOURCE:-$(git -C "$(dirname "$0")" rev-parse --show-toplevel)}
build=${COMMSIR_BUILD:-$source/build}
work=${COMMSIR_FUZZ_WORK:-$build/test/fuzz/$name.work}
binary=$build/bin/$name
kept=$source/test/fuzz/corpus/$name
rm -rf "$work"
mkdir -p "$work/corpus" "$work/kept"

# Every kernel of the test suites is a starting point for those that read MLIR.
case $name in
  fuzz-parser | fuzz-lowering)
    find "$source/test" -name '*.mlir' -not -path '*/fuzz/*' -print0 |
      xargs -0 "${COMMSIR_PYTHON:-$source/.venv/bin/python}" "$source/test/fuzz/split.py" "$work/kept"
    dictionary=(-dict="$source/test/fuzz/comms.dict") ;;
  fuzz-run) dictionary=(-dict="$source/test/fuzz/run.dict") ;;
  *) dictionary=() ;;
esac
[ -d "$kept" ] && cp -r "$kept/." "$work/kept/"

case $name in
  fuzz-parser) runs=60000 ;;
  fuzz-lowering) runs=3000 ;;
  fuzz-run) runs=1500 ;;
  fuzz-tables) runs=50000 ;;
  fuzz-capi) runs=20000 ;;
  *) runs=150000 ;;
esac
# A table of a few points has 5 KB.
length=4096
[ "$name" = fuzz-tables ] && length=8192
if [ "$seconds" = 0 ]; then budget=(-seed=1 -runs=$runs -max_total_time=60)
else budget=(-max_total_time="$seconds"); fi

"$binary" "$work/corpus" "$work/kept" "${dictionary[@]}" "${budget[@]}" -timeout=60 -rss_limit_mb=4096 \
  -max_len="$length" -artifact_prefix="$work/finding-" -verbosity=0 -print_final_stats=1 >"$work/log" 2>&1
status=$?
if [ $status -ne 0 ]; then
  tail -60 "$work/log"
  for finding in "$work"/finding-*; do
    echo "$name: a finding, exit code $status. To run it again: $binary $finding"
    echo "Once it is fixed, keep it: cp $finding $kept/"
  done
  exit 1
fi
grep -E 'stat::number_of_executed_units|stat::average_exec_per_sec' "$work/log"
