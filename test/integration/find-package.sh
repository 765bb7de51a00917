#!/usr/bin/env bash
# Installs CommsIR into a fresh prefix. Builds test/integration/outside and the
# example of docs/CApi.md against it, with only find_package, runs both, and loads
# the installed plugin in mlir-opt.
set -euo pipefail
build=$1 work=$2 c_compiler=$3 compiler=$4 llvm=$5 python=$6
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
make_project() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_C_COMPILER="$c_compiler" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" >"$2.log"
  cmake --build "$2" >>"$2.log" || { cat "$2.log"; exit 1; }
}
make_project "$here/outside" "$work/build"
kernel="$here/outside/kernel.mlir"
"$work/build/outside" "$kernel" | grep -q 'comms.recv'

page="$here/../../docs/CApi.md" blocks="$here/../scripts/blocks.py"
mkdir "$work/page"
"$python" "$blocks" "$page" cmake 0 >"$work/page/CMakeLists.txt"
"$python" "$blocks" "$page" c 0 >"$work/page/example.c"
make_project "$work/page" "$work/out"
"$work/out/example" | grep -qx '11 22 33 44'

plugin=$(echo "$work"/prefix/lib*/CommsIRPlugin.so "$work"/prefix/lib/*/CommsIRPlugin.so | tr ' ' '\n' | grep -v '\*' | head -1)
"$llvm/mlir-opt" --load-dialect-plugin="$plugin" --load-pass-plugin="$plugin" \
  --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives))' "$kernel" | grep -q 'comms.recv'
"$work/prefix/bin/comms-opt" "$kernel" | grep -q 'comms.all_reduce'
echo "find_package, plugin and installed tools work"
