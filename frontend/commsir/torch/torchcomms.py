"""torchcomms.new_comm("commsir", …): loaded by torchcomms itself, by the entry point torchcomms.backends.

Calls go to a process group of commsir.torch, so that both have one set of paths and counts. Where torchcomms' headers
are at hand (they are part of its sources) it gets a backend in C++ (runtime/torch/torchcomms), compiled at the first
communicator. Else it gets a class in Python, by `register_backend(name, class)`, which lacks what that registration
does not reach: batches of sends and receives, the factor of PREMUL_SUM, futures that end by themselves, abort. Neither
has windows or reconfigure. Run against torchcomms of 21 August 2026 (59426ba4b), built from source, and its own tests.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import warnings
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from commsir import __version__
from commsir._switches import is_off
from commsir.torch import backend, extension

dist: Any = torch.distributed

__all__ = ["Work", "make_backend", "register", "try_out"]

_REDUCTIONS = {"SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG"}


class Work:
    """torchcomms' interface to one of CommsIR's works."""

    def __init__(self, works: Sequence[Any]) -> None:
        self._works = [work for work in works if work is not None]

    def wait(self) -> None:
        """Orders what follows after the call; on the CPU, waits."""
        for work in self._works:
            work.wait()

    wait_blocking = host_synchronize = wait

    def is_completed(self) -> bool:
        """Whether the whole call has ended."""
        return all(work.is_completed() for work in self._works)


def _is_from_torch() -> bool:
    """Whether torch.distributed, or DDP within a backward pass, made the current call of a backend's method. torch's
    C++ code would wait for a future that torchcomms completes only in Work.wait, and would drop the work without the
    GIL."""
    frame = sys._getframe()
    while frame and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is None or str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _reduction(op: Any) -> Any:
    """torch.distributed's reduction for torchcomms' (a ReduceOp, whose type has the name), of the same names."""
    kind = getattr(op, "type", op)
    name = getattr(kind, "name", str(kind)).rpartition(".")[2].upper()
    if name == "PREMUL_SUM":
        raise ValueError(
            "commsir: torchcomms does not tell Python the factor of PREMUL_SUM; multiply the tensor by it first, and"
            " use SUM (with FSDP2: model.set_force_sum_reduction_for_comms(True))"
        )
    if name not in _REDUCTIONS:
        raise ValueError(f"commsir: no reduction {op}; use one of {', '.join(sorted(_REDUCTIONS))}")
    return getattr(dist.ReduceOp, name)


#: By address and port.
_stores: dict[tuple[str, int], Any] = {}


def _store(name: str, timeout: timedelta | None = None) -> Any:
    """The store of torchrun's environment, for a communicator name."""
    port = int(os.environ["MASTER_PORT"])
    rank = int(os.environ["RANK"])
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    # One for all communicators: a port is served once.
    place = (os.environ["MASTER_ADDR"], port)
    if place not in _stores:
        limit = {} if timeout is None else {"timeout": timeout}
        _stores[place] = dist.TCPStore(*place, is_master=rank == 0 and not agent, **limit)
    return dist.PrefixStore(f"commsir/torchcomms/{name}", _stores[place])


def _device(asked: torch.device, rank: int) -> torch.device:
    """Without an index, a rank's GPU is the one of its number, and the current one from then on: so it is with
    torchcomms' backend for NCCL."""
    if asked.type != "cuda" or asked.index is not None:
        return asked
    own = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(own)
    return own


