"""The kernel compiler, composed of all layers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import extents, source
from ..parameters import Parameter
from ..source import Place
from . import analysis
from .region_values import RESULT
from .scope import Frame, PythonScope
from .statements import Statements
from .values import Argument, Cells, Const, Function, Memory, Scalar, Undefined, Value, Window


@dataclass(frozen=True)
class Head:
    """Name, parameters and target of a kernel."""

    name: str
    parameters: Mapping[str, Parameter]
    attributes: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    #: The attribute `comms.computes`; empty: nothing is said.
    computes: str = ""
    #: The attribute `comms.assumes`; empty: nothing is assumed.
    assumes: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """The fixed dimensions, with the number of ranks if it is fixed."""
        given = self.attributes.get("ranks")
        return dict(self.dims) if given is None else {**self.dims, extents.RANKS: given}


class Compiler(Statements):
    """Translates one kernel. Its methods are the interface for the handlers in `..lowering`."""

    def kernel(self, found: source.Source, head: Head, locations: bool) -> str:
        """Returns the text of the kernel that a Python function describes."""
        assert isinstance(found.node, ast.FunctionDef)
        body = analysis.body_of(found.node)
        self.begin(head, (found.file, found.node.lineno, found.node.col_offset + 1), PythonScope(found.function), body)
        self.block(body)
        value = self.frame.variables.get(RESULT)
        if value is not None and not isinstance(value, Undefined) and value != Const(None):
            self.fail(
                f"a kernel returns nothing, and this one returns {value.describe()}", "store results: y[:] = tile"
            )
        return self.end(locations)

    def begin(self, head: Head, place: Place, scope: PythonScope | None = None, body: Sequence[ast.stmt] = ()) -> None:
        self._head, self._start, self.place = head, place, place
        self.parameters = head.parameters
        self.dims = head.sizes
        self.arguments = {name: _argument(name, spec, self.dims) for name, spec in head.parameters.items()}
        own = analysis.assigned(body)
        self.frame = Frame(dict(self.arguments), scope, place[0], analysis.Liveness(list(body)), own)

    def end(self, locations: bool) -> str:
        declared = ", ".join(f"%{name}: {value.type}{self._marks(name)}" for name, value in self.arguments.items())
        said = {"comms.computes": self._head.computes, "comms.assumes": self._head.assumes}
        said = {name: text for name, text in said.items() if text}
        extra = ", ".join(f"{name} = {value}" for name, value in {**self._head.attributes, **said}.items())
        header = f"comms.kernel @{self._head.name}({declared})" + (f" attributes {{{extra}}}" if extra else "")
        return self.emitter.render(header, self._start, set(self.arguments), locations)

    def _marks(self, name: str) -> str:
        return " {comms.host}" if self.parameters[name].host else ""

    def region_of(self, keyword: str, function: Value, arguments: list[Value]) -> Value:
        """Calls a collective's tile function, given as `keyword`, and returns its result."""
        if not isinstance(function, Function) and not (isinstance(function, Const) and callable(function.py)):
            self.fail(f"{function.describe()} is not a function of tiles", "write a lambda or name a function")
        if (signature := self.parameters_of(function)) is not None:
            try:
                signature.bind(*arguments)
            except TypeError as error:
                rows = "a row of each input" if keyword == "produce" else "a row of the result and one of each of args"
                count = f"{len(arguments)} tile{'s' * (len(arguments) != 1)}"
                self.fail(f"the function for {keyword}, {signature}: {error}", f"it gets {count}: {rows}")
        saved = self.in_region
        self.in_region = True
        try:
            return self.call(function, arguments, {})
        finally:
            self.in_region = saved


def _argument(name: str, spec: Parameter, dims: Mapping[str, int]) -> Argument:
    if spec.kind == "scalar":
        return Scalar(f"%{name}", spec.dtype)
    shape = tuple(extents.evaluate(d, dims) for d in spec.shape)
    if spec.kind == "window":
        return Window(f"%{name}", shape, spec.dtype, name)
    if spec.kind == "array":
        return Memory(f"%{name}", shape, spec.dtype, name)
    return Cells(f"%{name}", spec.kind, shape[0] or 1, name)
