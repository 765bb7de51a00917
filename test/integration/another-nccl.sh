#!/usr/bin/env bash
# Compiles the device library for other releases of NCCL, by NVRTC and by clang:
#   test/integration/another-nccl.sh BUILD VERSION|FOLDER…
# A VERSION (2.32.3) is downloaded from PyPI (200 to 300 MB, of which the headers
# are kept); a FOLDER has `include`. Both must agree on NCCL's structures, and
# ptxas must accept the code.
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: another-nccl.sh BUILD VERSION|FOLDER…" >&2; exit 2; }
build=$(realpath "$1")
shift
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
clang=$(cached COMMSIR_DEVICE_CLANG) cuda=$(cached COMMSIR_CUDA_INCLUDE) ptxas=$(cached COMMSIR_PTXAS)
llc=$(dirname "$(realpath "$clang")")/llc
python=${PYTHON:-$source/.venv/bin/python}

fetch() { # VERSION: prints the folder
  "$python" -m pip download -q --no-deps -d "$work" "nvidia-nccl-cu13==$1" >&2
  "$python" - "$work" <<'P'
import pathlib, sys, zipfile

folder = pathlib.Path(sys.argv[1])
[wheel] = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(folder, [name for name in archive.namelist() if name.startswith("nvidia/nccl/include/")])
wheel.unlink()
P
  mv "$work/nvidia/nccl" "$work/nccl-$1"
  echo "$work/nccl-$1"
}

# Numbers of commsir_layouts in PTX, however wide it writes them.
numbers() {
  "$python" - "$1" <<'P'
import re, sys

text = open(sys.argv[1]).read()
found = re.search(r"\.b(8|64) commsir_layouts\[\d+\] = \{([^}]*)\}", text)
assert found, "there is no commsir_layouts in " + sys.argv[1]
values = [int(value) for value in found[2].split(",")]
if found[1] == "8":
    values = [int.from_bytes(bytes(values[i : i + 8]), "little") for i in range(0, len(values), 8)]
print(*values)
P
}

# As cmake/NcclDevice.cmake does, with a PTX that has all that later releases use.
compile() { # FOLDER OUTPUT FLAGS…
  local include=$1/include output=$2
  shift 2
  "$clang" -x cuda --cuda-device-only "--cuda-path=$(dirname "$cuda")" -nocudalib -Wno-unknown-cuda-version \
    -std=gnu++17 -O2 "-I$include" -isystem "$cuda/cccl" -isystem "$cuda" \
    -isystem "$build/lowering/nvvm/device/stubs" -o "$output" "$@"
}

for nccl in "$@"; do
  case $nccl in
  [0-9]*) folder=$(fetch "$nccl") ;;
  *) folder=$(realpath "$nccl") ;;
  esac
  out=$work/out
  rm -rf "$out"
  mkdir -p "$out"
  begin=$(date +%s)
  COMMSIR_TEST_NCCL=$folder COMMSIR_TEST_LAYOUTS=$out/nvrtc.ptx \
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$ptxas")/../lib PATH=$PATH:$(dirname "$ptxas") \
    "$build/bin/runtime-tests" --gtest_brief=1 --gtest_filter='DeviceLibrary.AnotherReleaseIsCompiled' >"$out/log" 2>&1 ||
    { cat "$out/log"; exit 1; }
  device=$source/lowering/nvvm/device/NcclDevice.cu
  compile "$folder" "$out/functions.bc" --cuda-gpu-arch=sm_90 -emit-llvm -c "$device"
  "$llc" -mcpu=sm_90 -mattr=+ptx88 -o "$out/functions.ptx" "$out/functions.bc"
  compile "$folder" "$out/kernels.ptx" --cuda-gpu-arch=sm_80 --cuda-feature=+ptx80 -DCOMMSIR_KERNELS_ONLY -S "$device"
  for part in functions kernels; do "$ptxas" -arch=sm_90 -c -o "$out/$part.cubin" "$out/$part.ptx"; done
  cat "$device" "$source/test/runtime/NcclLayouts.cu" >"$out/layouts.cu"
  compile "$folder" "$out/clang.ptx" --cuda-gpu-arch=sm_90 --cuda-feature=+ptx88 -S "$out/layouts.cu"
  one=$(numbers "$out/nvrtc.ptx") two=$(numbers "$out/clang.ptx")
  if [ "$one" != "$two" ]; then
    echo "another-nccl.sh: error: NVRTC and clang lay out the structures of $nccl differently:" >&2
    printf '  %s\n' "$one" "$two" >&2
    exit 1
  fi
  echo "NCCL ${one%% *}: NVRTC and clang compile kernels and functions, ptxas takes them, $(wc -w <<<"$one") facts of its structures agree; $(($(date +%s) - begin)) s"
done
