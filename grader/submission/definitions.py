"""Selection of the statements of a student's file that define something.

A notebook or script that a student submits is full of experiments: calls of ``check``, plots,
prints, loops that train.  The ranks need only its definitions.  Imports, functions and classes are
kept; so are assignments of plain values, and assignments that call something if a kept definition
uses the name (so ``table = make_table()`` is run where ``broadcast`` reads ``table``, and
``losses = train()`` is not).  ``if``, ``try``, ``with`` and ``for`` are kept with those of their
statements that are kept.  Everything else is dropped: calls for their effect,
``if __name__ == "__main__"``, and all statements that call the grader itself.
"""

from __future__ import annotations
import __future__

import ast
import difflib
import dis
import functools
import importlib.machinery
import inspect
import marshal
import re
import sys
import textwrap
import types
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from headcount.core.program import MODULE, Program, Unit, is_stub
from headcount.core.set_orders import rewrite
from headcount.core.source_locations import is_students
from headcount.core.verdict import Site

__all__ = [
    "OURS",
    "Broken",
    "Chunk",
    "Definitions",
    "bound",
    "reason",
    "select",
    "without_experiments",
]

#: The packages whose imports and calls are no part of an answer.
OURS = ("grader", "headcount")

#: Functions of the grader; a statement that calls one is an experiment.
_GRADERS = frozenset({"check", "hint", "points", "replay", "run", "simulate"})

