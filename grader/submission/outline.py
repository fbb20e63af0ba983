"""Outlines of the functions of an answer, read off the syntax tree of its source.

A hint may only name a cause that is proved, and some causes are plain to see in the source: a loop
over ``range(1, n)``, a parameter that is rebound to a new tensor which the caller never sees, a
function without ``return``.  An outline is plain data, because a submitted file is parsed in a
process of its own, from which only data come back.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from headcount.core.source_locations import is_students

__all__ = ["Outline", "Slip", "UnusedAssignment", "outline", "outline_live"]

#: Longest source in characters that is outlined; the longest chapter has 60,000.
_LONGEST = 400_000

#: Limit on the assignments of one function that are looked at.
_REBINDINGS = 100

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class UnusedAssignment(msgspec.Struct, frozen=True):
    """A parameter rebound to a value that is never used again, and that the caller never sees."""

    parameter: str
    line: int
    text: str


class Slip(msgspec.Struct, frozen=True):
    """A piece of code that hardly anybody means as it stands.

    Attributes:
        kind: ``raise``, a stub's; ``named``, where a call was meant; ``rebound`` and ``kept``, a
            result of ``recv`` and the like, under the name of its tensor or another; ``branch``, a
            collective for some ranks only; ``sleep``; ``dropped``, a new tensor that nothing keeps.
        line: the line in its file or cell.
        text: the code; of a branch, its condition.
        call: what is called, or meant to be.
    """

    kind: str
    line: int
    text: str
    call: str = ""


class Outline(msgspec.Struct, frozen=True):
    """One function of an answer, one method of its class, or a function inside one of them.

    Attributes:
        name: its name; a method's is ``Class.method``.
        line: the line at which it begins in its file or cell.
        parameters: their names, in order.
        header: the same as they are written.
        returns: whether it returns a value anywhere.
        yields: whether it is a generator.
        calls: the called expressions as they are written: ``dist.send``, ``out.copy_``.
        loops: the iterables of ``for`` loops and comprehensions: ``range(1, n)``.
        assigned: names that are bound inside, parameters among them.
        names: every name and attribute that is used.
        lost: the unused assignments to parameters.
        text: the code without comments and docstring, formatted by Python itself.
        globals: the whole numbers that it reads from outside of it, by name.
        slips: code that hardly anybody means as it stands.
    """

    name: str
    line: int
    parameters: list[str]
    header: str
    returns: bool
    yields: bool
    calls: list[str]
    loops: list[str]
    assigned: list[str]
    names: list[str]
    lost: list[UnusedAssignment]
    text: str
    globals: dict[str, int] = {}
    slips: list[Slip] = []


def outline(sources: Iterable[str], wanted: Iterable[str]) -> dict[str, list[Outline]]:
    """Return, for each wanted name that is defined, its outline and those of its helpers.

    Args:
        sources: files or cells, in order; a later definition of a name wins.
        wanted: names of exercises.
    """
    found: dict[str, _Function | ast.ClassDef] = {}
    numbers: dict[str, int] = {}
    for source in sources:
        if len(source) > _LONGEST:
            continue
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # it is reported as a syntax error elsewhere
        for node in _definitions(tree.body):
            found[node.name] = node
        for statement in tree.body:
            numbers.update(_assigned_number(statement))
    outlines = {}
    for name in wanted:
        with contextlib.suppress(RecursionError):  # source that is nested so deep gets no hint
            if name in found:
                outlines[name] = _reach(name, found.get, numbers)
    return outlines


def outline_live(function: Any) -> list[Outline]:
    """Return the outlines of a live function or class and of the student's helpers that it calls.

    The list is empty where Python has no source, as of functions typed at ``python -c``.
    """

    def find(name: str) -> _Function | ast.ClassDef | None:
        value = function if name == start else _globals(function).get(name)
        return _tree_of(value)

    start = getattr(function, "__name__", "")
    return _reach(start, find, _globals(function))


def _assigned_number(statement: ast.stmt) -> dict[str, int]:
    """Return the name to which a statement assigns a whole number, with the number."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
        (target, *others), value = statement.targets, statement.value.value
        if isinstance(target, ast.Name) and not others and _is_number(value):
            return {target.id: value}
    return {}


def _is_number(value: object) -> TypeGuard[int]:
    # what is sent of a submission is bounded
    return type(value) is int and abs(value) < 2**63


def _globals(function: Any) -> dict[str, Any]:
    if isinstance(function, type):
        for value in vars(function).values():
            if isinstance(value, types.FunctionType):
                return value.__globals__
        return {}
    return getattr(function, "__globals__", {})


