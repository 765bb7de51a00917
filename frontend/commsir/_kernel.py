"""`@commsir.kernel`: turns a Python function over teams, windows, tiles and signals into a kernel."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
import operator
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from commsir import _native, errors
from commsir.language import diagnostics, extents, parameters, python_terms, source
from commsir.language.contracts import check_names, render, render_assumptions
from commsir.language.lowering import Compiler, Head
from commsir.language.parameters import Parameter

if TYPE_CHECKING:
    from commsir._explain import Explanation
    from commsir._simulate import Report

__all__ = ["Kernel", "kernel"]

T = TypeVar("T")

#: What a kernel may be written for, besides its dimensions.
_ATTRIBUTES = ("ranks", "blocks", "lsa_size")


class Kernel:
    """A kernel that a Python function describes. It is compiled at first use."""

    def __init__(
        self,
        function: Callable[..., None],
        attributes: Mapping[str, int],
        computes: Any = None,
        assumes: str | Iterable[str] = (),
    ) -> None:
        if not isinstance(function, FunctionType):
            raise errors.UsageError(f"@commsir.kernel takes a function, not a {type(function).__name__}")
        self.__commsir_function__ = function
        source.remember(function)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        for name, value in attributes.items():
            _check_count(name, value, 0)  # 0: as nothing said.
        self.attributes = {k: operator.index(v) for k, v in attributes.items() if v}
        self.computes = computes
        code = function.__code__
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        check_names(computes, function.__name__, named)
        self._said = render(computes)
        self._assumed = render_assumptions(assumes)
        self.dims: dict[str, int] = {}
        self._parameters: dict[str, Parameter] | None = None

    def __repr__(self) -> str:
        fixed = ", ".join(f"{k}={v}" for k, v in {**self.attributes, **self.dims}.items())
        parameters = ", ".join(f"{n}: {p}" for n, p in self.parameters.items())
        return errors.printable(f"<kernel {self.__name__}({parameters})" + (f" with {fixed}>" if fixed else ">"))

    def __copy__(self) -> Kernel:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, attributes=dict(self.attributes), dims=dict(self.dims))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return copy.copy(self)  # Functions are not copied.

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the kernel as its function's name, like a function, plus the values that `specialize` fixed."""
        function = self.__commsir_function__
        name = (function.__module__, function.__qualname__)
        try:
            found = _find(*name)
        except (ImportError, AttributeError):
            found = None
        if found is None or found.__commsir_function__ is not function:
            raise pickle.PicklingError(
                f"kernel {self.__name__} cannot be pickled: another process would look it up as {'.'.join(name)}, "
                "where it is not found; define it at the top of a module that can be imported"
            )
        return _restore, (*name, self.attributes, self.dims)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise errors.UsageError(
            f"{self.__name__} is a kernel, which ranks run together: "
            f"{self.__name__}.simulate(ranks=…, inputs=…) runs it here; "
            "inside another kernel it can be called"
        )

    def __getitem__(self, grid: Any) -> NoReturn:
        raise errors.UsageError(
            f"{self.__name__}[…] sets no grid: the number of blocks is an option, "
            f"{self.__name__}.simulate(ranks=…, inputs=…, blocks=…)"
        )

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name, as annotated."""
        if self._parameters is None:
            self._parameters = _parameters(self.__commsir_function__)
        return self._parameters

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values of scalar parameters."""
        named = inspect.signature(self.__commsir_function__).parameters.values()
        return {p.name: p.default for p in named if p.default is not p.empty}

    @property
    def file(self) -> str:
        """The file that defines the kernel."""
        return self.__commsir_function__.__code__.co_filename

    @property
    def _start(self) -> source.Place:
        """The source position of the kernel's definition. Diagnostics about parameters point there."""
        found = source.find(self.__commsir_function__)
        return (found.file, found.node.lineno, found.node.col_offset + 1)

    @property
    def symbols(self) -> list[str]:
        """The names of dimensions without a fixed size."""
        shapes = [p.shape for p in self.parameters.values()]
        names = [name for shape in shapes for dim in shape for name in extents.names_in(dim)]
        return [n for n in dict.fromkeys(names) if n not in self.dims and n != extents.RANKS]

    def specialize(self, **fixed: int) -> Kernel:
        """Returns the kernel with dimensions, `ranks` or `blocks` fixed."""
        made = copy.copy(self)
        for name, value in fixed.items():
            if name not in (*_ATTRIBUTES, *self.symbols, *self.dims):
                known = [*self.symbols, *_ATTRIBUTES]
                hint = diagnostics.did_you_mean(name, known) or f"there is {', '.join(known)}"
                raise errors.UsageError(f"{self.__name__} has no dimension '{name}'; {hint}")
            chosen, least = (made.attributes, 1) if name in _ATTRIBUTES else (made.dims, 0)
            _check_count(name, value, least)
            chosen[name] = operator.index(value)
        return made

    #: The same, as British English has it.
    specialise = specialize  # codespell:ignore

    @property
    def _head(self) -> Head:
        return Head(self.__name__, self.parameters, self.attributes, self.dims, self._said, self._assumed)

    def _inferred(self) -> Kernel:
        """Returns the kernel with the output dimensions fixed that follow from the inputs of its collectives."""
        made = self
        while made.symbols:
            compiler = Compiler(made.attributes.get("ranks"))
            # What else is wrong with a kernel of which too little is known says its compilation.
            with contextlib.suppress(errors.CommsError):
                compiler.kernel(source.find(self.__commsir_function__), made._head, False)
            found = {name: number for name, number in compiler.inferred.items() if name in made.symbols}
            if not found:
                break
            made = made.specialize(**found)
        return made

    def _shape(self, parameter: str) -> tuple[int, ...]:
        """Returns the shape of a parameter whose dimensions are all fixed."""
        sizes, shape = self._head.sizes, self.parameters[parameter].shape
        made = [extents.evaluate(dim, sizes) for dim in shape]
        for dim, number in zip(shape, made, strict=True):
            unknown = [name for name in extents.names_in(dim) if name not in sizes]
            if number is None:
                name = unknown[0] if unknown else str(dim)
                raise errors.UsageError(
                    f"the dimension '{name}' of '{parameter}' is not known: pass an array that has it, "
                    f"or {self.__name__}.specialize({name}=…)"
                )
            if number < 0:
                raise errors.UsageError(f"the dimension {dim} of '{parameter}' is {number}, less than 0")
        return tuple(number for number in made if number is not None)

    def text(self, locations: bool = True) -> str:
        """Returns the kernel as MLIR, as translated. With `locations`, every op has its position in the Python file."""
        found = source.find(self.__commsir_function__)
        return Compiler(self.attributes.get("ranks")).kernel(found, self._head, locations)

    @property
    def ir(self) -> str:
        """Returns the kernel as verified MLIR."""
        self._ask(_native.compile, produce="ir")
        return self.text(locations=False)

    @property
    def lowered(self) -> str:
        """Returns the kernel in the LLVM dialect, as the CPU world runs it. Needs a fixed `ranks`."""
        return self._for_ranks("lowered")

    @property
    def llvm(self) -> str:
        """Returns LLVM IR for the CPU world. Needs a fixed `ranks`."""
        return self._for_ranks("llvm")

    @property
    def ptx(self) -> str:
        """Returns PTX for an NVIDIA GPU. Needs a fixed `ranks`."""
        return self._for_ranks("ptx")

    def _for_ranks(self, produce: str) -> str:
        if "ranks" not in self.attributes:
            how = f"{self.__name__}.specialize(ranks=8).{produce}"
            raise errors.UsageError(f"for how many ranks? Code is made for a number of them: {how}")
        return self._ask(_native.compile, produce=produce)

    def explain(self, ranks: int | None = None, **options: Any) -> Explanation:
        """Explains what was chosen for the kernel, and why. The result prints as a table, even if the checker refutes
        the kernel.

        `ranks` is the number of ranks, unless `specialize` has fixed it. `options`: blocks, algorithm, protocol, chip,
        threads, cluster, launches. Every dimension needs a size: `specialize(n=…)` gives it.
        """
        from commsir import _explain

        if "launches" in options:
            options["check_launches"] = _check_launches(options.pop("launches"))
        kernel = self._with(ranks, options.pop("blocks", None))._closed("explain")
        made = kernel._ask(_explain.explain, **options)
        made.words = python_terms.in_python
        if made.refusal is not None:
            diagnostics.with_source(made.refusal, kernel._start)
        return made

    def check(self, ranks: int | None = None, **options: Any) -> _native.CheckReport:
        """Checks the kernel for deadlocks and data races.

        The verdict is "proven" or "not decided", with the reasons. Raises CheckError, with the source lines and the
        schedule, if the kernel is refuted.

        `launches` is how many consecutive launches the checker follows, at most 64. By default it follows as many as
        are needed to see what reused memory does. `ranks` and the other `options` are as for `explain`.
        """
        _check_launches(options.get("launches", 0))
        report = self._with(ranks, options.pop("blocks", None))._closed("check")._ask(_native.check, **options)
        reasons = tuple(map(python_terms.in_python, report.proof.reasons))
        return dataclasses.replace(report, proof=dataclasses.replace(report.proof, reasons=reasons))

    def simulate(
        self,
        ranks: int | None = None,
        inputs: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        fuzz: int = 0,
        blocks: int | None = None,
        launches: int = 1,
        trace: str | os.PathLike[str] | bool | None = None,
        target: str = "cpu",
        **options: Any,
    ) -> Report:
        """Runs the kernel on `ranks` ranks of this machine, with `blocks` blocks each, `launches` times.

        `target` is "cpu", or "cuda" for one GPU per rank. `inputs` has for each parameter one array for all ranks, or a
        list with one array per rank; scalars the same. Parameters that are not given are zero. `seed` selects a
        schedule. `fuzz` runs that many schedules and compares their results bit by bit. `trace` is the path of a
        Perfetto trace to write, also of a run that fails; True keeps it for `report.trace`. On the CPU, a run ends
        after `time_limit` seconds: 60 by default, 0 for no limit.

        `memory="weak"` delays memory accesses as far as the memory model allows, by `seed`, and raises `MismatchError`
        at the first data race. `races="ignore"` continues after a data race. `breaks="store8_whole"` drops a named
        assumption about the hardware. `same` names arrays that must have the same bits on all ranks.
        docs/PythonKernels.md lists the other `options`.
        """
        from commsir import _simulate

        return _simulate.run(
            self,
            ranks,
            {} if inputs is None else inputs,
            seed=seed,
            fuzz=fuzz,
            blocks=blocks,
            launches=launches,
            trace=trace,
            target=target,
            **options,
        )

    def _with(self, ranks: int | None, blocks: int | None = None) -> Kernel:
        given = {"ranks": ranks, "blocks": blocks}
        return self.specialize(**{name: number for name, number in given.items() if number is not None})

    def _closed(self, what: str) -> Kernel:
        """Returns the kernel if all its dimensions are fixed, or follow from those that are."""
        made = self._inferred()
        if made.symbols:
            fixed = ", ".join(f"{name}=…" for name in made.symbols)
            raise errors.UsageError(
                f"the size{'s' * (len(made.symbols) > 1)} {', '.join(made.symbols)} of {self.__name__} "
                f"{'are' if len(made.symbols) > 1 else 'is'} not known: {self.__name__}.specialize({fixed}).{what}(…)"
            )
        return made

    def _ask(self, function: Callable[..., T], **options: Any) -> T:
        """Calls the library. Diagnostics show the Python source lines."""
        text = self.text()
        with diagnostics.in_terms_of(self):
            return function(text, ranks=self.attributes.get("ranks", 0), file=diagnostics.GENERATED, **options)


