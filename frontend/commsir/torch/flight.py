"""The calls of process groups as torch's flight recorder writes them, for torch's own analyzer.

    commsir.torch.dump_flight_recorder("traces/rank_")        # on every rank
    python -m torch.distributed.flight_recorder.fr_trace traces --prefix rank_

torch exports no way to add to its own recorder, which `_dump_fr_trace` shows.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from commsir import _files

dist: Any = torch.distributed

__all__ = ["dump_flight_recorder", "flight_recorder"]

#: The version of the format that is written: torch 2.11's.
_VERSION = "2.10"
#: What the analyzer calls what we have another name for.
_NAMES = {
    "all_reduce_sparse": "all_reduce",
    "all_reduce_coalesced": "allreduce_coalesced",
    "all_gather_into_tensor": "_all_gather_base",
    "all_gather_coalesced": "ALLGATHER_coalesced",
    "gather_into_tensor": "gather",
    "reduce_scatter_tensor": "_reduce_scatter_base",
    "all_to_all_single": "all_to_all",
    "barrier": "all_reduce_barrier",
}
_SAME = {
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter",
    "reduce_scatter_tensor_coalesced",
    "gather",
    "scatter",
    "all_to_all",
}
#: Where the numbers of sends and receives begin.
_TRANSFERS = 1 << 32
_STATES = {"queued": "scheduled", "begun": "started", "done": "completed", "failed": "started"}


def _profiling_name(call: dict[str, Any], rank: int) -> str:
    """Returns NCCL's name for a call, or an empty string if the analyzer does not know the kind."""
    name, peer = call["name"], call["peer"]
    if name == "send":
        return f"nccl:send {rank}->{peer}"
    if name == "recv":
        return f"nccl:recv {rank}<-{peer}"
    known = _NAMES.get(name, name if name in _SAME else "")
    return f"nccl:{known}" if known else ""


def _entry(call: dict[str, Any], rank: int, group: tuple[str, str], counts: dict[str, int]) -> dict[str, Any]:
    # A barrier is one number summed up.
    token = [((1,), "Int")] if call["name"] == "barrier" else []
    inputs, outputs = call["inputs"] or token, call["outputs"] or token
    # The analyzer takes neighbors of one number, collective or not, for a batch.
    number = _TRANSFERS + call["sequence"] if call["is_p2p"] else call["sequence"]
    counts["p2p" if call["is_p2p"] else "collective"] = number
    done = call["state"] == "done"
    return {
        "pg_id": counts["group"],
        "process_group": group,
        "collective_seq_id": counts["collective"],
        "p2p_seq_id": counts["p2p"],
        "op_id": counts["collective"] + counts["p2p"] - _TRANSFERS,
        "profiling_name": _profiling_name(call, rank),
        "time_created_ns": call["created"],
        "duration_ms": (call["ended"] - call["begun"]) / 1e6 if done else None,
        "input_sizes": [list(sizes) for sizes, _ in inputs],
        "input_dtypes": [dtype for _, dtype in inputs],
        "output_sizes": [list(sizes) for sizes, _ in outputs],
        "output_dtypes": [dtype for _, dtype in outputs],
        "state": _STATES[call["state"]],
        "time_discovered_started_ns": call["begun"] or None,
        "time_discovered_completed_ns": call["ended"] if done else None,
        # What is over and not completed has failed.
        "retired": call["state"] in ("done", "failed"),
        "timeout_ms": call["timeout_ms"],
        "is_p2p": call["is_p2p"],
        "frames": [],
    }


def flight_recorder() -> dict[str, Any]:
    """The last calls of all groups of this process, in the format of torch's flight recorder.

    Each group keeps TORCH_FR_BUFFER_SIZE calls (2000). Calls of one's own names, and receives from any rank, are left
    out: the analyzer knows neither. Calls have no stack frames.
    """
    from commsir.torch import backend

    entries: list[dict[str, Any]] = []
    config: dict[str, dict[str, str]] = {}
    status: dict[str, dict[str, str]] = {}
    for number, group in enumerate(dist.distributed_c10d._world.pg_map):
        calls = backend.calls_of(group)
        if calls is None:
            continue
        name, description = str(group.group_name), str(group.group_desc)
        ranks = dist.get_process_group_ranks(group)
        config[name] = {"name": name, "desc": description, "ranks": str(ranks)}
        counts = {"group": number, "collective": 0, "p2p": _TRANSFERS}
        made = [_entry(call, group.rank(), (name, description), counts) for call in calls]
        entries += [entry for entry in made if entry["profiling_name"]]
        ended = [entry for entry in made if entry["state"] == "completed" and not entry["is_p2p"]]
        status[str(number)] = {
            "last_enqueued_collective": str(counts["collective"]),
            "last_started_collective": str(
                max((e["collective_seq_id"] for e in made if e["state"] != "scheduled"), default=-1)
            ),
            "last_completed_collective": str(max((e["collective_seq_id"] for e in ended), default=-1)),
        }
    entries.sort(key=lambda entry: int(entry["time_created_ns"]))
    for number, entry in enumerate(entries):
        entry["record_id"] = number
    return {"version": _VERSION, "entries": entries, "pg_config": config, "pg_status": status}


def dump_flight_recorder(prefix: str | os.PathLike[str]) -> Path:
    """Writes `flight_recorder()` to the file that torch's analyzer reads: `prefix` followed by this process's rank."""
    path = Path(f"{os.fspath(prefix)}{dist.get_rank()}")
    _files.make_folders(path.parent)
    return _files.write(path, pickle.dumps(flight_recorder()))
