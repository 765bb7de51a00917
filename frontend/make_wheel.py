"""Packs the wheel: the Python sources, the libraries that CMake has put into the stage, and the metadata of
pyproject.toml. The same input gives the same bytes.

Usage: make_wheel.py --version 0.1.0 --sources frontend --stage build/wheel/stage --out build/wheel
"""

import argparse
import base64
import hashlib
import pathlib
import tomllib
import zipfile
from typing import Any

#: glibc 2.35, which the libraries are held to by a test.
TAG = "py3-none-manylinux_2_35_x86_64"
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
        "runtime/group/Meeting.h",
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    for name in ("sources", "stage", "out"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()
    project = tomllib.loads((options.sources / "pyproject.toml").read_text())["project"]
    name = f"{project['name']}-{options.version}"
    files = contents(options.sources, options.stage)
    info = f"{name}.dist-info"
    files[f"{info}/METADATA"] = metadata(project, options.version).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/entry_points.txt"] = entry_points(project).encode()
    licence = options.sources.parent / "LICENSE"
    files[f"{info}/licenses/LICENSE"] = licence.read_bytes()
    record = "".join(f"{path},{digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    for old in options.out.glob("commsir-*.whl"):
        old.unlink()
    made = options.out / f"{name}-{TAG}.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, compresslevel=6)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, {len(files)} files")


if __name__ == "__main__":
    main()
