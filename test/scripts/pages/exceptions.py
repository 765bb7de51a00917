"""Commands and blocks of pages that the tests do not run, each with its reason. Another check covers each of them.

commands.py looks up the flags, files and targets of commands. An entry that matches nothing is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Why a command or a block is not run.
REASONS = {
    "gpu": "needs NVIDIA GPUs",
    "install": "installs packages, or needs a network",
    "slow": "takes a minute: `run-doc.py --slow` runs it, as typed, and nothing else of the page",
    "long": "takes minutes; the test or the make target that does it is one of its own",
    "elsewhere": "another test runs it: `by` is that test, which names the page",
    "figure": "a drawing, or the syntax of something: no code and no output",
    "quoted": "a message that needs a GPU, or that another test brings about: `by` is the file that has `words`",
}


@dataclass(frozen=True)
class NotRun:
    """`starts`: how the command begins, or the block. `by` has `words`, or else the name of the page."""

    page: str
    starts: str
    reason: str
    by: str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.reason not in REASONS or (self.reason in ("elsewhere", "quoted") and not self.by):
            raise ValueError(f"{self.page}, '{self.starts}': the reason is one of {', '.join(REASONS)}; two need `by`")


#: Messages of groups on GPUs, by FakeCuda in the tests.
_GROUP_FAILURE = "runtime/group/cuda/GroupFailure.cpp"
_GPU_WORDS = ("gave up waiting after", "has not begun this launch")

NOT_RUN: list[NotRun] = [
    NotRun("README.md", " comms.all_reduce …", "figure"),
    NotRun("Python.md", "make wheel", "long", by="test/python/package/CMakeLists.txt", words=("wheel",)),
    NotRun("Python.md", "pip install", "install"),
    NotRun("Torch.md", "commsir: rank 0: all_reduce", "quoted", by="runtime/group/Process.cpp", words=("has died",)),
    NotRun("Torch.md", "torchrun --standalone", "slow"),
    NotRun("Torch.md", "torchrun --nproc-per-node 4 -m commsir.bench", "slow"),
    NotRun("TorchCompile.md", "torchrun", "slow"),
    NotRun(
        "TorchCompile.md",
        "all_reduce of 1x8x32",
        "quoted",
        by="frontend/commsir/torch/region_builder.py",
        words=("is not among the operations that regions hold",),
    ),
    NotRun("GroupsReference.md", "cmake --preset tsan", "long", by="CMakePresets.json", words=("tsan",)),
    NotRun("CApi.md", "cmake", "elsewhere", by="test/integration/find-package.sh"),
    NotRun("Debugging.md", "rank 0, launch 7", "quoted", by=_GROUP_FAILURE, words=_GPU_WORDS),
    NotRun("Gpu.md", "rank 0, launch 7", "quoted", by=_GROUP_FAILURE, words=_GPU_WORDS),
    NotRun("Gpu.md", "comms-run sum.mlir --target cuda", "gpu"),
    NotRun("Gpu.md", "comms-bench --ranks 4", "gpu"),
    NotRun("Gpu.md", "torchrun", "gpu"),
    NotRun("Gpu.md", "make test-gpu", "gpu"),
    NotRun("Gpu.md", "make bundle", "long", by="test/integration/bundle.sh", words=("bundle",)),
    NotRun(
        "Groups.md",
        "ranks disagree in step",
        "quoted",
        by="runtime/group/CpuSteps.cpp",
        words=("ranks disagree in step",),
    ),
    NotRun(
        "GroupsReference.md",
        "rank 0 of group 'world' got no signal from",
        "quoted",
        by="runtime/group/CpuOneSided.cpp",
        words=("got no signal from",),
    ),
    NotRun("Benchmarking.md", "comms-bench --op all_reduce --sizes", "gpu"),
    NotRun("Benchmarking.md", "comms-bench --op all_reduce_rmsnorm", "gpu"),
    NotRun("Benchmarking.md", "comms-bench --compare", "gpu"),
    NotRun("Benchmarking.md", "comms-bench --acceptance", "gpu"),
    NotRun("Benchmarking.md", "comms-bench --tune", "gpu"),
    NotRun("Benchmarking.md", "torchrun", "gpu"),
    NotRun("AddACollective.md", "COMMSIR_COLLECTIVE(all_reduce", "figure"),
    NotRun("Spec.md", "expression = sum", "figure"),
    NotRun("AddAProtocol.md", "//===- Mailbox.cpp", "elsewhere", by="test/lowering/lower-channels/add-a-protocol.test"),
    NotRun("AddAProtocol.md", "cmake --build", "long"),
    NotRun(
        "AddAnAlgorithm.md", "//===- Star.cpp", "elsewhere", by="test/lowering/expand-collectives/add-an-algorithm.test"
    ),
    NotRun("AddATarget.md", "cmake --build", "long"),
    NotRun("AddAnAlgorithm.md", "cmake --build", "long"),
    NotRun("AddAnAlgorithm.md", "lit -v", "elsewhere", by="test/lowering/expand-collectives/add-an-algorithm.test"),
]


@dataclass(frozen=True)
class StandIn:
    """A command of the page is run with `run` in the place of what the regular expression `shown` fits."""

    page: str
    shown: str
    run: str


#: What a page has its reader add to CommsIR is not there: something like it takes its place. `make demo` builds.
STAND_INS: list[StandIn] = [
    StandIn("AddAnAlgorithm.md", r"\bstar\b", "two_shot"),
    StandIn("AddAProtocol.md", r"\bmailbox\b", "push"),
    StandIn("README.md", r"^make demo$", "python test/demo/demo.py --bin build/bin --gpus 0"),
]

#: Files that a page has its reader write.
WRITTEN = {
    "AddAnAlgorithm.md": {"lowering/collectives/algorithm/Star.cpp", "test/lowering/expand-collectives/star.mlir"},
    "AddAProtocol.md": {"lowering/channels/protocol/Mailbox.cpp", "test/lowering/lower-channels/mailbox.mlir"},
}

#: Names that a page makes up, or that belong to programs and libraries that no source here calls.
INVENTED: dict[str, set[str]] = {
    "AddATarget.md": {"getROCDLNumerics"},
    "AddAnAlgorithm.md": {"Star.cpp", "getStarAlgorithm"},
    "Editors.md": {"server_path"},
    "GroupsReference.md": {"cuMemUnmap", "cuModuleUnload", "cuStreamWaitValue64"},
    "Spec.md": {"dl_spec", "scaling_extf", "scaling_truncf"},
    "TorchReference.md": {"allocate_tensor", "new_window", "supports_window", "tensor_register"},
}
