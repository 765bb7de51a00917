"""Checks the wheel that `make wheel` has made: its size, what its libraries require of a host, and that, in fresh
environments of every Python found, it installs, imports quickly and runs the demo without torch.

The prebuilt files for torch may need no symbol that their torch lacks; torch's libraries are in build/torch, or are
those of this Python.

Usage: check_wheel.py --wheel build/wheel [--python python3.10 …] [--offline]
Ends with 77 (skipped) if there is no wheel.
"""

import argparse
import functools
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

LIMIT_MB = 40
#: The oldest versions that a host may have.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
#: Libraries that every host has, or that come along.
ALLOWED = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-x86-64\.so\.2|lib(commsir|tvm_ffi)\.so")
#: Those that torch has loaded before ours for torch are.
OF_TORCH = re.compile(ALLOWED.pattern + r"|lib(torch|torch_cpu|torch_python|c10)\.so|lib(stdc\+\+\.so\.6|gcc_s\.so\.1)")
PYTHONS = ["3.10", "3.12", "3.13"]

PROGRAM = """
import sys, time
start = time.perf_counter()
import commsir
print(f"import commsir: {(time.perf_counter() - start) * 1000:.0f} ms")
assert "torch" not in sys.modules and "numpy" not in sys.modules
assert "_lib" in str(commsir._native.library_path()), commsir._native.library_path()
print(commsir.version())
import importlib, pkgutil
for module in pkgutil.walk_packages(commsir.__path__, "commsir."):
    if not module.name.startswith(("commsir.torch", "commsir.examples")):
        importlib.import_module(module.name)
assert "torch" not in sys.modules
"""


#: What an unmodified program does; torch finds the backend by its entry point.
BACKEND = """
import os
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
import torch, torch.distributed as dist
dist.init_process_group("commsir", store=dist.HashStore(), rank=0, world_size=1)
x = torch.arange(8.0)
dist.all_reduce(x)
assert x.tolist() == list(map(float, range(8))), x
import commsir._native
assert "_lib" in str(commsir._native.library_path())
dist.destroy_process_group()
print("torch's backend commsir works")
"""


class WheelError(Exception):
    pass


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise WheelError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return str(done.stdout)


def dynamic_symbols(path: pathlib.Path) -> list[list[str]]:
    """Fields of readelf's table: binding is the fifth, section the seventh, name the eighth."""
    lines = map(str.split, run(["readelf", "--dyn-syms", "-W", str(path)]).splitlines())
    return [fields for fields in lines if len(fields) > 7]


@functools.cache
def shown_by_torch(minor: str, releases: pathlib.Path) -> frozenset[str]:
    """Names that the libraries of a torch show; empty: it is not here."""
    folders = sorted(releases.glob(f"{minor}.*/lib"))
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin and importlib.metadata.version("torch").startswith(f"{minor}."):
        folders.append(pathlib.Path(spec.origin).parent / "lib")
    if not folders:
        return frozenset()
    found = (dynamic_symbols(folders[-1] / f"lib{name}.so") for name in ("c10", "torch", "torch_cpu", "torch_python"))
    return frozenset(fields[7].split("@")[0] for symbols in found for fields in symbols if fields[6] != "UND")


def check_against_torch(path: pathlib.Path, releases: pathlib.Path) -> str:
    """Everything but Python's is there; what the C and the C++ library have carries a version. Says what was done."""
    named = re.search(r"torch-(\d+\.\d+)\.", path.name)
    if not named:
        return ""
    shown = shown_by_torch(named[1], releases)
    if not shown:
        return ", not compared with torch's"
    wanted = {f[7] for f in dynamic_symbols(path) if f[6] == "UND" and f[4] == "GLOBAL" and "@" not in f[7]}
    missing = {name for name in wanted - shown if not name.startswith(("Py", "_Py"))}
    if missing:
        raise WheelError(f"{path.name} needs what torch {named[1]} does not have: {sorted(missing)[:5]}")
    return f", {len(wanted & shown)} of torch's needed"


def check_library(path: pathlib.Path, releases: pathlib.Path) -> None:
    """What the library needs, and what it shows."""
    allowed = OF_TORCH if "torch" in path.name else ALLOWED
    dynamic = run(["readelf", "-dW", str(path)])
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not allowed.fullmatch(name):
            raise WheelError(f"{path.name} needs {name}, which a host may not have")
    for line in dynamic.splitlines():
        if "TEXTREL" in line or (("RPATH" in line or "RUNPATH" in line) and "[$ORIGIN]" not in line):
            raise WheelError(f"{path.name}: {line.strip()}")
    symbols = dynamic_symbols(path)
    versions = re.findall(r"@+(GLIBC|GLIBCXX|CXXABI)_([\d.]+)", " ".join(fields[7] for fields in symbols))
    for family, version in set(versions):
        if tuple(map(int, version.split("."))) > NEWEST[family]:
            raise WheelError(f"{path.name} needs {family}_{version}")
    shown = {fields[7].split("@")[0] for fields in symbols if fields[4] in ("GLOBAL", "WEAK") and fields[6] != "UND"}
    strangers = {name for name in shown if not name.startswith(("commsir_", "__tvm_ffi_"))}
    if strangers and allowed is ALLOWED:
        raise WheelError(f"{path.name} shows {len(strangers)} symbols that are not its own: {sorted(strangers)[:5]}")
    against = check_against_torch(path, releases)
    print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB, {len(shown)} symbols shown{against}")