_DEFINES = re.compile(r"^[^\S\n]*(?:async\s+)?(?:def|class)\s+(\w+)|^(\w+)\s*=(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A piece of source that is parsed on its own: a file, or a cell.

    Attributes:
        label: its name.
        source: its text.
        mend: of text that defines nothing, such as a cell of prose, what would make it code.
    """

    label: str
    source: str
    mend: str = ""


@dataclass(frozen=True)
class Broken:
    """A piece of source that does not parse: its label, and the line and message of the error."""

    label: str
    line: int
    message: str


@dataclass
class Definitions:
    """The definitions of a submission.

    Attributes:
        program: the kept statements, compiled.
        names: every name defined at top level.
        broken: by name, the error in a last definition that does not parse; another one that
            does may come before it, which then is in ``names``.
        unparsed: every piece that does not parse.
        trees: the pieces that do, parsed.
        elsewhere: by wanted name, where an answer stands that defines nothing, or a stub that
            stands below one; of a name that is missing, what is called nearly so.
    """

    program: Program
    names: frozenset[str]
    broken: dict[str, Broken]
    unparsed: list[Broken]
    trees: list[ast.Module]
    elsewhere: dict[str, str]


@dataclass
class _Statement:
    chunk: Chunk
    node: ast.stmt
    defines: set[str]
    code: types.CodeType
    declares: set[str] = field(default_factory=set)
    assigns: set[str] = field(default_factory=set)
    calls_on: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    optional: bool = False
    is_stub: bool = False


def select(
    chunks: Sequence[Chunk], wanted: Iterable[str] = (), imported: Collection[str] = ()
) -> Definitions:
    """Keep the definitions of a submission.

    Args:
        chunks: its pieces, in order; a later definition of a name wins, but an untouched stub
            never takes the place of an answer.
        wanted: names that are kept however they are defined: the exercises.
        imported: names that star imports bind.
    """
    broken: dict[str, Broken] = {}
    unparsed: list[Broken] = []
    statements: list[_Statement] = []
    pieces: list[tuple[str, ast.Module]] = []
    flags, wanted = 0, set(wanted)
    graders = _GRADERS
    for chunk in chunks:
        if chunk.mend:
            continue
        try:
            tree = ast.parse(chunk.source, chunk.label)
            # a student's own function called run is not the grader's
            graders -= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
            flags |= _future_flags(tree)
            found = [s for node in tree.body for s in _kept(chunk, node, flags, graders)]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            fault = Broken(chunk.label, getattr(error, "lineno", None) or 1, reason(error))
            unparsed.append(fault)
            for names in _DEFINES.findall(chunk.source):
                broken[names[0] or names[1]] = fault
        else:
            statements += found
            pieces.append((chunk.label, tree))
            for statement in found:
                for name in statement.defines:
                    broken.pop(name, None)
    last = {n: i for i, s in enumerate(statements) if not s.is_stub for n in s.declares | s.assigns}
    answered = {*imported, *last}
    idle = {i: s for i, s in enumerate(statements) if s.is_stub and s.defines <= answered & wanted}
    statements = [s for i, s in enumerate(statements) if i not in idle]
    kept = _needed(_without_experiments(statements), wanted)
    units = [_text_unit(chunk) for chunk in chunks if _READS_TEXT.search(chunk.source)]
    units += [
        Unit(
            s.chunk.label,
            s.node.lineno,
            sorted(s.defines),
            marshal.dumps(s.code),
            sorted(s.uses),
            _always_matters(s.node),
            _is_dynamic(s.code),
        )
        for s in kept
    ]
    names = frozenset(name for s in kept for name in s.defines)
    trees = [tree for _, tree in pieces]
    elsewhere = _seen_elsewhere(chunks, pieces, wanted - answered - broken.keys(), names - wanted)
    for place, stub in idle.items():
        for name in stub.defines:
            if place > max(last.get(name, 0), last.get("*", 0) if name in imported else 0):
                site = Site(stub.chunk.label, stub.node.lineno)
                elsewhere[name] = f"the untouched stub, {site}, does not count; delete it"
    return Definitions(Program(units=units), names, broken, unparsed, trees, elsewhere)


#: Text that may read itself, as ``torch.jit.script`` and ``inspect.getsource`` do.
_READS_TEXT = re.compile(r"\b(?:jit|inspect)\b")


def _text_unit(chunk: Chunk) -> Unit:
    """Return a statement that gives Python the text of a piece, which no rank has as a file."""
    entry = len(chunk.source), None, chunk.source.splitlines(keepends=True), chunk.label
    text = f"__import__('linecache').cache[{chunk.label!r}] = {entry!r}"
    return Unit(chunk.label, 1, [], marshal.dumps(compile(text, chunk.label, "exec")), always=True)


def without_experiments(tree: ast.Module) -> ast.Module:
    """Return a module without its statements that import the grader or call it.

    A module that another imports is run as a whole, as in plain Python; a check at its end, of
    what it defines itself, is no part of what the other asks for.
    """
    graders = _GRADERS - {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    tree.body = [n for n in tree.body if not (_calls_grader(n, graders) or _imports_grader(n))]
    return tree


def _future_flags(tree: ast.Module) -> int:
    """Return the compiler flags of ``from __future__`` imports, which later cells inherit."""
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                feature = getattr(__future__, alias.name, None)
                flags |= feature.compiler_flag if feature else 0
    return flags


def _without_experiments(statements: list[_Statement]) -> list[_Statement]:
    """Drop method calls on objects that the submission did not assign to a name itself.

    ``table.append(1)`` changes a table that an assignment made, and so defines it as well;
    ``torch.manual_seed(1)`` and ``verdict.show()`` change no value of the submission's.  In a block
    such a call stays, if the block is kept, but it does not make the block a definition of torch.
    """
    assigned: set[str] = set()
    kept = []
    for statement in statements:
        if isinstance(statement.node, ast.Expr) and not statement.calls_on <= assigned:
            continue
        kept.append(statement)
        assigned |= statement.assigns
        assigned -= statement.declares
        statement.defines |= statement.calls_on & assigned
    return kept


#: The fields of a statement that hold other statements.
_BLOCKS = ("body", "orelse", "finalbody")

#: How much two names have to be alike for the one to be taken for the other, misspelt; the second
#: where the right one has a stub, since there are helpers with names like it.
_ALIKE, _NEARLY_EQUAL = 0.85, 0.93


def _seen_elsewhere(
    chunks: Iterable[Chunk],
    pieces: Sequence[tuple[str, ast.Module]],
    absent: Collection[str],
    defined: Iterable[str],
) -> dict[str, str]:
    """Return a sentence on each absent name that is defined where no rank looks, or misspelt.

    Args:
        chunks: the submission.
        pieces: label and syntax tree of each piece that parses.
        absent: the names that are wanted, and missing or stubs at module level.
        defined: the names that are not wanted and are there.
    """
    top: dict[str, Site] = {}
    inner: dict[str, tuple[str, Site]] = {}
    for label, tree in pieces:
        for node, inside in _bindings(tree.body):
            site = Site(label, node.lineno)
            for name in _declared([node]) | _assigned(_targets(node)):
                if not inside:
                    top[name] = site
                elif name not in inner:
                    inner[name] = inside, site
    candidates = {name: site for name, site in top.items() if name in set(defined)}
    found: dict[str, str] = {}
    for chunk in chunks:
        label, mend, text = chunk.label, chunk.mend, chunk.source
        if not mend:
            label, mend, text = f"a comment of {label}", "take the # signs away", _comments(text)
        for name, line in _written(text, absent):
            found[name] = f"an answer stands in {label}, line {line}; {mend}"
    for name in absent - found.keys():
        if name in inner:
            inside, site = inner[name]
            found[name] = f"it is defined inside {inside}, {site}, and must be at module level"
        elif near := _nearest_name(name, candidates, _NEARLY_EQUAL if name in top else _ALIKE):
            odd = [unicodedata.name(c, "") for c in near if not c.isascii()]
            told = f" (in which one letter is {odd[0]})" if odd and odd[0] else ""
            found[name] = f"did you mean it by {near}{told}, {candidates[near]}? Call it {name}"
    return found


#: The first line of a function, a class, or a text in another language.
_BEGINS = re.compile(
    r"[^\S\n]*(?:(?:async +)?(?:def|class) +(\w+) *[(:]|(\w+) *= *[rR]?(\"\"\"|'''))"
)

#: How often a name is looked at in one text, each time with what follows it.
_MOST_SEEN = 20

_COMMENT = re.compile(r"([^\S\n]*)# ?(.*)")


def _comments(text: str) -> str:
    """Return what would be code without the # before it, each line in its place."""
    lines = map(_COMMENT.fullmatch, text.splitlines())
    return "\n".join(line[1] + line[2] if line else "" for line in lines)


def _written(text: str, wanted: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield name and line of what text would define as code, but for stubs and mere headings."""
    lines = text.splitlines()
    seen = Counter[str]()
    for place, first in enumerate(lines):
        match = _BEGINS.match(first)
        name = str(match[1] or match[2]) if match else ""
        if not match or name not in wanted or seen[name] == _MOST_SEEN:
            continue
        seen[name] += 1
        if match[2]:
            rest = "\n".join([first[match.end() :], *lines[place + 1 :]])
            is_answer = not is_stub(rest.partition(match[3])[0])
        else:
            depth = len(first) - len(first.lstrip())
            deeper = re.compile(rf"\s{{{depth + 1}}}|\s*\)|\s*\Z")
            body = list(takewhile(deeper.match, islice(lines, place + 1, None)))
            try:
                code = compile(textwrap.dedent("\n".join([first, *body])), "", "exec")
                is_answer = not _is_stub(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                is_answer = any(map(str.strip, body))
        if is_answer:
            yield name, place + 1


def _is_stub(code: types.CodeType) -> bool:
    """Return whether all that a statement or a class defines are stubs, see ``is_stub``."""
    if code.co_flags & inspect.CO_OPTIMIZED:
        cells = tuple(types.CellType() for _ in code.co_freevars)
        return is_stub(types.FunctionType(code, {}, code.co_name, None, cells))
    found = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    texts = [one for one in code.co_consts if isinstance(one, str) and "raise NotImpl" in one]
    return bool(found or texts) and all(map(_is_stub, found)) and all(map(is_stub, texts))


def _nearest_name(name: str, candidates: Iterable[str], alike: float) -> str:
    """Return the name that is most like another one, or an empty string."""

    def plain(text: str) -> str:
        return text.replace("_", "").lower()

    by_letters = {plain(other): other for other in candidates}
    close = difflib.get_close_matches(plain(name), by_letters, 1, alike)
    return by_letters[close[0]] if close else ""


def _bindings(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements of a body, and of blocks in it, with what they are inside of."""
    ahead = [(node, "") for node in reversed(body)]
    while ahead:
        node, inside = ahead.pop()
        yield node, inside
        if isinstance(node, ast.ClassDef):
            inside = f"class {node.name}"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = f"function {node.name}"
        elif isinstance(node, ast.If) and _is_main_guard(node):
            inside = 'the block `if __name__ == "__main__"`'
        elif isinstance(node, ast.While):
            inside = inside or "a `while` loop"
        blocks = [node, *getattr(node, "handlers", [])]
        parts = [getattr(one, part, []) for one in blocks for part in _BLOCKS]
        ahead += reversed([(one, inside) for part in parts for one in part])


def _targets(node: ast.stmt) -> list[ast.expr]:
    """Return the targets of an assignment of a function or a class to a name."""
    return list(node.targets) if isinstance(node, ast.Assign) else []


def reason(error: BaseException) -> str:
    """Return why source does not parse."""
    return error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"


def _needed(statements: list[_Statement], wanted: set[str]) -> list[_Statement]:
    """Drop the optional statements whose names no kept statement uses."""
    needed = set(wanted)
    kept = [s for s in statements if not s.optional]
    for statement in kept:
        needed |= statement.uses
    left = [s for s in statements if s.optional]
    while True:
        newly = [s for s in left if s.defines & needed]
        if not newly:
            break
        left = [s for s in left if s not in newly]
        kept += newly
        for statement in newly:
            needed |= statement.uses
    place = {id(s): i for i, s in enumerate(statements)}
    return sorted(kept, key=lambda s: place[id(s)])


def _kept(
    chunk: Chunk, node: ast.stmt, flags: int, graders: frozenset[str]
) -> Iterator[_Statement]:
    """Yield the statement as it is kept, if it is, compiled on its own."""
    slim = _kept_parts(node, graders)
    if slim is None:
        return
    nodes = list(_eager(slim, into_classes=False))
    declares, assigns = _declared(nodes), _assigned(nodes)
    defines, optional = declares | assigns | _stored_in(nodes), _has_effect(slim)
    calls_on = {name for n in nodes for name in _mutated(n)}
    module = rewrite(ast.Module([slim], []))
    try:
        code = compile(module, chunk.label, "exec", flags, dont_inherit=True)
    except SyntaxError:
        # IPython allows await outside of functions, but such a statement defines nothing
        compile(
            module, chunk.label, "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        return
    uses = set(_globals_used(code))
    stub = _is_stub(code)
    yield _Statement(chunk, slim, defines, code, declares, assigns, calls_on, uses, optional, stub)


def _kept_parts(node: ast.stmt, graders: frozenset[str]) -> ast.stmt | None:
    """Return a statement with only the kept parts in it, or None if no part is kept."""
    if _calls_grader(node, graders) or _imports_grader(node):
        return None
    simple = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if isinstance(node, (*simple, ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return node
    if type(node).__name__ == "TypeAlias":
        return node
    if isinstance(node, ast.Expr):
        return node if _mutated(node) else None
    if isinstance(node, ast.If):
        return None if _is_main_guard(node) else _slim_block(node, graders, "body", "orelse")
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        for handler in node.handlers:  # type: ignore[attr-defined]
            handler.body = _slim_body(handler.body, graders) or [_pass_at(handler)]
        return _slim_block(node, graders, "body", "orelse", "finalbody")
    if isinstance(node, (ast.For, ast.With)):
        return _slim_block(node, graders, "body")
    return None


def _slim_block(node: ast.stmt, graders: frozenset[str], *parts: str) -> ast.stmt | None:
    bodies = {part: _slim_body(getattr(node, part), graders) for part in parts}
    handlers = [s for h in getattr(node, "handlers", []) for s in h.body]
    if not any(bodies.values()) and all(isinstance(s, ast.Pass) for s in handlers):
        return None
    for part, body in bodies.items():
        setattr(node, part, body)
    if not node.body:  # type: ignore[attr-defined]
        node.body = [_pass_at(node)]  # type: ignore[attr-defined]
    return node


def _slim_body(body: list[ast.stmt], graders: frozenset[str]) -> list[ast.stmt]:
    keep_as_is = (ast.Pass, ast.Raise)
    found = [node if isinstance(node, keep_as_is) else _kept_parts(node, graders) for node in body]
    kept = [node for node in found if node is not None]
    return [] if all(isinstance(node, keep_as_is) for node in kept) else kept


def _pass_at(node: ast.AST) -> ast.Pass:
    return ast.copy_location(ast.Pass(), node)


def _is_main_guard(node: ast.If) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def _imports_grader(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return all(alias.name.split(".")[0] in OURS for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS


def _eager(node: ast.AST, into_classes: bool = True) -> Iterator[ast.AST]:
    """Yield the nodes that run when the statement runs, without the bodies of functions.

    They come in no particular order.
    """
    closed: tuple[type[ast.AST], ...] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    if not into_classes:
        closed = (*closed, ast.ClassDef)
    ahead = [node]
    while ahead:
        node = ahead.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(node, closed):
                continue
            items = value if isinstance(value, list) else (value,)
            ahead += [item for item in items if isinstance(item, ast.AST)]


def _root_name(node: ast.expr) -> str | None:
    """Return ``table`` for ``table``, ``table[0]`` and ``table.rows.append``."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _calls_grader(node: ast.stmt, graders: frozenset[str]) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    blocks = (ast.If, ast.Try, ast.For, ast.With)
    parts: list[ast.AST] = [node]
    if isinstance(node, blocks):
        # the statements inside are looked at one by one
        inside = {
            id(s) for part in ("body", "orelse", "finalbody") for s in getattr(node, part, [])
        }
        parts = [
            child
            for child in ast.iter_child_nodes(node)
            if id(child) not in inside and not isinstance(child, ast.ExceptHandler)
        ]
    for part in parts:
        for n in _eager(part):
            if isinstance(n, ast.Call):
                called = n.func
                name = called.attr if isinstance(called, ast.Attribute) else _root_name(called)
                owner = _root_name(called)
                if owner == "get_ipython" or (name in graders and owner in (name, *OURS)):
                    return True
    return False


def _mutated(node: ast.AST) -> set[str]:
    """Return ``{"table"}`` for ``table.append(1)``, and an empty set for all other statements."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        root = _root_name(call.func)
        return {root} if root else set()
    return set()


def _stored_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of the objects in which nodes store."""
    stores = (
        _root_name(n)
        for n in nodes
        if isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store)
    )
    return {name for name in stores if name}


def _assigned(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that nodes assign to."""
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _declared(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of the functions, classes and modules that nodes bind."""
    names: set[str] = set()
    for n in nodes:
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(n.name)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in n.names)
    return names


def bound(tree: ast.Module) -> set[str]:
    """Return the names that the statements of a module bind, without those of inner blocks."""
    return _declared(tree.body) | _assigned(n for node in tree.body for n in _targets(node))


def _has_effect(node: ast.stmt) -> bool:
    """Return whether running the statement calls something, so that it is kept only if needed."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    definitions = [n for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return not definitions and any(
        isinstance(n, (ast.Call, ast.Await, ast.For)) for n in _eager(node)
    )


#: Names of modules and functions by which code finds names that it does not mention.
_DYNAMIC = frozenset(
    {
        *("__builtins__", "__dict__", "__globals__", "__import__", "__main__", "builtins", "dir"),
        *("eval", "exec", "f_globals", "gc", "getattr", "globals", "importlib", "inspect"),
        *("locals", "pickle", "sys", "vars", MODULE),
    }
)


def _is_dynamic(code: types.CodeType) -> bool:
    """Return whether code may find names that it does not mention."""
    inside = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return not _DYNAMIC.isdisjoint(code.co_names) or any(map(_is_dynamic, inside))


def _always_matters(node: ast.stmt) -> bool:
    """Return whether a statement may matter to functions that do not mention its names.

    A class or a decorator may register what it makes, a default value may be a call, a star
    binds any name, and a student's own module may change others when it is imported.
    """
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return _imports_own(node)
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef):
            return True
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            inner.decorator_list or any(isinstance(n, ast.Call) for n in _eager(inner.args))
        ):
            return True
    return False


def _imports_own(node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether a statement imports a student's own module, or names that it does not say."""
    if isinstance(node, ast.Import):
        return not all(_is_library(alias.name.split(".")[0]) for alias in node.names)
    star = any(alias.name == "*" for alias in node.names)
    return star or node.level > 0 or not _is_library((node.module or "").split(".")[0])


@functools.cache
def _is_library(name: str) -> bool:
    """Return whether a module belongs to Python or is installed here."""
    if name in sys.stdlib_module_names:
        return True
    spec = importlib.machinery.PathFinder.find_spec(name)
    return spec is not None and bool(spec.origin) and not is_students(str(spec.origin))


#: Instructions that read a global name; the last is in classes and annotations, from Python 3.12.
_READS_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


def _globals_used(code: types.CodeType) -> Iterator[str]:
    """Yield the global names that a code object reads, also in functions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS_GLOBAL:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_used(constant)