def _tree_of(value: Any) -> _Function | ast.ClassDef | None:
    if not isinstance(value, (types.FunctionType, type)):
        return None
    try:
        if not is_students(inspect.getsourcefile(value) or ""):
            return None
        lines, first = inspect.getsourcelines(value)
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    ast.increment_lineno(node, max(first, 1) - 1)
    return node


def _definitions(body: Iterable[ast.stmt]) -> Iterator[_Function | ast.ClassDef]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from _definitions(getattr(node, part, ()))


def _reach(
    name: str, find: Callable[[str], _Function | ast.ClassDef | None], outside: Mapping[str, Any]
) -> list[Outline]:
    """Return the outlines of a definition and of all that it names, directly or in a helper.

    Args:
        name: the definition.
        find: returns what is defined under a name.
        outside: what names stand for outside of all functions, as far as that is known.
    """
    coming, seen, found = [name], {name}, []
    while coming:
        node = find(coming.pop(0))
        if node is None:
            continue
        functions: list[tuple[_Function, str]]
        if isinstance(node, ast.ClassDef):
            methods = (n for n in node.body if isinstance(n, _Function))
            functions = [(method, f"{node.name}.{method.name}") for method in methods]
        else:
            functions = [(node, node.name)]
        for function, full_name in functions:
            inner = (n for n in function.body if isinstance(n, _Function))
            found.append(_outline(function, full_name, outside))
            found += [_outline(n, n.name) for n in inner]
        for used in ast.walk(node):
            if isinstance(used, ast.Name) and used.id not in seen:
                seen.add(used.id)
                coming.append(used.id)
    return found


