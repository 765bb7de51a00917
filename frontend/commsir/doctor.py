"""Reports what this machine offers for CommsIR, what is missing, and how to fix it: `python -m commsir.doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import types
from dataclasses import dataclass
from typing import Any

from commsir import _native, errors

__all__ = ["Finding", "Report", "doctor"]


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    #: What is there.
    found: str
    #: What is wrong and what to do; "" where nothing is.
    problem: str = ""
    #: CommsIR works without it.
    optional: bool = True

    def __str__(self) -> str:
        mark = "ok" if not self.problem else "--" if self.optional else "!!"
        lines = [f"{mark}  {self.what:<12} {self.found or 'not there'}"]
        lines += [f"{'':17}{line}" for line in self.problem.splitlines()]
        return errors.printable("\n".join(lines))


@dataclass(frozen=True)
class Report:
    """All findings; prints as a table."""

    findings: tuple[Finding, ...]
    #: What the library said, as it said it.
    library: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether kernels can be checked and simulated here."""
        return not any(finding.problem and not finding.optional for finding in self.findings)

    @property
    def gpus(self) -> int:
        """The number of GPUs that can run kernels; 0 if the driver or NCCL is missing."""
        if any(finding.problem for finding in self.findings if finding.what in ("driver", "NCCL")):
            return 0
        return len(self.library.get("cuda", {}).get("gpus", ()))

    def __str__(self) -> str:
        last = (
            f"Kernels run on this machine's {self.gpus} GPUs, and in simulation."
            if self.gpus
            else "Kernels are checked, simulated and compiled here; running them on GPUs needs what is marked --."
            if self.ok
            else "CommsIR does not work here: see what is marked !!."
        )
        return "\n".join([*map(str, self.findings), "", last])


def _package(name: str, use: str) -> Finding:
    """Checks for an optional Python package. Does not import it, because that takes long and could fail."""
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "", f"for {use}: pip install {name}")


def _torch_backend(version: str) -> Finding:
    """Checks file names only; torch is not imported."""
    from commsir.torch import _release

    what, python = "torch, C++", f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if found := _release.paths_of(version, _release.folders()):
        return Finding(what, f"a backend for torch {_release.name_of(version)} and {python} ({found[0]})")
    lacking, compiler = f"none is prebuilt for torch {version} and {python}", os.environ.get("CXX", "c++")
    if path := shutil.which(compiler):
        return Finding(what, f"{lacking}; {path} compiles the backend at its first use, which takes a minute once")
    return Finding(
        what,
        "",
        f"{lacking}, and there is no C++ compiler {compiler}: install one, or let CXX name it.\n"
        "Without it all calls go to Gloo or NCCL",
    )


def _torch_name() -> Finding:
    """Checks that torch finds the backend by name, through an entry point of the installed package."""
    what = "torch, name"
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "0":
        return Finding(what, "", "TORCH_DEVICE_BACKEND_AUTOLOAD=0: programs must call commsir.torch.register()")
    if importlib.metadata.entry_points(group="torch.backends", name="commsir"):
        return Finding(what, 'torch finds the backend by its name: init_process_group("commsir")')
    return Finding(
        what,
        "",
        'torch does not know the backend "commsir": the package is on the path of Python, but not installed.\n'
        "Install the wheel or, in a checkout, run `make setup`; else programs must call commsir.torch.register()",
    )


def _gpu_names(cuda: dict[str, Any]) -> str:
    names: dict[str, int] = {}
    for gpu in cuda.get("gpus", ()):
        name = f"{gpu.get('name', 'a GPU that cannot be queried')} ({gpu.get('chip', '?')})"
        names[name] = names.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in names.items())


def _gpu_findings(report: dict[str, Any]) -> list[Finding]:
    cuda, nccl, linker = (report.get(part, {}) for part in ("cuda", "nccl", "linker"))
    driver = f"CUDA {cuda['driver']}" if "driver" in cuda else ""
    if names := _gpu_names(cuda):
        driver += f"; {names}"
    library = f"{nccl['version']} ({nccl['path']})" if "version" in nccl else ""
    maker = str(linker.get("found", "")).split(":")
    return [
        Finding("driver", driver, cuda.get("problem", "")),
        Finding("NCCL", library, nccl.get("problem", "")),
        Finding("linker", ": ".join(maker[:2]), linker.get("problem", "")),
    ]


def _cache_finding(cache: dict[str, Any]) -> Finding:
    limit = cache.get("limit_bytes", 0) / 2**30
    compiler = "" if cache.get("compiler", True) else "; the compiler is off (COMMSIR_COMPILER)"
    return Finding("cache", f"{cache.get('folder', '')}, at most {limit:.1f} GiB{compiler}", cache.get("problem", ""))


def doctor() -> Report:
    """Examines this machine. Changes nothing and opens no GPU."""
    python = Finding("Python", f"{platform.python_version()} ({sys.executable})")
    try:
        report = _native.doctor()
    except errors.CommsError as error:
        return Report((python, Finding("library", "", str(error), optional=False)), {})
    memory = report["memory_bytes"] / 2**30
    found = [
        python,
        Finding("library", f"{report['version']} in {_native.library_path()}"),
        Finding("host", f"{report['processors']} processors, {memory:.0f} GiB of memory for simulations"),
        *_gpu_findings(report),
        _cache_finding(report.get("cache", {})),
        _package("numpy", "arrays"),
        _package("ml_dtypes", "bf16 and fp8 arrays of NumPy"),
        torch := _package("torch", "the backend and the ops of PyTorch"),
    ]
    if not torch.problem:
        found += [_torch_name(), _torch_backend(torch.found)]
    for name in (
        "COMMSIR_LIBRARY",
        "COMMSIR_NCCL_LIBRARY",
        "COMMSIR_LINKER",
        "COMMSIR_TORCH_BACKEND",
        "CUDA_VISIBLE_DEVICES",
    ):
        if name in os.environ:
            found.append(Finding("environment", f"{name}={os.environ[name]}"))
    return Report(tuple(found), report)


class _Callable(types.ModuleType):
    """Keeps `commsir.doctor` callable after somebody imports this module under the same name."""

    def __call__(self) -> Report:
        return doctor()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    made = doctor()
    print(made)
    sys.exit(not made.ok)