class _Calls:
    """One rank of a communicator: what torchcomms calls."""

    def init(self, device: torch.device, name: str, options: Any = None) -> None:
        """Bootstraps from a store only; the first call is collective."""
        settings = getattr(self, "_settings", None) or backend.Settings(
            _store(name, getattr(options, "timeout", None))
            if getattr(options, "store", None) is None
            else options.store,
            int(os.environ.get("RANK", "0")),
            int(os.environ.get("WORLD_SIZE", "1")),
            getattr(options, "timeout", None) or timedelta(minutes=10),
            name,
        )
        self._device, self._name, self._options = _device(device, settings.rank), name, options
        self._settings, self._group = settings, backend.make_group(settings)
        #: How often ranks have been split off under a name.
        self._splits: dict[tuple[str, str], int] = {}

    def finalize(self) -> None:
        """Waits for all calls and ends."""
        self._group.shutdown()

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of future calls."""
        self._group.set_timeout(timeout)

    def get_rank(self) -> int:
        return int(self._settings.rank)

    def get_size(self) -> int:
        return int(self._settings.size)

    def get_backend_name(self) -> str:
        return "commsir"

    def get_comm_name(self) -> str:
        return str(self._name)

    def get_options(self) -> Any:
        return self._options

    def get_device(self) -> torch.device:
        return self._device

    def _finish(self, work: Work, async_op: bool) -> Work | None:
        """None: the call is over, or what follows in the stream is ordered after it."""
        if async_op:
            return work
        work.wait()
        return None

    def _done(self, work: Any, async_op: bool) -> Work | None:
        """Future of a collective."""
        return self._finish(Work([work]), async_op and not _is_from_torch())

    def _begun(self, work: Any, async_op: bool) -> Work | None:
        """Future of a send or receive: its peer may call later, and no code asks for its future."""
        return self._finish(Work([work]), async_op)

    def _opts(self, kind: Any, op: Any = None, root: int | None = None) -> Any:
        opts = kind()
        if op is not None:
            opts.reduceOp = _reduction(op)
        if root is not None:
            opts.rootRank = root
        return opts

    def send(self, tensor: Any, dst: int, async_op: bool = False, options: Any = None) -> Work | None:
        return self._begun(self._group.send([tensor], dst, 0), async_op)

    def recv(self, tensor: Any, src: int, async_op: bool = False, options: Any = None) -> Work | None:
        return self._begun(self._group.recv([tensor], src, 0), async_op)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool = False, options: Any = None) -> Work | None:
        """Sends and receives that begin together: {type, tensor, peer}. torchcomms calls none of Python's."""
        works = []
        for op in ops:
            sends = "SEND" in str(getattr(op, "type", "")).upper()
            works.append((self._group.send if sends else self._group.recv)([op.tensor], op.peer, 0))
        return self._finish(Work(works), async_op)

    def broadcast(self, tensor: Any, root: int, async_op: bool = False, options: Any = None) -> Work | None:
        opts = self._opts(dist.BroadcastOptions, root=root)
        return self._done(self._group.broadcast([tensor], opts), async_op)

    def all_reduce(self, tensor: Any, op: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.allreduce([tensor], self._opts(dist.AllreduceOptions, op)), async_op)

    def reduce(self, tensor: Any, root: int, op: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.reduce([tensor], self._opts(dist.ReduceOptions, op, root)), async_op)

    def all_gather(self, outputs: Any, tensor: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.allgather([outputs], [tensor]), async_op)

    all_gather_v = all_gather

    def all_gather_single(self, output: Any, input: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group._allgather_base(output, input), async_op)

    def reduce_scatter(
        self, output: Any, inputs: Any, op: Any, async_op: bool = False, options: Any = None
    ) -> Work | None:
        opts = self._opts(dist.ReduceScatterOptions, op)
        return self._done(self._group.reduce_scatter([output], [inputs], opts), async_op)

    reduce_scatter_v = reduce_scatter

    def reduce_scatter_single(
        self, output: Any, input: Any, op: Any, async_op: bool = False, options: Any = None
    ) -> Work | None:
        opts = self._opts(dist.ReduceScatterOptions, op)
        return self._done(self._group._reduce_scatter_base(output, input, opts), async_op)

    def all_to_all_single(self, output: Any, input: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.alltoall_base(output, input, [], []), async_op)

    def all_to_all_v_single(
        self,
        output: Any,
        input: Any,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        async_op: bool = False,
        options: Any = None,
    ) -> Work | None:
        work = self._group.alltoall_base(output, input, list(output_splits), list(input_splits))
        return self._done(work, async_op)

    def all_to_all(self, outputs: Any, inputs: Any, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.alltoall(outputs, inputs), async_op)

    def barrier(self, async_op: bool = False, options: Any = None) -> Work | None:
        return self._done(self._group.barrier(), async_op)

    def scatter(self, output: Any, inputs: Any, root: int, async_op: bool = False, options: Any = None) -> Work | None:
        opts = self._opts(dist.ScatterOptions, root=root)
        lists = [inputs] if root == self.get_rank() else []
        return self._done(self._group.scatter([output], lists, opts), async_op)

    def gather(self, outputs: Any, input: Any, root: int, async_op: bool = False, options: Any = None) -> Work | None:
        opts = self._opts(dist.GatherOptions, root=root)
        lists = [outputs] if root == self.get_rank() else []
        return self._done(self._group.gather(lists, [input], opts), async_op)

    def split(self, ranks: Sequence[int], name: str, options: Any = None) -> Any:
        """A communicator of these ranks, of which the caller is one; None where there are none."""
        if not ranks:
            return None
        every = range(self.get_size())
        if len(set(ranks)) < len(ranks) or not set(ranks) <= set(every) or self.get_rank() not in ranks:
            raise RuntimeError(
                f"commsir: rank {self.get_rank()} of {self._name} (ranks 0 to {every[-1]}) cannot be in a part of"
                f" ranks {list(ranks)}: name each once, including the caller, or none if the caller is in no part"
            )
        own = self._settings
        # Others may be called the same, of other ranks and of these.
        part = type(self)()
        members = hashlib.sha1(",".join(map(str, ranks)).encode()).hexdigest()
        turn = self._splits[name, members] = self._splits.get((name, members), 0) + 1
        place = f"{name}.{members}.{turn}"
        part._settings = backend.Settings(
            dist.PrefixStore(f"split/{place}", own.store),
            list(ranks).index(own.rank),
            len(ranks),
            own.timeout,
            f"{own.name}.{place}",
        )
        part.init(self._device, name, options)
        return part


