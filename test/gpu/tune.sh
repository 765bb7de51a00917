#!/bin/sh
# Makes the measured tables of this host, and measures sizes that are not in
# them.
#
#   test/gpu/tune.sh BIN OUT RANKS...    BIN has comms-bench; tables go to OUT
#
# OUT/h200-N.json belongs in runtime/choose/tables, OUT/held-N.json (of the first
# number of ranks) in test/tune/Inputs. Takes about three minutes per number of ranks;
# the same command continues an interrupted run. COMMS_TUNE_NAME names another machine.
set -u
bin=${1:?which folder has comms-bench?}
out=${2:?which folder do the tables go to?}
shift 2
[ $# -gt 0 ] || { echo "tune.sh: error: for how many ranks? for example 4 2" >&2; exit 2; }
machine=${COMMS_TUNE_NAME:-h200}
mkdir -p "$out"
status=0
first=$1
for ranks in "$@"; do
  "$bin/comms-bench" --tune "$out/$machine-$ranks.json" --ranks "$ranks" --budget 200 || status=1
done
COMMSIR_TABLES="$out/$machine-$first.json" "$bin/comms-bench" --tune "$out/held-$first.json" --ranks "$first" --budget 90 \
  --sizes '2K..32M*4' --rows 4,24,192 --hidden 3072,8192 || status=1
exit $status
