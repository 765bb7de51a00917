#!/usr/bin/env bash
# Configures the build folder by a preset, unless it is configured already:
#
#   configure.sh default|demo BUILD
#
# A folder that was configured for the demo becomes one for everything, and keeps
# its objects; any other folder stays as it is. The demo includes the runtime for
# GPUs, a third of its sources, only if the machine has a driver.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 build=$2
mark=$build/for-demo-only

if [ -f "$build/build.ninja" ] && { [ "$preset" = demo ] || [ ! -f "$mark" ]; }; then exit 0; fi
gpus=(-U "COMMSIR_CUDA*" -U "COMMSIR_NCCL*" -U COMMSIR_PTXAS) # .venv may have them now.
[ "$preset" != demo ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' || gpus=(-D COMMSIR_CUDA=OFF)
cmake --preset "$preset" -B "$build" "${gpus[@]}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
rm -f "$build.log" "$mark"
[ "$preset" != demo ] || touch "$mark"
