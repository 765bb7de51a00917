#!/usr/bin/env bash
# Installs CommsIR into a fresh prefix, builds test/integration/outside against
# it by find_package alone, runs it, and loads the installed plugin in mlir-opt.
set -euo pipefail
build=$1 work=$2 c_compiler=$3 compiler=$4 llvm=$5
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
cmake -S "$here/outside" -B "$work/build" -G Ninja -DCMAKE_C_COMPILER="$c_compiler" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
kernel="$here/outside/kernel.mlir"
"$work/build/outside" "$kernel" | grep -q 'comms.recv'
"$work/build/outside-c" | grep -q '"kernel":"a"'

plugin=$(echo "$work"/prefix/lib*/CommsIRPlugin.so "$work"/prefix/lib/*/CommsIRPlugin.so | tr ' ' '\n' | grep -v '\*' | head -1)
"$llvm/mlir-opt" --load-dialect-plugin="$plugin" --load-pass-plugin="$plugin" \
  --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives))' "$kernel" | grep -q 'comms.recv'
"$work/prefix/bin/comms-opt" "$kernel" | grep -q 'comms.all_reduce'
echo "find_package, plugin and installed tools work"
