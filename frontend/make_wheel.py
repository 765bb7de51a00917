"""Packs wheels: the one that `make wheel` makes, with the Python sources, the libraries that CMake has put into the
stage, and the metadata of pyproject.toml; and, as the build backend of pyproject.toml (PEP 660), the editable one of a
checkout (`pip install -e frontend`), which names this folder and holds the same metadata. The same input gives the same
bytes.

Usage: make_wheel.py --version 0.1.0 --sources frontend --stage build/wheel/stage --out build/wheel
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import re
import tomllib
import zipfile
from typing import Any

#: glibc 2.35, which the libraries are held to by a test.
TAG = "py3-none-manylinux_2_35_x86_64"
#: The editable one has no libraries: the package finds those of build/lib.
EDITABLE_TAG = "py3-none-any"
#: For all files: the year 2020.
TIME = (2020, 1, 1, 0, 0, 0)


def metadata(project: dict[str, Any], version: str) -> str:
    """The file METADATA."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Summary: {project['description']}", f"License-Expression: {project['license']}"]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {line}" for line in project["classifiers"]]
    lines += [f"Requires-Dist: {line}" for line in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    return "\n".join(lines) + "\n"


def entry_points(project: dict[str, Any]) -> str:
    """The file entry_points.txt: scripts, and what other packages look for."""
    text = "[console_scripts]\n" + "".join(f"{name} = {where}\n" for name, where in project["scripts"].items())
    for group, points in project.get("entry-points", {}).items():
        text += f"\n[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in points.items())
    return text


def contents(sources: pathlib.Path, stage: pathlib.Path) -> dict[str, bytes]:
    """Name in the wheel and bytes of every file of the package."""
    files: dict[str, bytes] = {}
    # The demo runs the kernels of `make demo`: there is one copy of them.
    demo = sources.parent / "test" / "demo"
    files |= {f"commsir/_demo/{path.name}": path.read_bytes() for path in sorted(demo.glob("*.mlir"))}
    # A torch for which no backend is prebuilt has it built on demand, and a torchcomms always.
    for pattern in (
        "runtime/torch/*.h",
        "runtime/torch/c10d/*.h",
        "runtime/torch/c10d/*.cpp",
        "runtime/torch/torchcomms/*.h",
        "runtime/torch/torchcomms/*.cpp",
        "runtime/capi/commsir.h",
        "runtime/support/Rendezvous.h",
    ):
        for path in sorted(sources.parent.glob(pattern)):
            files[f"commsir/_source/{path.relative_to(sources.parent).as_posix()}"] = path.read_bytes()
    for root in (sources, stage):
        for path in sorted((root / "commsir").rglob("*")):
            wanted = path.suffix in (".py", ".pyi", ".so", ".mlir", ".json", ".h", ".cpp") or path.name == "py.typed"
            if path.is_file() and wanted and "__pycache__" not in path.parts:
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


def digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def read_project(sources: pathlib.Path) -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    project: dict[str, Any] = tomllib.loads((sources / "pyproject.toml").read_text())["project"]
    return project


def information(project: dict[str, Any], version: str, tag: str, license_file: pathlib.Path) -> dict[str, bytes]:
    """Name in the wheel and bytes of every file of its .dist-info, without RECORD."""
    pure = "true" if tag.endswith("-any") else "false"
    wheel = f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
    files = {
        "METADATA": metadata(project, version).encode(),
        "WHEEL": wheel.encode(),
        "entry_points.txt": entry_points(project).encode(),
        "licenses/LICENSE": license_file.read_bytes(),
    }
    return {f"{project['name']}-{version}.dist-info/{name}": data for name, data in files.items()}


def pack(files: dict[str, bytes], name: str, tag: str, out: pathlib.Path) -> pathlib.Path:
    """Writes the wheel NAME-TAG.whl into the folder `out`, with a RECORD of its files."""
    path = f"{name}.dist-info/RECORD"
    record = "".join(f"{file},{digest(data)},{len(data)}\n" for file, data in files.items())
    made = out / f"{name}-{tag}.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file, data in {**files, path: f"{record}{path},,\n".encode()}.items():
            entry = zipfile.ZipInfo(file, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, compresslevel=6)
    return made


# ----------------------------------------------------------------------------------------------------------------------
# The build backend: what pip calls, in the folder of pyproject.toml
# ----------------------------------------------------------------------------------------------------------------------


def checkout_version(root: pathlib.Path) -> str:
    """The version that CMakeLists.txt gives the project."""
    found = re.search(r"^project\(CommsIR VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text(), re.M)
    if not found:
        raise RuntimeError(f"{root / 'CMakeLists.txt'} has no line project(CommsIR VERSION ...)")
    return found[1]


def path_line(folder: pathlib.Path) -> str:
    """The line of a .pth file that puts `folder` on Python's path, in ASCII.

    Before Python 3.12, Python decodes .pth files by the locale and does not start if that fails, as in the locale C.
    """
    name = os.fsencode(folder)
    return f"{folder}\n" if name.isascii() else f"import os, sys; sys.path.append(os.fsdecode({name!r}))\n"


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel that puts this folder on Python's path."""
    sources = pathlib.Path(__file__).resolve().parent
    project, version = read_project(sources), checkout_version(sources.parent)
    files = {f"__editable__.{project['name']}.pth": path_line(sources).encode()}
    files |= information(project, version, EDITABLE_TAG, sources.parent / "LICENSE")
    return pack(files, f"{project['name']}-{version}", EDITABLE_TAG, pathlib.Path(wheel_directory)).name


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """pip asks for it where -e is missing."""
    raise RuntimeError(
        "CMake builds the libraries of the wheel: run `make wheel` and install build/wheel/commsir-*.whl, or install "
        "the checkout itself: pip install -e frontend"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    for name in ("sources", "stage", "out"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()
    project = read_project(options.sources)
    files = contents(options.sources, options.stage)
    files |= information(project, options.version, TAG, options.sources.parent / "LICENSE")
    for old in options.out.glob("commsir-*.whl"):
        old.unlink()
    made = pack(files, f"{project['name']}-{options.version}", TAG, options.out)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, {len(files) + 1} files")


if __name__ == "__main__":
    main()