def make_backend(base: type[Any]) -> type[Any]:
    """The class to register, over torchcomms' own base class."""

    class Backend(_Calls, base):  # type: ignore[misc]
        """One rank of a communicator."""

    return Backend


def _sources(package: Path) -> Path:
    """The folder with torchcomms' headers, of the release that is installed in `package`."""
    header = "TorchCommBackend.hpp"
    named = os.environ.get("COMMSIR_TORCHCOMMS_SOURCE")
    folder = Path(named).resolve() / "comms" / "torchcomms" if named else package
    if not (folder / header).is_file():
        raise RuntimeError(
            f"{folder} has no {header}: let COMMSIR_TORCHCOMMS_SOURCE name the checkout that torchcomms is from"
        )
    ours, theirs = (place / "_comms.pyi" for place in (folder, package))
    if not theirs.is_file() or ours.read_bytes() != theirs.read_bytes():
        raise RuntimeError(f"{folder} is of another torchcomms than the one that is installed in {package}")
    return folder


#: As a program of one rank, which registers nothing by itself.
_TRIAL = """
import os, sys
os.environ.update(RANK="0", WORLD_SIZE="1", COMMSIR_TORCHCOMMS="0")
from commsir.torch.torchcomms import try_out
try_out(sys.argv[1])
"""


def _extension(package: Path) -> extension.Extension:
    """Builds the C++ backend for the torchcomms that is installed in `package`."""
    library = package / "libtorchcomms.so"
    if not library.is_file():
        raise RuntimeError(f"{package} has no libtorchcomms.so")
    return extension.Extension(
        "libcommsir_torchcomms",
        ["torch/torchcomms/*.cpp", "torch/c10d/Capture.cpp"],
        ["torch/*.h", "torch/torchcomms/*.h", "torch/c10d/Capture.h"],
        # Headers name each other as comms/torchcomms/…, however the package's folder is called.
        links=[("comms/torchcomms", _sources(package), "**/*.hpp")],
        libraries=[library],
        trial=_TRIAL,
        what="the backend for torchcomms",
    )


def try_out(path: str) -> None:
    """Tests an extension file with calls of one rank, because it may not match the installed torchcomms."""
    import torchcomms  # type: ignore[import-not-found, unused-ignore]

    backend.load_module()
    module = extension.load("libcommsir_torchcomms", Path(path))
    _register(module, "commsir_trial")
    comm = torchcomms.new_comm("commsir_trial", torch.device("cpu"), name="trial", store=dist.HashStore())
    assert (comm.get_rank(), comm.get_size()) == (0, 1)
    tensor = torch.ones(4)
    comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True).wait()
    comm.finalize()
    module.end()


def _in_cpp(package: Path) -> Any:
    """Returns the extension. Raises RuntimeError, ImportError or OSError with the reason if it is not available."""
    if backend.load_module() is None:
        raise RuntimeError("this torch has no C++ backend of CommsIR")
    return _extension(package).build()


def _register(module: Any, name: str) -> None:
    module.register(name, _store, lambda *made: backend.make(backend.Settings(*made)), _is_from_torch, __version__)


def register() -> None:
    """Registers with the installed torchcomms.

    COMMSIR_TORCHCOMMS says how: "cpp", "python", or "0", not at all; the default is "cpp" where it can be had.
    """
    import torchcomms  # type: ignore[import-not-found, unused-ignore]

    wanted = os.environ.get("COMMSIR_TORCHCOMMS", "")
    if wanted not in ("", "cpp", "python"):
        raise ValueError(f'COMMSIR_TORCHCOMMS is "{wanted}"; say cpp, python or 0')
    if wanted != "python":
        try:
            module = _in_cpp(Path(torchcomms.__file__).parent)
        except (RuntimeError, ImportError, OSError) as error:
            why = f"commsir: there is no backend in C++ for torchcomms: {error}"
            if wanted:
                raise RuntimeError(why) from error
            warnings.warn(f"{why}. The one in Python is used, without batches of sends and receives", stacklevel=2)
        else:
            _register(module, "commsir")
            atexit.register(module.end)
            return
    if not hasattr(torchcomms, "register_backend"):
        raise RuntimeError(
            "commsir: this torchcomms takes no backends in Python; install a newer one, "
            "or use torch.distributed with the backend commsir"
        )
    torchcomms.register_backend("commsir", make_backend(torchcomms.TorchCommBackend))


if not is_off("COMMSIR_TORCHCOMMS"):
    try:
        register()
    except ModuleNotFoundError as error:
        if error.name != "torchcomms":
            raise
