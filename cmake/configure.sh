#!/usr/bin/env bash
# Configures the build folder by a preset, where it is not configured yet:
#
#   configure.sh default|demo BUILD
#
# A folder that was configured for the demo becomes one for everything, and keeps
# what is compiled; any other is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 build=$2
mark=$build/for-demo-only

if [ -f "$build/build.ninja" ] && { [ "$preset" = demo ] || [ ! -f "$mark" ]; }; then exit 0; fi
cmake --preset "$preset" -B "$build" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
rm -f "$build.log" "$mark"
[ "$preset" != demo ] || touch "$mark"
