"""Arrays of JAX: JAX's own if it is installed, and stand-ins for its arrays on a GPU."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import commsir
import numpy as np
import pytest
from conftest import SUM, fake_gpus
from test_group import together


def _jax(rank: int, folder: str) -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    jax = pytest.importorskip("jax")
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for dtype in (jax.numpy.float32, jax.numpy.bfloat16, jax.numpy.int32):
            x = jax.numpy.arange(6, dtype=dtype).reshape(2, 3) + rank
            base = np.arange(6).reshape(2, 3)
            results = {
                "all_reduce": (group.all_reduce(x), 2 * base + 1),
                "all_gather": (group.all_gather(x), np.concatenate([base, base + 1])),
                "reduce_scatter": (group.reduce_scatter(x), 2 * base[rank : rank + 1] + 1),
                "all_to_all": (group.all_to_all(x), np.stack([base[rank], base[rank] + 1])),
                "broadcast": (group.broadcast(x, root=1), base + 1),
            }
            for name, (got, want) in results.items():
                assert isinstance(got, jax.Array) and got.dtype == dtype, name
                np.testing.assert_array_equal(np.asarray(got, np.float32), want, name)
            np.testing.assert_array_equal(np.asarray(x, np.float32), base + rank)
        plain = np.zeros(3, np.float32)
        assert (group.all_reduce(jax.numpy.ones(3), plain) == 2).all()
        window = group.window((2, 3))
        window.put_signal(jax.numpy.full(3, rank + 1.0), 1 - rank, at=1)
        window.wait()
        assert (window.array[1] == 2 - rank).all()
        with pytest.raises(commsir.UsageError, match="is immutable: leave it out"):
            group.all_reduce(x, x)
        mesh = jax.sharding.Mesh(np.array(jax.devices()), "d")
        parts = jax.device_put(jax.numpy.arange(4.0), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d")))
        with pytest.raises(commsir.UsageError, match=r"of a sharded array pass a part: x.addressable_data\(0\)"):
            group.all_reduce(parts)
        assert (group.all_reduce(parts.addressable_data(1)) == np.array([4, 6])).all()
        with pytest.raises(commsir.UsageError, match=r"traced by JAX \(jax.jit"):
            jax.jit(group.all_reduce)(x)
        with pytest.raises(commsir.UsageError, match="peers write to windows"):
            group.allocate(4, to=jax.dlpack.from_dlpack)
        kernel = group.kernel(SUM.replace("?", "8").replace("!comms.window", "memref"))
        kernel(jax.numpy.ones(8), out := np.zeros(8, np.float32))
        assert (out == 2).all()
        with pytest.raises(commsir.UsageError, match="writes argument 'y', but its array is read-only"):
            kernel(jax.numpy.ones(8), jax.numpy.zeros(8))


def test_arrays_of_jax(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    together(_jax, tmp_path, 2)


def _new(rank: int, folder: str) -> None:
    """Without an output, what is no all_reduce and no broadcast makes one, of the input's library."""
    torch = pytest.importorskip("torch")
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for array in (np.arange(6, dtype=np.float32).reshape(2, 3), torch.arange(6.0).reshape(2, 3)):
            gathered, part, swapped = group.all_gather(array), group.reduce_scatter(array), group.all_to_all(array)
            assert {type(one) for one in (gathered, part, swapped)} == {type(array)}
            np.testing.assert_array_equal(gathered, np.concatenate([array, array]))
            np.testing.assert_array_equal(part, 2 * array[rank : rank + 1])
            np.testing.assert_array_equal(swapped, np.stack([array[rank], array[rank]]))
        assert (group.all_gather(np.array(rank)) == [0, 1]).all()
        frozen = np.ones(4, np.float32)
        frozen.flags.writeable = False
        kernel = group.kernel(SUM.replace("?", "4").replace("!comms.window", "memref"))
        kernel(frozen, out := np.zeros(4, np.float32))
        assert (out == 2).all()
        with pytest.raises(commsir.UsageError, match="kernel sum writes argument 'y', but its array is read-only"):
            kernel(out, frozen)
        shared = group.allocate(4)
        shared.flags.writeable = False
        assert group.is_symmetric(shared)
        group.release(shared)
        with pytest.raises(commsir.UsageError, match="3 rows cannot be divided equally among 2 ranks"):
            group.reduce_scatter(np.ones(3))