def _check_count(name: str, value: Any, least: int) -> None:
    if not hasattr(value, "__index__") or isinstance(value, bool) or value < least:
        raise errors.UsageError(f"{name} is {value!r}, but must be a whole number of at least {least}")


def _check_launches(value: Any) -> int:
    """Checks the number of launches that the checker follows; 0: as many as are needed."""
    _check_count("launches", value, 0)
    return operator.index(value)


def _parameters(function: FunctionType) -> dict[str, Parameter]:
    result: dict[str, Parameter] = {}
    code = function.__code__
    place = (code.co_filename, code.co_firstlineno, 1)
    try:
        whole = inspect.signature(function)
    except NameError as error:  # Python 3.14 computes annotations when they are asked for
        hint = diagnostics.did_you_mean(str(error.name), [*parameters.__all__])
        raise diagnostics.compile_error(f"in the annotations: {error}", place, hint) from None
    signature, returned = whole.parameters, whole.return_annotation
    if isinstance(returned, str):
        returned = _evaluate(returned, function, place)
    if returned not in (None, whole.empty):
        name = getattr(returned, "__name__", None) or repr(returned)
        raise diagnostics.compile_error(
            f"the kernel is annotated to return {name}, and a kernel returns nothing",
            place,
            "write -> None, give it an array for the result, y: f32[Array, 1], and store: y[0] = …",
        )
    for name in (function.__name__, *signature):
        if not name.isascii():
            raise diagnostics.compile_error(
                f"the name '{name}' is not ASCII", place, "rename it: the IR has only ASCII names"
            )
    for name, p in signature.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise diagnostics.compile_error("a kernel has no *args and **kwargs", place, "name the parameters")
        annotation = p.annotation
        if isinstance(annotation, str):
            annotation = _evaluate(annotation, function, place)
        found = None if annotation is p.empty else parameters.parse_annotation(annotation)
        if found is None:
            what = "has no annotation" if annotation is p.empty else f"is annotated {annotation!r}"
            if name == "self" and not result:
                raise diagnostics.compile_error(
                    "a kernel is a function, not a method", place, "move it out of the class"
                )
            raise diagnostics.compile_error(
                f"the parameter '{name}' {what}",
                place,
                'write f32[Window, "rows", 64], f32[Array, 8, 64], Signal[4], Counter[1], or f32, i64, … for a scalar',
            )
        if p.default is not p.empty and found.kind != "scalar":
            raise diagnostics.compile_error(
                f"the parameter '{name}' has a default, which only scalars have", place, "leave '= …' out"
            )
        own = {name for dim in found.shape for name in extents.names_in(dim)} - {extents.RANKS}
        if taken := own & set(_ATTRIBUTES):
            raise diagnostics.compile_error(
                f"a dimension of '{name}' has the name '{min(taken)}', which is the kernel's own", place, "rename it"
            )
        result[name] = found
    return result


