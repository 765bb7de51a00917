#!/usr/bin/env bash
# Copies the portable programs and the wheel to another Linux, which has only
# Python, and uses them there:
#   test/integration/other-linux.sh DIR [SUITE [BUILD]]
# SUITE is jammy (Ubuntu 22.04, glibc 2.35, the oldest that is promised; its key
# is KEYRING, or /usr/share/keyrings/ubuntu-archive-keyring.gpg) or bookworm
# (Debian 12). The archive of `make bundle` and the wheel of `make wheel` of BUILD
# (build) run the demo there, on the CPU and, over a fake driver, on GPUs. DIR/SUITE is made by debootstrap and kept; DIR/root is a copy
# that is thrown away. Needs root, the debootstrap package, and PyPI for the
# wheel's dependencies.
set -euo pipefail

dir=${1:?usage: other-linux.sh DIR [SUITE [BUILD]]}
suite=${2:-jammy}
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${3:-$source/build}")
fail() { echo "other-linux.sh: error: $*" >&2; exit 1; }

bundle=$build/commsir-bundle.tar.xz
wheel=$(ls "$build"/wheel/commsir-*.whl 2>/dev/null | tail -1)
[ -e "$bundle" ] || fail "there is no $bundle: run make bundle"
[ "$wheel" ] || fail "there is no $build/wheel/commsir-*.whl: run make wheel"
mkdir -p "$dir"
dir=$(realpath "$dir")
root=$dir/root

cleanup() {
  for mount in proc dev/shm dev; do
    mountpoint -q "$root/$mount" && umount -l "$root/$mount"
  done
  true
}
trap cleanup EXIT

if [ ! -e "$dir/$suite/etc/os-release" ]; then
  components=main
  [ "$suite" = bookworm ] || components=main,universe # Ubuntu has python3-venv there.
  # debootstrap itself knows which archive and which key belong to a suite.
  debootstrap --variant=minbase --components=$components --include=ca-certificates,python3-venv \
    ${KEYRING:+"--keyring=$KEYRING"} "$suite" "$dir/$suite"
fi
cleanup
rm -rf --one-file-system "$root"
cp -a "$dir/$suite" "$root"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# How this machine reaches PyPI is part of the machine, not of the test.
[ -e /etc/pip.conf ] && cp /etc/pip.conf "$root/etc/pip.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mountpoint -q "$root/dev/shm" || mount -t tmpfs tmpfs "$root/dev/shm"

environment=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8)
for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
  [ -n "${!name:-}" ] && environment+=("$name=${!name}")
done
inside() { chroot "$root" env -i "${environment[@]}" "$@"; }

# Nothing of what builds CommsIR or a kernel.
for name in cc gcc g++ clang ptxas nvcc llc; do
  inside sh -c "command -v $name" && fail "$suite has a $name: it is not bare"
done
strange=$(find "$root/usr" "$root/opt" "$root/lib/" -xdev \( -name 'libLLVM*' -o -name 'libMLIR*' -o -name 'libcuda*' -o -name 'libnv*' -o -name 'libnccl*' \) | head -3)
[ -z "$strange" ] || fail "$suite has $strange: it is not bare"

here=$root/opt/elsewhere
mkdir -p "$here/bundle"
tar -C "$here/bundle" -xf "$bundle"
cp "$wheel" "$source/test/integration/use-elsewhere.sh" "$here"
cp -rL "$build/lib/fake-cuda" "$here/driver"
"$source/test/integration/elsewhere-files.sh" "$here/files"

start=$SECONDS
echo "== $(. "$root/etc/os-release" && echo "$PRETTY_NAME"), $(inside ldd --version | head -1), $(inside python3 --version)"
inside /opt/elsewhere/use-elsewhere.sh /opt/elsewhere/bundle/bin /opt/elsewhere/files /opt/elsewhere/driver
echo "== the bundle does the demo's job, on the CPU and over the driver that pretends: $((SECONDS - start)) s"

start=$SECONDS
inside python3 -m venv /opt/elsewhere/venv
inside /opt/elsewhere/venv/bin/pip install -q --disable-pip-version-check "/opt/elsewhere/$(basename "$wheel")"
inside /opt/elsewhere/venv/bin/pip list --disable-pip-version-check --format=freeze | tr '\n' ' '
echo
inside /opt/elsewhere/venv/bin/python -m commsir.demo --target cpu | tail -1 | grep 'All as expected'
inside /opt/elsewhere/use-elsewhere.sh /opt/elsewhere/venv/bin /opt/elsewhere/files /opt/elsewhere/driver
echo "== the wheel does the same, and its own demo: $((SECONDS - start)) s"
