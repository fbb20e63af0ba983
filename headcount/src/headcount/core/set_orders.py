"""Sets in an order of its own on each rank, as processes with other hash seeds have them.

Every Python process has a hash seed and addresses of its own, unless told otherwise, and with them
the order of a set of strings or objects differs.  A few hash seeds show it by luck only, since two
strings often have the same order under all of them.  So the places where a program takes the values
of a set are rewritten before it is compiled, and rank 1 takes them in another order than rank 0,
whatever they are.  Sets of numbers keep their order, which is the same in every process.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import linecache
import sys
import types
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

__all__ = ["rewrite", "rewritten_code", "sets_of_rank"]

#: The names that a rewritten program finds our functions under, among Python's own.
_TAKE, _POP, _OWN = "__in_rank_order__", "__pop_in_rank_order__", "__of_rank__"

#: Functions and methods that take the values of what they are given in its order.
_TAKING = frozenset(
    {"Counter", "OrderedDict", "accumulate", "chain", "combinations", "cycle", "deque", "dict"}
    | {"enumerate", "extend", "filter", "from_iterable", "fromkeys", "islice", "iter", "join"}
    | {"list", "map", "permutations", "product", "reduce", "starmap", "sum", "tuple", "update"}
    | {"zip", "zip_longest"}
)

#: Those to which the order matters where they are given a key, by which values may be equal.
_BY_KEY = frozenset({"max", "min", "sorted"})


class _Rewriter(ast.NodeTransformer):
    """Puts our functions where a program takes the values of a set, or asks for a hash."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.For, ast.comprehension)):
            node.iter = _taken(node.iter)
        elif (
            isinstance(node, ast.YieldFrom)
            or (isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add))
            or (isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)))
        ):
            node.value = _taken(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        name = getattr(called, "attr", None) or getattr(called, "id", "")
        if isinstance(called, ast.Attribute) and name == "pop" and not (node.args or node.keywords):
            return _call(_POP, called.value, node)
        if name in _TAKING or (name in _BY_KEY and node.keywords):
            node.args = list(map(_taken, node.args))
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        asks = node.id in ("hash", "id") and isinstance(node.ctx, ast.Load)
        return _call(_OWN, node, node) if asks else node


def _call(name: str, value: ast.expr, node: ast.expr) -> ast.expr:
    called = ast.Name(name, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(ast.Call(called, [value], []), node))


def _taken(node: ast.expr) -> ast.expr:
    """Return an expression that gives the values of another one, in this rank's order of a set."""
    return node if isinstance(node, (ast.Constant, ast.Starred)) else _call(_TAKE, node, node)


def rewrite(tree: ast.Module) -> ast.Module:
    """Let a program take sets in the order of its rank, by changing it before it is compiled."""
    changed: ast.Module = _Rewriter().visit(tree)
    return changed


def rewritten_code(code: types.CodeType) -> types.CodeType:
    """Return the code of a live function as if its source had been rewritten.

    It is the same code where the source is not to be had, or is not what was compiled.
    """
    file = code.co_filename
    try:
        return _rewritten_codes(file, "".join(linecache.getlines(file)))[code]
    except (KeyError, SyntaxError, ValueError, RecursionError):
        return code


@functools.lru_cache(maxsize=8)
def _rewritten_codes(file: str, source: str) -> dict[types.CodeType, types.CodeType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the author has seen them
        tree = ast.parse(source, file)
        before = list(_inside(compile(tree, file, "exec", dont_inherit=True)))
        after = list(_inside(compile(rewrite(tree), file, "exec", dont_inherit=True)))
    return dict(zip(before, after, strict=True))


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _inside(const)


# In a rank. -----------------------------------------------------------------------

#: This rank; None where sets keep the order that they have.
_rank: int | None = None

#: The files and lines that have taken the values of a set; line 0 is a use of a hash or an address.
_places: dict[tuple[str, int], None] = {}
_report: Callable[[str, int], None] | None = None


def sets_of_rank(rank: int | None, report: Callable[[str, int], None] | None = None) -> None:
    """Let sets have the order of a rank from now on, or their own.

    Args:
        rank: the rank, or None.
        report: told once of each place that takes a set in its order, those that loading the
            program has met included; None to begin anew.
    """
    global _rank, _report
    _rank, _report = rank, report
    if report is None:
        _places.clear()
        return
    for place in _places:
        report(*place)


def _varies(value: Any) -> bool:
    """Return whether the hash of a value differs from process to process."""
    kind = type(value)
    if issubclass(kind, (str, bytes)):
        return kind.__hash__ in (str.__hash__, bytes.__hash__)
    if issubclass(kind, (tuple, frozenset)):
        return any(map(_varies, value))
    if dataclasses.is_dataclass(kind) and kind.__hash__ is not object.__hash__:
        return any(_varies(getattr(value, field.name)) for field in dataclasses.fields(kind))
    tensor = getattr(sys.modules.get("torch"), "Tensor", object)
    return kind.__hash__ in (object.__hash__, enum.Enum.__hash__, tensor.__hash__)


def _note(file: str, line: int) -> None:
    if (file, line) not in _places and _report is not None:
        _report(file, line)
    _places[file, line] = None


def _in_order(values: Any) -> Iterator[Any] | None:
    """Return the values of a set in the order of this rank; None if they keep their own."""
    if _rank is None or type(values) not in (set, frozenset) or not any(map(_varies, values)):
        return None
    caller = sys._getframe(2)
    _note(caller.f_code.co_filename, caller.f_lineno)
    # backwards on odd ranks, and from another one on each two ranks
    order, first = list(values)[:: -1 if _rank % 2 else 1], _rank // 2 % len(values)
    return _while_unchanged(values, order[first:] + order[:first])


def _while_unchanged(values: Collection[Any], order: list[Any]) -> Iterator[Any]:
    for value in order:
        if len(values) != len(order):
            raise RuntimeError("Set changed size during iteration")
        yield value


#: Values of a set from which one is popped in the order of a rank, which looks at all of them.
_FEW = 64


def _pop(owner: Any) -> Any:
    few = type(owner) is set and len(owner) <= _FEW
    if not few or (order := _in_order(owner)) is None:
        return owner.pop()
    value = next(order)
    owner.remove(value)
    return value


def _own(function: Any) -> Any:
    """Return what a rank has in place of ``hash`` and ``id``, and anything else as it is."""
    if _rank is None or not (function is hash or function is id):
        return function
    return functools.partial(_number, function, _rank)


def _number(function: Callable[[Any], int], rank: int, value: Any) -> int:
    number = function(value)
    if function is hash and not _varies(value):
        return number
    _note("", 0)
    # on rank 1 in the opposite order, and even where it was odd; on others anything
    return ~number if rank == 1 else number ^ rank * 0x9E3779B97F4A7C1


vars(builtins).update({_TAKE: lambda values: _in_order(values) or values, _POP: _pop, _OWN: _own})
