"""cmake/fetch_torch.py: headers and symbols from a wheel, here of a made-up release in a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
IFS = shutil.which(os.environ.get("LLVM_IFS") or "llvm-ifs")
LIBRARIES = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"]


def write_wheel(folder: Path, libraries: list[str]) -> Path:
    """torch 9.9.0, whose libraries have a function each, called as they are."""
    made = folder / "torch-9.9.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(made, "w") as archive:
        info = "torch-9.9.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 9.9.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: cp312-cp312-manylinux_2_28_x86_64\n")
        archive.writestr("torch/include/c10/util/A.h", "#pragma once\n")
        archive.writestr("torch/_C.so", "not wanted")
        for name in libraries:
            code, built = folder / "code.c", folder / name
            function = name.removesuffix(".so")
            code.write_text(f"int helper(void);\nint {function}(void) {{ return helper() + 1; }}\n")
            command = [
                os.environ.get("CC", "cc"),
                "-shared",
                "-fPIC",
                f"-Wl,-soname,{name}",
                "-o",
                str(built),
                str(code),
            ]
            subprocess.run(command, check=True)
            archive.write(built, f"torch/lib/{name}")
            built.unlink()
    return made


def fetch(wheel: Path, out: Path, sha256: str = "") -> subprocess.CompletedProcess[str]:
    sha256 = sha256 or hashlib.sha256(wheel.read_bytes()).hexdigest()
    command = [sys.executable, str(ROOT / "cmake" / "fetch_torch.py"), "--release", "9.9.0", "--sha256", sha256]
    command += ["--ifs", str(IFS), "--out", str(out)]
    environment = {
        **os.environ,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_CONFIG_FILE": os.devnull,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(not IFS, reason="llvm-ifs is not here")
def test_headers_and_symbols_are_kept(tmp_path: Path) -> None:
    wheel, out = write_wheel(tmp_path, LIBRARIES), tmp_path / "made" / "9.9.0"
    for _ in range(2):  # The second time over the first.
        done = fetch(wheel, out)
        assert done.returncode == 0, done.stderr
    kept = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert kept == {"ready", "include/c10/util/A.h", *(f"lib/{name}" for name in LIBRARIES)}
    assert [path.name for path in out.parent.iterdir()] == ["9.9.0"]
    # A module links with them: what it needs is looked up, and found by the library's own name.
    code, module = tmp_path / "module.c", tmp_path / "module.so"
    code.write_text("int libtorch_cpu(void);\nint f(void) { return libtorch_cpu(); }\n")
    link = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-fuse-ld=lld", "-Wl,-z,defs", "-o", str(module), str(code)]
    subprocess.run([*link, f"-L{out / 'lib'}", "-ltorch_cpu"], check=True)
    read = subprocess.run(["readelf", "-dW", module], check=True, capture_output=True, text=True).stdout
    assert "[libtorch_cpu.so]" in read
    failed = subprocess.run([*link, f"-L{out / 'lib'}", "-ltorch_python"], capture_output=True, text=True)
    assert failed.returncode and "undefined symbol: libtorch_cpu" in failed.stderr


@pytest.mark.parametrize(
    ("libraries", "sha256", "said"),
    [(LIBRARIES, "0" * 64, "torch 9.9.0 could not be downloaded"), (LIBRARIES[:2], "", "torch/lib/libtorch_cpu.so")],
)
def test_mismatches_leave_no_files(tmp_path: Path, libraries: list[str], sha256: str, said: str) -> None:
    done = fetch(write_wheel(tmp_path, libraries), tmp_path / "made" / "9.9.0", sha256)
    assert done.returncode == 1
    assert done.stderr.startswith("fetch_torch: error: ") and said in done.stderr
    assert not list((tmp_path / "made").iterdir())


def test_every_release_in_the_list_is_whole() -> None:
    lines = (ROOT / "cmake" / "torch-releases.txt").read_text().splitlines()
    releases = [line.split() for line in lines if not line.startswith("#")]
    assert len({release.rpartition(".")[0] for release, *_ in releases}) == len(releases) >= 5
    for _, first, last, sha256 in releases:
        assert first.startswith("3.") and int(first[2:]) <= int(last[2:])
        assert len(sha256) == 64 and int(sha256, 16)
    # What the build itself uses is among them.
    [own] = [line for line in (ROOT / "cmake" / "requirements.txt").read_text().splitlines() if line[:7] == "torch=="]
    assert own.removeprefix("torch==") in {release for release, *_ in releases}
