"""Small changes to a program, one at a time, as a tired student would make them.

Offsets, signs, a modulus left out, branches and operands swapped, a statement
missing or out of order, the wrong reduction, a blocking call for one that does
not block.  Each is made on the syntax tree of a whole module, inside given
lines only.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

__all__ = ["Mutant", "mutants"]


@dataclass(frozen=True)
class Mutant:
    """A changed module.

    Attributes:
        line: where the change is, in the original.
        before, after: the changed statement, on one line.
        source: the changed module.
    """

    line: int
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """The change, the same wherever in the file it stands."""
        return f"{self.before}  →  {self.after}"


_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

#: Names that are mistaken for each other.
_NAMES = {
    "isend": "send",
    "irecv": "recv",
    "minimum": "maximum",
    "maximum": "minimum",
    "amin": "amax",
    "amax": "amin",
    "min": "max",
    "max": "min",
    "SUM": "MAX",
    "AVG": "SUM",
    "MIN": "MAX",
    "MAX": "MIN",
    "PRODUCT": "SUM",
    "add_": "sub_",
    "mul_": "add_",
    "div_": "mul_",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "zeros": "ones",
    "ones": "zeros",
    "any": "all",
    "all": "any",
}


def _number(value: int) -> ast.expr:
    node = ast.Constant(abs(value))
    return node if value >= 0 else ast.UnaryOp(ast.USub(), node)


def _plus(node: ast.expr, by: int) -> ast.expr:
    operator: ast.operator = ast.Add() if by > 0 else ast.Sub()
    return ast.BinOp(node, operator, ast.Constant(abs(by)))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """What may stand in place of an expression."""
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield _number(value + 1)
            yield _number(value - 1)
        case ast.BinOp(left=left, op=ast.Mod()):
            yield left
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            yield ast.BinOp(left, _BINARY[type(op)](), right)
            if not isinstance(op, (ast.Add, ast.Mult)):
                yield ast.BinOp(right, op, left)
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            for other in _COMPARE.get(type(op), ()):
                yield ast.Compare(left, [other()], comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Call():
            yield from _calls(node)
        case ast.Attribute(value=value, attr=attr) if attr in _NAMES:
            yield ast.Attribute(value, _NAMES[attr], ast.Load())
        case ast.Name(id=name) if name in _NAMES:
            yield ast.Name(_NAMES[name], ast.Load())


def _calls(call: ast.Call) -> Iterator[ast.expr]:
    arguments = call.args
    match call.func:
        case ast.Attribute(value=value, attr="clone" | "contiguous" | "detach"):
            yield value
        case ast.Attribute(attr="get_rank"):
            yield ast.Constant(0)
        case ast.Attribute(attr="get_world_size"):
            yield _plus(call, 1)
            yield _plus(call, -1)
        case ast.Name(id="range"):
            for i, argument in enumerate(arguments):
                if isinstance(argument, ast.Constant):
                    continue
                for by in (1, -1):
                    changed = [*arguments[:i], _plus(argument, by), *arguments[i + 1 :]]
                    yield ast.Call(call.func, changed, call.keywords)
        case ast.Name(id="reversed" | "list" | "sorted"):
            yield from arguments[:1]
    if len(arguments) >= 2:
        first, second, *rest = arguments
        yield ast.Call(call.func, [second, first, *rest], call.keywords)


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """What may stand in place of a statement; ``pass`` where it is left out."""
    nothing = ast.parse("()", mode="eval").body
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()
        case ast.AugAssign(target=target, op=op, value=value):
            yield ast.Pass()
            yield ast.Assign([target], value, lineno=node.lineno)
            if type(op) in _BINARY:
                yield ast.AugAssign(target, _BINARY[type(op)](), value)
        case ast.If(body=body, orelse=orelse):
            yield ast.If(ast.Constant(True), body, orelse)
            yield ast.If(ast.Constant(False), body, orelse)
        case ast.For(target=target, iter=turns, body=body, orelse=orelse):
            every = ast.Call(ast.Name("list", ast.Load()), [turns], [])
            fewer = [
                ast.Subscript(every, ast.Slice(None, ast.Constant(-1)), ast.Load()),
                ast.Subscript(every, ast.Slice(ast.Constant(1), None), ast.Load()),
                ast.Subscript(
                    every,
                    ast.Slice(None, None, ast.UnaryOp(ast.USub(), ast.Constant(1))),
                    ast.Load(),
                ),
                nothing,
            ]
            for other in fewer:
                yield ast.For(target, other, body, orelse, lineno=node.lineno)
        case ast.While(body=body, orelse=orelse):
            yield ast.While(ast.Constant(False), body, orelse)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(None)
        case ast.Break() | ast.Continue():
            yield ast.Pass()


def _one_line(node: ast.AST) -> str:
    """The first line of a statement."""
    return ast.unparse(node).splitlines()[0]


def mutants(source: str, inside: Callable[[int], bool]) -> Iterator[Mutant]:
    """Every change to the lines of a module that are ``inside``, no result twice."""
    module = ast.parse(source)
    # only what is changed is copied and written anew: a chapter is long
    written = [ast.unparse(top) for top in module.body]
    for index, top in enumerate(module.body):
        # of a statement of the module itself, the next one belongs to what may be changed
        own = isinstance(top, (ast.FunctionDef, ast.ClassDef))
        until = index + (1 if own else 2)
        part = ast.Module(module.body[index:until], [])
        first = ast.Module([top], [])
        seen = {ast.unparse(part)}
        for place, (owner, statement) in enumerate(_places(first, part, inside)):
            for change in _changes(owner, statement):
                changed = copy.deepcopy(part)
                there, _ = list(_places(ast.Module(changed.body[:1], []), changed, inside))[place]
                after = change(there)
                text = ast.unparse(ast.fix_missing_locations(changed))
                if text not in seen:
                    seen.add(text)
                    line = getattr(statement, "lineno", 0)
                    whole = "\n".join([*written[:index], text, *written[until:]])
                    yield Mutant(line, _one_line(statement), after, whole)


#: A list of statements and an index in it.
_Place = tuple[list[ast.stmt], int]

#: Makes the change at a place of a copy; what the statement reads like then.
_Change = Callable[[_Place], str]


def _places(
    first: ast.Module, part: ast.Module, inside: Callable[[int], bool]
) -> Iterator[tuple[_Place, ast.stmt]]:
    """Every statement inside the lines; ``part`` is where the first one stands."""
    for node in ast.walk(first):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block = part.body if node is first else block
                for i, statement in enumerate(block[:1] if node is first else block):
                    if inside(statement.lineno) and not isinstance(statement, ast.FunctionDef):
                        yield (block, i), statement


def _changes(place: _Place, statement: ast.stmt) -> Iterator[_Change]:
    block, index = place
    for k in range(len(list(_statements(statement)))):
        yield partial(_replace, k)
    simple = (ast.Expr, ast.Assign, ast.AugAssign)
    after = block[index + 1] if index + 1 < len(block) else None
    if isinstance(statement, simple) and isinstance(after, (*simple, ast.For, ast.If)):
        yield _exchange
    for position, node in enumerate(_own_expressions(statement)):
        for k in range(len(list(_expressions(node)))):
            yield partial(_rewrite, position, k)


def _replace(k: int, place: _Place) -> str:
    block, index = place
    block[index] = list(_statements(block[index]))[k]
    return _one_line(block[index])


def _exchange(place: _Place) -> str:
    block, index = place
    block[index], block[index + 1] = block[index + 1], block[index]
    return f"{_one_line(block[index])}; {_one_line(block[index + 1])}"


def _own_expressions(statement: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement, those of statements inside it left out."""
    found: list[ast.expr] = []
    waiting: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)
    ]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.expr):
            found.append(node)
        waiting += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]
    return found


def _rewrite(position: int, k: int, place: _Place) -> str:
    block, index = place
    statement = block[index]
    old = _own_expressions(statement)[position]
    new = list(_expressions(old))[k]

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    block[index] = cast(ast.stmt, Exchange().visit(statement))
    return _one_line(block[index])