def test_results_are_of_the_inputs_library(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    together(_new, tmp_path, 2)


class Kind:
    """What a test's jax.numpy and jax.dlpack are made of."""

    def __init__(self, group: commsir.Group) -> None:
        self.group = group
        self.numpy = self.dlpack = self

    def empty(self, shape: Any, dtype: Any, device: Any) -> Any:
        assert device == "the GPU"
        return ArrayImpl(self.group.allocate(shape, dtype))

    def from_dlpack(self, memory: Any) -> Any:
        return ArrayImpl(memory)


class ArrayImpl:
    """What JAX has of an array on a GPU, as far as a call may use it; all of its memory is symmetric."""

    dtype, device = np.dtype(np.float32), "the GPU"

    def __init__(self, memory: Any) -> None:
        self.memory, self.shape, self.ready = memory, tuple(memory.shape), False

    def block_until_ready(self) -> None:
        self.ready = True

    def __dlpack__(self, **options: Any) -> Any:
        assert self.ready, "is not there yet"
        return self.memory.__dlpack__(**options)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("is copied to the host")

    def bytes(self) -> Any:
        import ctypes

        size = 4 * int(np.prod(self.shape))
        return (ctypes.c_float * (size // 4)).from_address(int(self.memory.data_ptr()))


ArrayImpl.__module__ = "jaxlib._jax"


def on_a_gpu(folder: str) -> None:
    """A group of one rank on a GPU that the library in place of the driver pretends."""
    import ctypes

    def waits() -> int:
        return int(ctypes.CDLL("libcuda.so.1").fakeCalls(b"StreamSynchronize"))

    with commsir.Group(0, 1, folder=folder, device=0) as group:
        sys.modules["jax"] = Kind(group)  # type: ignore[assignment]
        before = waits()
        x = ArrayImpl(group.allocate(8))
        to_allocate = waits() - before
        x.bytes()[:] = range(8)
        before = waits() + to_allocate
        y = group.all_reduce(x)
        assert type(y) is ArrayImpl and y.memory.data_ptr() != x.memory.data_ptr()
        assert list(y.bytes()) == list(x.bytes()) == list(range(8))
        assert waits() == before + 1, "the input may go as soon as the call returns"
        assert group.stats()["in_place"] == 1, group.stats()
        window = group.window(8)
        before = waits()
        window.put(x, 0)
        assert waits() == before + 1
        assert list(ArrayImpl(window.array).bytes()) == list(range(8))
        group.finish()
        kernel = group.kernel(SUM.replace("?", "8"), check=False)
        for call, text in (
            (lambda: group.all_reduce(x, y), "the output is a JAX array, which is immutable: leave it out"),
            (
                lambda: kernel(x, y),
                "argument 'x' of kernel sum is a JAX array, which is immutable, and the call may write it",
            ),
            (lambda: window.get(0, out=y), "the array is read-only"),
            (lambda: window.get(0), "pass an array for the result"),
            (lambda: group.share(x), "share one of torch"),
            (lambda: group.all_reduce(np.ones(8)), "the input is on cpu:0; it must be on cuda:0"),
        ):
            with pytest.raises(commsir.UsageError, match=text):
                call()


def test_arrays_of_jax_on_a_gpu(tmp_path: pathlib.Path) -> None:
    environment = fake_gpus(1, "identity 32")
    program = f"import sys; sys.path = {sys.path!r}; import test_arrays; test_arrays.on_a_gpu({str(tmp_path)!r})"
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