def check_contents(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    if size > LIMIT_MB:
        raise WheelError(f"the wheel has {size:.1f} MB, more than {LIMIT_MB}")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        file.extractall(folder)
    for needed in ("commsir/py.typed", "commsir/_lib/libcommsir.so", "commsir/_lib/libcommsir_ffi.so"):
        if needed not in names:
            raise WheelError(f"the wheel has no {needed}")
    for library in sorted((folder / "commsir" / "_lib").iterdir()):
        check_library(library, wheel.parent.parent / "torch")


def find_python(version: str) -> str | None:
    """A Python of that version: in PATH, or of pyenv."""
    candidates = [shutil.which(f"python{version}")]
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates += [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]
    for candidate in candidates:
        if candidate and subprocess.run([candidate, "-m", "venv", "--help"], capture_output=True).returncode == 0:
            return candidate
    return None


def use(python: str, environment: dict[str, str], folder: pathlib.Path) -> None:
    """Imports the package and runs the demo and a program with `python`."""
    print(f"  {run([python, '-c', PROGRAM], env=environment, cwd=folder).strip()}".replace("\n", "\n  "))
    demo = run([python, "-m", "commsir.demo", "--target", "cpu"], env=environment, cwd=folder)
    if "All as expected." not in demo:
        raise WheelError(demo)
    report = run([python, "-m", "commsir.doctor"], env=environment, cwd=folder)
    if "!!" in report:
        raise WheelError(report)
    print("  the demo is as expected")


def clean_environment() -> dict[str, str]:
    keep = (
        "PATH",
        "HOME",
        "COMMSIR_CACHE_DIR",
        "TMPDIR",
        "LANG",
        "PIP_INDEX_URL",
        "PIP_CONFIG_FILE",
        "SSL_CERT_FILE",
        "HTTPS_PROXY",
    )
    return {name: os.environ[name] for name in keep if name in os.environ}


def check_fresh(python: str, wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """A new environment, as a user makes it."""
    where = folder / f"venv-{len(list(folder.iterdir()))}"
    run([python, "-m", "venv", str(where)])
    own = str(where / "bin" / "python")
    print(run([own, "--version"]).strip())
    environment = clean_environment()
    run([own, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)], env=environment)
    use(own, environment, folder)
    kernel = folder / "copy.mlir"
    kernel.write_text(
        "comms.kernel @copy(%x: memref<4xf32>, %y: memref<4xf32>) {\n  memref.copy %x, %y : memref<4xf32> to "
        "memref<4xf32>\n  comms.return\n}\n"
    )
    told = run([str(where / "bin" / "comms-run"), str(kernel), "--ranks=2", "--input=x=iota"], env=environment)
    if "2 ranks" not in told:
        raise WheelError(told)
    run([str(where / "bin" / "comms-opt"), str(kernel)], env=environment)
    print("  comms-run and comms-opt run")


def check_offline(folder: pathlib.Path, packages: pathlib.Path) -> None:
    """This Python, with the unpacked wheel and what it depends on of `packages` alone: nothing is installed."""
    bare = folder / "packages"
    bare.mkdir()
    for name in ("numpy", "numpy.libs", "tvm_ffi", "typing_extensions.py"):
        if (packages / name).exists():
            (bare / name).symlink_to(packages / name)
    for info in packages.glob("apache_tvm_ffi-*.dist-info"):
        (bare / info.name).symlink_to(info)
    for info in packages.glob("numpy-*.dist-info"):
        (bare / info.name).symlink_to(info)
    environment = clean_environment() | {"PYTHONPATH": f"{folder}:{bare}"}
    print(f"this Python, {sys.version.split()[0]}")
    use(sys.base_prefix + "/bin/python3", environment, folder)
    if importlib.util.find_spec("torch"):
        environment = clean_environment() | {"PYTHONPATH": str(folder)}
        print(f"  {run([sys.executable, '-c', BACKEND], env=environment, cwd=folder).strip().splitlines()[-1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=pathlib.Path, required=True, help="folder of the wheel")
    parser.add_argument("--python", action="append", help="Python to install it into; default: all that are there")
    parser.add_argument("--offline", action="store_true", help="install nothing: use this Python's packages")
    options = parser.parse_args()
    wheels = sorted(options.wheel.glob("commsir-*.whl"))
    if not wheels:
        print(f"no wheel in {options.wheel}: run `make wheel` first")
        return 77
    with tempfile.TemporaryDirectory(prefix="commsir-wheel-") as name:
        folder = pathlib.Path(name)
        try:
            check_contents(wheels[-1], folder)
            if options.offline:
                check_offline(folder, pathlib.Path(sysconfig.get_paths()["purelib"]))
                return 0
            for version in options.python or PYTHONS:
                python = version if "/" in version else find_python(version)
                if python:
                    check_fresh(python, wheels[-1].resolve(), folder)
                else:
                    print(f"Python {version} is not here: skipped")
        except WheelError as error:
            print(f"check_wheel: error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
