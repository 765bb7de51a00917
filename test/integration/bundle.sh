#!/usr/bin/env bash
# Checks the archive of portable programs, or the folder that it is made from,
# because packing takes minutes:
#   test/integration/bundle.sh commsir-bundle.tar.xz|FOLDER [DRIVER]
# its size, the glibc that it needs, and the demo in an empty environment. With DRIVER,
# the folder of a fake CUDA driver (build/lib/fake-cuda), also on GPUs. other-linux.sh
# does the same on another Linux.
set -euo pipefail

bundle=${1:?usage: bundle.sh ARCHIVE|FOLDER [DRIVER]}
driver=${2:+$(realpath "$2")}
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "bundle.sh: error: $*" >&2; exit 1; }

mkdir "$folder/unpacked"
if [ -d "$bundle" ]; then
  size="not packed"
  cp -r "$bundle/bin" "$folder/unpacked"
else
  bytes=$(stat -c %s "$bundle")
  [ "$bytes" -le 40000000 ] || fail "it has $bytes bytes, more than 40 MB"
  size="$bytes bytes"
  tar -C "$folder/unpacked" -xf "$bundle"
fi
for program in "$folder"/unpacked/bin/*; do
  name=$(basename "$program")
  needed=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libm|ld-linux-x86-64)\.so' || true)
  [ -z "$needed" ] || fail "$name needs $needed, which a host may not have"
  newest=$(readelf --dyn-syms -W "$program" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -1)
  [ "$(printf '%s\nGLIBC_2.35\n' "$newest" | sort -V | tail -1)" = GLIBC_2.35 ] || fail "$name needs $newest, not 2.35"
done
"$source/test/integration/elsewhere-files.sh" "$folder/files"
env -i "$source/test/integration/use-elsewhere.sh" "$folder/unpacked/bin" "$folder/files" "$driver"
echo "$(basename "$bundle"): $size; $(cd "$folder/unpacked/bin" && echo *), run with nothing but glibc 2.35${driver:+ and a driver}"