def _evaluate(text: str, function: FunctionType, place: tuple[str, int, int]) -> Any:
    """Evaluates an annotation of a module that has `from __future__ import annotations`."""
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    seen = {}
    for name, cell in closure.items():
        try:
            seen[name] = cell.cell_contents
        except ValueError:
            continue
    try:
        return eval(text, function.__globals__, seen)
    except NameError as error:
        hint = diagnostics.did_you_mean(str(error.name), [*parameters.__all__])
        raise diagnostics.compile_error(f"in the annotation {text}: {error}", place, hint) from None
    except TypeError as error:
        raise diagnostics.compile_error(f"in the annotation {text}: {error}", place) from None


def _find(module: str, name: str) -> Kernel | None:
    """Returns the kernel of that name, or None if the name refers to another object."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, Kernel) else None


def _restore(module: str, name: str, attributes: dict[str, int], dims: dict[str, int]) -> Kernel:
    """Rebuilds a pickled kernel in this process."""
    found = _find(module, name)
    if found is None:
        raise pickle.UnpicklingError(f"{module}.{name} is not a kernel here, as it was where it was pickled")
    if (found.attributes, found.dims) == (attributes, dims):
        return found
    made = copy.copy(found)
    made.attributes, made.dims = attributes, dims
    return made


@overload
def kernel(function: Callable[..., None], /) -> Kernel: ...
@overload
def kernel(
    *,
    ranks: int = 0,
    blocks: int = 0,
    lsa_size: int = 0,
    computes: Any = None,
    assumes: str | Iterable[str] = (),
) -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    ranks: int = 0,
    blocks: int = 0,
    lsa_size: int = 0,
    computes: Any = None,
    assumes: str | Iterable[str] = (),
) -> Any:
    """Makes a kernel from a function: `@commsir.kernel`, or `@commsir.kernel(ranks=8, blocks=1)`.

    `ranks`, `blocks` and `lsa_size` (the number of ranks in reach of each other's loads and stores) fix these numbers
    in the kernel; 0: given when it is compiled.

    `computes` declares the result. The checker then proves it, or refutes the kernel and shows the difference. It is a
    collective, `commsir.all_reduce("sum")`, or the formula of an output's element i in terms of the arrays that the
    ranks had before the launch: `{"y": "sum(r, x(r)[i]) / size"}` (docs/Checker.md).

    `assumes` names assumptions on which the kernel rests: "packets_cumulative" of hardware, "same_on_ranks(x)" of the
    integers in an array `x`, which the host passes to all ranks alike (docs/Spec.md). A proof lists those that it
    needs.
    """
    attributes = {"ranks": ranks, "blocks": blocks, "lsa_size": lsa_size}
    render(computes)  # Says what is wrong with it where that is written.
    render_assumptions(assumes)
    if function is not None:
        return Kernel(function, {})
    return lambda f: Kernel(f, attributes, computes, assumes)
