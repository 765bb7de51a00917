"""Fetches the files of one release of torch that a C++ extension is compiled and linked with: the headers, and the
symbols of the libraries. pip downloads the wheel, so that mirrors, proxies and its cache apply, and compares its
hash. The download has half a gigabyte; 70 MB of it are kept.

Usage: fetch_torch.py --release 2.13.0 --sha256 … --ifs llvm-ifs --out build/torch/2.13.0
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

#: Headers and symbols are the same for every Python.
PYTHON = "3.12"
PLATFORM = "manylinux_2_28_x86_64"
LIBRARIES = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"]


class FetchError(Exception):
    pass


def run(what: str, command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise FetchError(f"{what}: {' '.join(command)}: status {done.returncode}\n{done.stdout}")


def download(release: str, sha256: str, folder: pathlib.Path) -> pathlib.Path:
    """The wheel, whose bytes pip has compared with the hash."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"torch=={release} --hash=sha256:{sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary", ":all:", "--python-version", PYTHON, "--platform", PLATFORM]
    run(f"torch {release} could not be downloaded", [*command, "-d", str(folder), "-r", str(wanted)])
    wheels = list(folder.glob("torch-*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip left {len(wheels)} wheels of torch {release} in {folder}, where one is wanted")
    return wheels[0]


def unpack(wheel: pathlib.Path, folder: pathlib.Path, ifs: str) -> None:
    """Headers into `folder`/include; into lib libraries that have symbols and no code."""
    (folder / "lib").mkdir()
    with zipfile.ZipFile(wheel) as archive:
        headers = [name for name in archive.namelist() if name.startswith("torch/include/")]
        if not headers:
            raise FetchError(f"{wheel.name} has no folder torch/include")
        archive.extractall(folder, headers)
        for name in LIBRARIES:
            whole = archive.extract(f"torch/lib/{name}", folder)
            made = str(folder / "lib" / name)
            run(f"{name} of {wheel.name}", [ifs, "--input-format=ELF", f"--output-elf={made}", whole])
            pathlib.Path(whole).unlink()
    (folder / "torch" / "include").rename(folder / "include")
    shutil.rmtree(folder / "torch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("release", "sha256", "ifs"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=options.out.parent) as name:
            wheel = download(options.release, options.sha256, pathlib.Path(name))
            made = pathlib.Path(name) / "made"
            made.mkdir()
            unpack(wheel, made, options.ifs)
            shutil.rmtree(options.out, ignore_errors=True)
            made.rename(options.out)
    except (FetchError, OSError, KeyError, zipfile.BadZipFile) as error:
        print(f"fetch_torch: error: {error}", file=sys.stderr)
        return 1
    (options.out / "ready").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
