"""What a process group in Python has for one kind of device: CommsIR's group, and what calls are delegated to.

All of it is made at the first call that needs it, from the store alone.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, capi
from commsir.torch.call import Call
from commsir.torch.rendezvous import STORE_ERRORS, Met, look

dist: Any = torch.distributed

__all__ = ["Side"]

#: Seconds that a rank that has failed waits for what the others were calling.
_GOSSIP = 3.0
#: How long ranks that have met get at least to make their group.
_AFTER_MEETING = timedelta(seconds=5)


def _differing(said: list[str]) -> str:
    """Which implementations ("C++ WHY") ranks have, where these differ; empty: all have one."""
    ranks: dict[str, list[str]] = {}
    for rank, text in enumerate(said):
        one = text.partition(" ")[0]
        # One that does not say what it is.
        ranks.setdefault(one if one in ("C++", "Python") else "of another version", []).append(str(rank))
    if len(ranks) <= 1:
        return ""
    texts = [f"{one} on rank{'s' * (len(ranks[one]) > 1)} {', '.join(ranks[one])}" for one in sorted(ranks)]
    return (
        f"the backend is {', '.join(texts)}, and these do not work together: install one version of CommsIR and torch "
        "on all ranks, or set COMMSIR_TORCH_BACKEND=python on all of them"
    )


class Side:
    """`device` is "cpu" or "cuda"; `stopped` is asked, while ranks meet, why to give up (empty: go on)."""

    def __init__(self, settings: backend.Settings, device: str, stopped: Callable[[], str]) -> None:
        self._settings, self._device, self._stopped = settings, device, stopped
        self._make_delegate = backend.delegate(settings.timeout)
        self._lock = threading.RLock()
        #: Names what this group alone has in the store; empty: ranks have not met.
        self._epoch = ""
        #: The first rank's reason to have no library.
        self._without_library = ""
        #: CommsIR's group, or why there is none; None: not made.
        self._group: capi.Group | str | None = None
        #: Held while the group is used by threads that may come when it ends, and where it is taken away: by those that
        #: are done at once, and by those that explain a failure, for which an abort does not wait.
        self._ending, self._polling = threading.RLock(), threading.RLock()
        self._last_counts: dict[str, Any] | None = None
        self._other: Any = None
        #: NCCL for this rank and one peer. Who makes one, with the lock of that pair, waits for the peer, and keeps no
        #: other call of the group waiting.
        self._pairs: dict[int, Any] = {}
        self._making: dict[int, threading.Lock] = {}
        #: Gloo has been ended.
        self._dropped = False
        #: Op, reduction and type of what CommsIR has.
        self._had: set[tuple[bytes, bytes, bytes]] = set()
        #: Ranks have tried to meet, in vain.
        self.failed = False
        #: Which call has ended the group, and how; empty: none has.
        self.ended = ""
        #: The GPU of the first call, which stays that of all.
        self._ordinal: int | None = None

    def check_gpu(self, name: str, ordinal: int) -> None:
        """Raises where a call is on another GPU than those before it."""
        with self._lock:
            if self._ordinal is None:
                self._ordinal = ordinal
        if self._ordinal != ordinal:
            own = f"cuda:{self._ordinal}"
            raise RuntimeError(
                f"commsir: {name} got tensors on cuda:{ordinal}, but process group {self._settings.name} works on "
                f'{own}, where its first call was; move the tensors there (tensor.to("{own}")), or make another group '
                f"for cuda:{ordinal}. Call torch.cuda.set_device before the first call to choose the GPU of what is "
                "made without one"
            )

    def store(self, what: str) -> Any:
        """A place in the store where nothing of earlier groups is; ranks have met."""
        return self._place(self._settings.own_store(), self._epoch, what)

    def gpu(self) -> int:
        """Its number: that of the first call, before it the current one."""
        return torch.cuda.current_device() if self._ordinal is None else self._ordinal

    # Meeting.

    def _has_stopped(self) -> bool:
        return bool(self._stopped())

    def _place(self, store: Any, epoch: str, what: str) -> Any:
        """A place in the store where nothing of earlier groups is."""
        return dist.PrefixStore(f"commsir/{self._device}/{epoch}/{what}", store)

    def _meet(self, timeout: timedelta) -> None:
        """Ranks agree on an epoch, that their backends are of one implementation, and on whether all have the
        library."""
        if self._epoch:
            return
        says = "Python " + ("" if backend.library() else "libcommsir.so was not found")
        met = self._settings.meet(f"commsir/{self._device}/meeting", timeout, self._has_stopped, says)
        self.failed = not met.epoch
        epoch = self._epoch_of(met, timeout, "the first meeting")
        self._settings.met = True
        if apart := _differing(met.said):
            self.failed = True
            raise dist.DistBackendError(
                f"commsir: rank {self._settings.rank}: process group {self._settings.name}: {apart}"
            )
        self._epoch = epoch
        reasons = [said.partition(" ")[2] for said in met.said]
        lacking = next(((rank, why) for rank, why in enumerate(reasons) if why), None)
        self._without_library = f"{lacking[1]} (rank {lacking[0]})" if lacking else ""

    def _epoch_of(self, met: Met, timeout: timedelta, what: str) -> str:
        """Of those who have met; raises where they have not, which `what` names."""
        if met.epoch:
            return met.epoch
        late = "" if met.stopped else f"Timed out waiting {round(timeout.total_seconds() * 1000)}ms for "
        why = (self._stopped() if met.stopped else "") or met.failure
        raise dist.DistBackendError(
            f"commsir: rank {self._settings.rank}: {late}{what} of process group {self._settings.name}: {why}"
        )

    def _agree(self, why: str, timeout: timedelta) -> str:
        """The first rank's reason, if any has one: all take the same path."""
        store = self.store("agree")
        store.set(f"{self._settings.rank}", f"no {why}" if why else "yes")
        end = time.monotonic() + timeout.total_seconds()
        for rank in range(self._settings.size):
            heard = look(store, f"{rank}", max(0.0, end - time.monotonic()), self._has_stopped)
            if heard is None:
                why = self._stopped()
                raise dist.DistStoreError(
                    f"rank {rank} has not come in {round(timeout.total_seconds() * 1000)}ms{f' ({why})' if why else ''}"
                )
            if (said := heard.decode(errors="replace")) != "yes":
                return f"{said[3:]} (rank {rank})"
        return ""

    # CommsIR's group.

    def group(self, timeout: timedelta) -> capi.Group | str:
        """The group, or why there is none. Collective when it is new."""
        with self._lock:
            if self._group is None:
                self._group = self._make_group(timeout)
            return self._group

    def _make_group(self, timeout: timedelta) -> capi.Group | str:
        begun = time.monotonic()

        def left() -> timedelta:
            """What is left of `timeout`, and a little for ranks that have met late."""
            return max(timeout - timedelta(seconds=time.monotonic() - begun), min(timeout, _AFTER_MEETING))

        self._meet(timeout)
        if self._without_library:
            return self._without_library
        made: capi.Group | None = None
        why = ""
        if self._device != "cpu":
            self._ordinal = self.gpu()  # From now on, whichever is current.
        try:
            made = capi.Group(
                backend.library(),
                self.store("group"),
                self._settings.rank,
                self._settings.size,
                name=f"{self._settings.name}.{self._device}",
                timeout=left(),
                device=-1 if self._device == "cpu" else self.gpu(),
            )
            made.set_timeout(timeout)
        except capi.CommsIRError as error:
            why = f"no group: {error}"
        try:
            why = self._agree(why, left())
        except STORE_ERRORS as error:
            # Others may have agreed, and go on: there is no second time.
            self.failed = True
            if made:
                made.drop()
            raise dist.DistBackendError(
                f"commsir: rank {self._settings.rank}: process group {self._settings.name}: ranks have not told each "
                f"other whether they have a group: {error}"
            ) from error
        if why and made:
            made.destroy()
        return why or made or ""

    def why_not(self, call: Call, timeout: timedelta) -> str:
        """Why the call cannot be CommsIR's; empty: it can. Makes the group."""
        group = self.group(timeout)
        if isinstance(group, str):
            return group
        for step in call.steps:
            kind = (step.op, step.reduction, step.type)
            if kind in self._had:
                continue
            if why := group.why_not(step):
                return why
            self._had.add(kind)
        return ""

    def launch(self, call: Call, step: capi.Collective, timeout: timedelta) -> None:
        """Carries out a step; raises with what all ranks were calling when they disagree."""
        if self._settings.size == 1:
            _copy(step, torch.device(self._device if self._device == "cpu" else f"cuda:{self.gpu()}"))
            return
        group = self._group
        assert isinstance(group, capi.Group)
        stream = torch.cuda.current_stream(self.gpu()).cuda_stream if self._device == "cuda" else 0
        group.set_timeout(timeout)
        try:
            group.collective(step, stream)
        except capi.CommsIRError as error:
            raise dist.DistBackendError(self._explain(call, group, error)) from None

    def poll(self) -> None:
        """Raises what launches have reported since."""
        with self._polling:
            group = self._group
            if not isinstance(group, capi.Group) or self._device == "cpu":
                return
            try:
                group.poll()
            except capi.CommsIRError as error:
                self.ended = self.ended or group.ended()
                raise dist.DistBackendError(f"commsir: {error}") from None

    def _explain(self, call: Call, group: capi.Group, error: capi.CommsIRError) -> str:
        what, before, over = str(error), self.ended, group.ended()
        if over and not before:
            self.ended = f"call number {call.number}, {call.describe()}, has failed: {over}"
        # What another rank tells is its own story.
        late = error.status == capi.DEADLOCK and "has given up" not in what
        late = late and ("has waited" in what or "gave up waiting" in what)
        text = f"commsir: rank {self._settings.rank}: {call.describe()} failed: "
        text += "Timed out waiting: " + what if late else what
        if error.status == capi.DEADLOCK:
            text += _advice(what, late)
        # Ranks fail together, once.
        if error.status == capi.DISAGREE and not before:
            text += self._disagreement(call)
        if error.status == capi.DISAGREE and not over:
            text += "\nThe process group can still be used."
        return text

    def _disagreement(self, call: Call) -> str:
        """What each rank was calling, where it was not the same: ranks that fail tell each other by the store.

        One that has not failed says nothing.
        """
        own, lines, end = call.describe(), [], time.monotonic() + _GOSSIP
        try:
            store = self.store("failed")
            store.set(f"{call.number}/{self._settings.rank}", own)
            for rank in range(self._settings.size):
                # No wait in torch's store: at the program's end this thread must be done soon after an abort.
                left = max(0.0, end - time.monotonic())
                heard = look(store, f"{call.number}/{rank}", left, self._has_stopped)
                if heard is not None and (theirs := heard.decode(errors="replace")) != own:
                    lines.append(f"\n  rank {rank} called {theirs}")
        except STORE_ERRORS as error:
            return f"\n  (the store no longer answers: {error})"
        if not lines:
            return ""
        return (
            f"\ncall number {call.number} differs between ranks:\n  rank {self._settings.rank} called {own}"
            + "".join(lines)
            + "\nMake all ranks of the group call the same collectives in the same order, "
            "on tensors of one type and size."
        )

    # Other backends.

    def delegate(self, timeout: timedelta) -> Any:
        """Gloo or NCCL over all ranks. Collective when it is new."""
        with self._lock:
            if self._other is None:
                if self._dropped:
                    raise RuntimeError(
                        f"commsir: process group {self._settings.name} delegates no more calls: its program is ending"
                    )
                self._meet(timeout)
                ranks = list(range(self._settings.size))
                self._other = self._delegate(
                    self.store("delegate"), ranks, self._settings.global_ranks, self._settings.name
                )
                # From now on an abort reaches it. One that came before does not.
                if self._stopped() and self._device == "cuda":
                    self._other.abort()
            return self._other

    def pair_with(self, peer: int, timeout: timedelta) -> Any:
        """NCCL for this rank and `peer` alone (which may be this rank): sends and receives are no calls of the ranks
        that have none. Waits for `peer` when it is new."""
        with self._making.setdefault(peer, threading.Lock()):
            if peer in self._pairs:
                return self._pairs[peer]
            members = sorted({self._settings.rank, peer})
            name = f"pair/{members[0]}-{members[-1]}"
            # They meet by themselves: NCCL would take the keys of an earlier group over the same store for those of its
            # peer.
            prefix = f"commsir/{self._device}/{name}/meeting"
            met = self._settings.meet(prefix, timeout, self._has_stopped, members=members)
            between = f"the first send or receive between ranks {members[0]} and {members[-1]}"
            epoch = self._epoch_of(met, timeout, between)
            # NCCL waits in the store.
            store = self._place(self._settings.connect(), epoch, name)
            ranks = [self._settings.global_rank(member) for member in members]
            made = self._delegate(store, members, ranks, f"{self._settings.name}/{name}")
            # From now on an abort reaches it. One that came before does not.
            self._pairs[peer] = made
            try:
                if why := self._stopped():
                    raise dist.DistBackendError(f"commsir: {between} of process group {self._settings.name}: {why}")
                # One communicator for batches and for what is sent alone.
                made.eager_connect_single_device(torch.device("cuda", self.gpu()))
            except BaseException:
                # The next call meets again.
                del self._pairs[peer]
                made.abort()
                raise
            return made

    def _delegate(self, store: Any, members: list[int], global_ranks: list[int], name: str) -> Any:
        rank = members.index(self._settings.rank)
        made = self._make_delegate(store, self._device, rank, len(members), global_ranks, name)
        made.set_timeout(self._settings.timeout)
        return made

    def _delegates(self) -> list[Any]:
        return ([] if self._other is None else [self._other]) + list(self._pairs.values())

    def set_timeout(self, timeout: timedelta) -> None:
        """Of calls to come."""
        for other in self._delegates():
            other.set_timeout(timeout)

    def abort(self, reason: str) -> None:
        """Ends all waits of this rank. Any thread."""
        with self._ending:
            if isinstance(self._group, capi.Group):
                self._group.abort(reason)
        for other in self._delegates():
            other.abort()

    def shut_down(self) -> None:
        """No calls come any more."""
        for other in self._delegates():
            other.shutdown()
        self._end_group()
        self.drop_gloo()

    def _end_group(self) -> None:
        """As all ranks do when the process group is destroyed: its memory is there for the next one, and ranks that
        still call are told."""
        if not isinstance(self._group, capi.Group):
            return
        with self._polling, self._ending:
            ended, self._last_counts, self._group = self._group, self._group.counts(), "it was destroyed"
        ended.destroy()

    def drop_gloo(self, leave: bool = False) -> None:
        """Ends Gloo and its threads, which keep tensors a little longer than the calls that were given them.

        With `leave`, they may be in a wait that nothing ends, and stay.
        """
        if self._device != "cpu":
            return
        with self._lock:
            gloo, self._other, self._dropped = self._other, None, True
        if leave and gloo is not None:
            # For good: its destructor would wait for them.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(gloo))

    def counts(self) -> dict[str, Any] | None:
        """What CommsIR's group has counted; None: there is none."""
        with self._ending:
            return self._group.counts() if isinstance(self._group, capi.Group) else self._last_counts


def _advice(what: str, late: bool) -> str:
    """Of a rank that is late, and of one that is gone."""
    if late:
        return (
            "\nSee what the late rank does (commsir.torch.recent_calls() lists its calls). If it is only slow, give "
            "calls more time: init_process_group(…, timeout=…)."
        )
    if not any(gone in what for gone in ("died", "is not there", "has given up", "has left")):
        return ""
    return "\nGo on with the ranks that are left by torch.distributed.shrink_group, or start the job again."


def _copy(step: capi.Collective, device: torch.device) -> None:
    """A collective of one rank."""
    size = step.output_elements * capi.width(step.type.decode())
    if not step.input or not step.output or step.input == step.output or not size:
        return
    target, source = (capi.memory(address, size, device) for address in (step.output, step.input))
    target.copy_(source)