def _outline(node: _Function, name: str, outside: Mapping[str, Any] = {}) -> Outline:
    every = list(ast.walk(node))
    given = node.args
    arguments = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs)
    parameters = [one.arg for one in arguments if one is not None]
    own = list(_own_nodes(node))
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own)
    returns = yields or any(isinstance(n, ast.Return) and n.value is not None for n in own)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    assigned = {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = {n.id for n in every if isinstance(n, ast.Name)}
    read = names - assigned - set(parameters)
    names |= {n.attr for n in every if isinstance(n, ast.Attribute)}
    return Outline(
        name,
        node.lineno,
        parameters,
        _text(given),
        returns,
        yields,
        [_text(n.func) for n in every if isinstance(n, ast.Call)],
        [_text(n.iter) for n in every if isinstance(n, (ast.For, ast.comprehension))],
        sorted(assigned | set(parameters)),
        sorted(names),
        [] if returns else list(_unread_assignments(node, parameters)),
        "\n".join(map(_text, body)),
        {name: outside[name] for name in sorted(read) if _is_number(outside.get(name))},
        list(_slips(node, every)),
    )


# Slips: code that hardly anybody means. ----------------------------------------------

#: Methods and functions that do nothing where a statement only names them, and those whose results
#: are wanted wherever they are named.
_TO_CALL = frozenset({"wait", "barrier", "zero_grad", "backward"})
_ASKED = frozenset({"get_rank", "get_world_size"})

_COLLECTIVE = frozenset({
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "gather", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter",
})  # fmt: skip

#: Functions that change what they are given, and whose results are something else.
_IN_PLACE = _COLLECTIVE | {"recv", "irecv", "isend"}


#: Functions of torch that make a new tensor, and do nothing else; the first are methods as well.
_NEW_OF_TENSORS = frozenset({"minimum", "maximum", "mul", "div", "true_divide"})
_NEW = _NEW_OF_TENSORS | {"cat", "stack"}


def _slips(function: _Function, nodes: Sequence[ast.AST]) -> Iterator[Slip]:
    """Yield the slips in a function."""
    used = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    used |= {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    ranks = {"rank"} | {
        target.id
        for n in nodes
        if isinstance(n, ast.Assign) and _last_name(n.value) == "get_rank"
        for target in n.targets
        if isinstance(target, ast.Name)
    }
    statements = [n.value for n in nodes if isinstance(n, ast.Expr)]
    stated = {id(n.elt if isinstance(n, ast.ListComp) else n) for n in statements}
    read: dict[str, list[int]] = {}
    for n in nodes:
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            read.setdefault(n.id, []).append(n.lineno)
        elif isinstance(n, ast.Call):  # which may call what it is given
            used |= {id(one) for one in (*n.args, *(word.value for word in n.keywords))}
    # a name for the function itself, which is called by that name
    used |= {
        id(n.value)
        for n in nodes
        if isinstance(n, ast.Assign) and {getattr(t, "id", "") for t in n.targets} & called
    }
    for n in nodes:
        if isinstance(n, ast.Raise) and n.exc is not None and function.body[1:]:
            if _last_name(n.exc) == "NotImplementedError":
                yield Slip("raise", n.lineno, _text(n))
        elif isinstance(n, ast.Assign) and isinstance(n.value, ast.Call):
            call, (target, *_) = _last_name(n.value), n.targets
            given = [one.id for one in n.value.args[:1] if isinstance(one, ast.Name)]
            name = getattr(target, "id", "")
            # a function of another library may return what it has made
            of = _text(n.value.func).split(".")[-2:][0] in (call, "dist", "distributed")
            if of and call in _IN_PLACE and n.lineno < max(read.get(name, [0])):
                yield Slip("rebound" if name in given else "kept", n.lineno, _text(n), call)
        elif id(n) in stated and isinstance(n, ast.Call) and _drops(n):
            yield Slip("dropped", n.lineno, _text(n))
        elif isinstance(n, ast.Call) and _last_name(n) == "sleep":
            yield Slip("sleep", n.lineno, _text(n))
        elif isinstance(n, ast.If) and any(_last_name(one) in {*ranks, "get_rank"}
                                           for one in ast.walk(n.test)):  # fmt: skip
            first, second = (
                {_last_name(one): one for part in branch for one in ast.walk(part)
                 if isinstance(one, ast.Call)}
                for branch in (n.body, n.orelse)
            )  # fmt: skip
            for call in sorted((first.keys() ^ second.keys()) & _COLLECTIVE):
                where = first.get(call) or second[call]
                # the members of a group may be just those ranks
                if all(word.arg != "group" for word in where.keywords):
                    yield Slip("branch", where.lineno, f"if {_text(n.test)}", call)
        elif (
            isinstance(n, ast.Attribute)
            and id(n) not in used
            and (n.attr in _ASKED or (n.attr in _TO_CALL and id(n) in stated))
        ):
            yield Slip("named", n.lineno, _text(n), n.attr)


def _drops(call: ast.Call) -> bool:
    """Return whether all that a call does is to make a new tensor."""
    if not isinstance(call.func, ast.Attribute) or any(word.arg == "out" for word in call.keywords):
        return False
    # an object of the program's own may have a method of this name
    return call.func.attr in (_NEW if _text(call.func.value) == "torch" else _NEW_OF_TENSORS)


def _last_name(node: ast.AST) -> str:
    """Return the last name of an expression: ``send`` of ``dist.send(x, 1)``."""
    while isinstance(node, ast.Call):
        node = node.func
    return getattr(node, "attr", getattr(node, "id", ""))


def _text(node: ast.AST) -> str:
    """Return the code of a node, without lone surrogates, which have no UTF-8."""
    return ast.unparse(node).encode("utf-8", "replace").decode()


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes inside a function, but not those inside a function in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _own_nodes(child)


#: A node's ancestors, from the function inward, each with the field that leads on.
_Path = tuple[tuple[ast.AST, str], ...]


def _paths(node: ast.AST, path: _Path = ()) -> Iterator[tuple[ast.AST, _Path]]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                here = (*path, (node, name))
                yield child, here
                yield from _paths(child, here)


def _unread_assignments(node: _Function, parameters: list[str]) -> Iterator[UnusedAssignment]:
    """Yield the assignments to a parameter whose new value is never read.

    A read counts if it comes later in the source, or anywhere in a loop around the
    assignment; it does not count in the other branch of an ``if``, or in an assignment
    to the parameter itself.  A value that is made of the parameter alone, such as
    ``x.contiguous()``, is no result that could be lost.
    """
    placed = list(_paths(node))
    rebinding = [(n, path) for n, path in placed if isinstance(n, ast.Assign)]
    for statement, path in rebinding[:_REBINDINGS]:
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id not in parameters:
            continue
        if not _names_read(statement.value) - {target.id}:
            continue
        if not any(_reads(other, where, statement, path, target.id) for other, where in placed):
            yield UnusedAssignment(target.id, statement.lineno, _text(statement))


def _names_read(value: ast.AST) -> set[str]:
    """Return the names in an expression, except those that are called or called on."""
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    called = (n.func for n in ast.walk(value) if isinstance(n, ast.Call))
    owners = (f.value if isinstance(f, ast.Attribute) else f for f in called)
    return names - {owner.id for owner in owners if isinstance(owner, ast.Name)}


def _reads(other: ast.AST, where: _Path, statement: ast.Assign, path: _Path, name: str) -> bool:
    """Return whether ``other`` may read the value that ``statement`` gives to ``name``."""
    if not (isinstance(other, ast.Name) and other.id == name and isinstance(other.ctx, ast.Load)):
        return False
    for ancestor, _ in where:
        if isinstance(ancestor, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in ancestor.targets
        ):
            return False
    for (one, into), (another, elsewhere) in zip(path, where, strict=False):
        if one is not another:
            break
        if isinstance(one, (ast.For, ast.While)):
            return True
        if isinstance(one, ast.If) and {into, elsewhere} == {"body", "orelse"}:
            return False
    return other.lineno > statement.lineno
