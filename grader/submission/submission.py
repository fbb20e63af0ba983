"""A submission: a live function, a Python file or a notebook, as definitions and fingerprints.

``Submission.from_bytes`` needs nothing but the bytes of a file and takes a bounded time, so that
it can run in the process in which submitted files are parsed.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
import io
import itertools
import json
import keyword
import marshal
import re
import tokenize
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.errors import MissingPackage, code_kind
from grader.submission.definitions import Broken, Chunk, select
from grader.submission.modules import Beside, FolderOnDisk, ReceivedFiles, follow_imports
from grader.submission.outline import Outline, outline, outline_live
from grader.submission.source_files import source_contents
from headcount.core.errors import UnreadableFile
from headcount.core.packing import live_program
from headcount.core.program import Program
from headcount.core.source_locations import live_line
from headcount.core.verdict import Site

__all__ = ["K", "Submission", "W", "fingerprints", "live_program", "prints_of", "tokens"]

#: Cell magics that run their body as Python in the notebook's namespace.
_PYTHON_MAGICS = frozenset({"time", "capture", "prun"})

#: The first line of a notebook's cell that says how to run it.
_CELL_MAGIC = re.compile(r"^%%[^\n]*", re.MULTILINE)

#: The same where it writes the cell into a module, or with -a at the end of one.
_WRITES = re.compile(r"\s*%%(?:writefile|file) +(-a +)?[\"']?(?:\./)?([\w/.]+\.py)[\"']?[^\S\n]*\n")

#: Characters from which lines are quoted: millions of lines would take gigabytes.
_QUOTABLE = 1 << 20

_PERCENT = re.compile(r"^# ?%%", re.MULTILINE)


@dataclass(frozen=True)
class Submission:
    """Definitions to be judged.

    Attributes:
        label: its name in reports: a path, or the name of a function.
        program: the code, for the ranks.
        names: the names that it defines.
        broken: by name, the error in a last definition that does not parse.
        unparsed: every piece that does not parse.
        sources: the text of each file or cell, from which lines are quoted.
        prints: fingerprints by exercise, where they were asked for.
        outlines: outlines of each exercise's functions, for hints.
        elsewhere: by name of an exercise, where an answer or a stub stands that does not count, or
            what is called nearly so.
    """

    label: str
    program: Program
    names: frozenset[str]
    broken: dict[str, Broken] = field(default_factory=dict)
    unparsed: tuple[Broken, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    prints: dict[str, list[int]] = field(default_factory=dict)
    outlines: dict[str, list[Outline]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_function(cls, function: Callable[..., Any] | str, name: str) -> Submission:
        """Return a function as it is now, with all that it uses of the caller's; or a text.

        Raises:
            RequestError: it cannot travel to another process.
        """
        found = {name: outline_live(function)} if callable(function) else {}
        program = live_program(function)
        return cls(name, program, frozenset({name}), outlines=found)

    @classmethod
    def from_file(cls, path: str | Path, wanted: Iterable[str] = ()) -> Submission:
        """Return the definitions of a ``.py`` file or a notebook, with what it imports beside it.

        Args:
            path: the path of the file.
            wanted: names to keep however they are defined, see
                :func:`grader.submission.definitions.select`.

        Raises:
            UnreadableFile: the path is not that of such a file.
        """
        beside = FolderOnDisk(Path(path).parent)
        return cls.from_bytes(source_contents(Path(path)), str(path), wanted, beside)

    @classmethod
    def from_bytes(
        cls, data: bytes, label: str, wanted: Iterable[str] = (), beside: Beside | None = None
    ) -> Submission:
        """Return the definitions in the contents of a file whose path is ``label``.

        Args:
            data: the contents.
            label: the path, whose ending says whether it is a notebook.
            wanted: as of :meth:`from_file`.
            beside: the files that it may import.

        Raises:
            UnreadableFile: they are no Python and no notebook, or import too much.
        """
        if not data.strip():
            raise UnreadableFile(f"{label} is empty")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UnreadableFile(f"{label} is not text in UTF-8; is it a binary file?") from None
        wanted, (_, kind) = list(wanted), code_kind(label)
        if kind == ".ipynb":
            chunks = _cells(text, label)
            beside = ReceivedFiles(_written_files(chunks), beside)
        elif kind == ".py":
            chunks = [Chunk(Path(label).name, text)]
        else:
            raise UnreadableFile(f"{label} is neither a .py file nor an .ipynb notebook")
        found = select(chunks, wanted)
        if kind == ".py" and found.unparsed and any(mark in text for mark in "%!?"):
            # copied from a notebook's cells, or for IPython's %run
            chunks = [replace(chunks[0], source=_without_magics(_CELL_MAGIC.sub("", text)))]
            found = select(chunks, wanted)
        if kind == ".py" and found.unparsed and _PERCENT.search(text):
            chunks = _percent_cells(chunks[0])
            found = select(chunks, wanted)
        try:
            imported = follow_imports(found.trees, beside or ReceivedFiles({}))
        except UnreadableFile as error:
            raise UnreadableFile(f"{label} cannot be read: {error}") from None
        if starred := imported.starred.intersection(wanted):
            found = select(chunks, wanted, starred)
        chunks = [chunk for chunk in chunks if not chunk.mend]
        program = Program(
            units=found.program.units,
            label=Path(label).name,
            modules=imported.modules,
            hidden=imported.hidden,
        )
        return cls(
            label,
            program,
            found.names | starred,
            found.broken,
            tuple(found.unparsed),
            imported.sources | {chunk.label: chunk.source for chunk in chunks},
            outlines=outline((chunk.source for chunk in chunks), wanted),
            elsewhere=found.elsewhere,
        )

    def defined(self, name: str) -> Any:
        """Run the definitions in this process, and return what has a name; ``None`` if nothing has.

        A statement that fails costs only what it defines. The definitions count as those of
        ``__main__``, so that they travel to other processes as if they had been written there.
        """
        names: dict[str, Any] = {"__name__": "__main__"}
        for statement in self.program.units:
            with contextlib.suppress(Exception):
                exec(marshal.loads(statement.code), names)
        return names.get(name)

    def quote(self, site: Site) -> str:
        """Return the text of a line, or an empty string where it is not known."""
        if self.program.live:
            return live_line(site)
        lines = self._lines.get(site.file, [])
        return lines[site.line - 1].strip() if 0 < site.line <= len(lines) else ""

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        """The lines of each file, its own before those it imports, as far as they are quoted."""
        lines, left = {}, _QUOTABLE
        for name, text in reversed(self.sources.items()):
            lines[name] = text[:left].splitlines()
            left -= min(left, len(text))
        return lines


def _percent_cells(whole: Chunk) -> list[Chunk]:
    """Return the percent cells of a Python file."""
    text = whole.source
    starts = [0, *(match.start() for match in _PERCENT.finditer(text)), len(text)]
    pieces = []
    for start, end in itertools.pairwise(starts):
        # empty lines before it keep the line numbers of the file
        pieces.append(Chunk(whole.label, "\n" * text.count("\n", 0, start) + text[start:end]))
    return pieces


def _cells(text: str, label: str) -> list[Chunk]:
    """Return the cells of a notebook."""
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableFile(f"{label} is no notebook: it does not hold JSON") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise UnreadableFile(f"{label} is no notebook: its JSON has no nbformat")
    if notebook["nbformat"] != 4:
        raise UnreadableFile(
            f"{label} is a notebook of format {notebook['nbformat']}; format 4 is needed:"
            f" jupyter nbconvert --to notebook --nbformat 4 {label}"
        )
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise UnreadableFile(f"{label} is no notebook: it has no list of cells")
    chunks, number = [], 0
    for cell in (one for one in cells if isinstance(one, dict)):
        source, kind = _source(cell), cell.get("cell_type")
        if kind != "code":
            place = f"after cell {number}" if number else "at the start"
            chunks.append(Chunk(f"a {kind} cell {place}", source, "make that a code cell"))
            continue
        number += 1
        code, mend = _without_magics(source), ""
        if not code and source.strip():
            file = _WRITES.match(source)
            mend = "it needs a cell without the magic at its start"
            code, mend = source, f"it needs `from {Path(file[2]).stem} import *`" if file else mend
        chunks.append(Chunk(f"cell {number}", code, mend))
    return chunks


def _written_files(chunks: Iterable[Chunk]) -> dict[str, bytes]:
    """Return the modules that cells of a notebook write beside it."""
    written: dict[str, bytes] = {}
    for cell in (_WRITES.match(chunk.source) for chunk in chunks):
        if cell:
            text = cell.string[cell.end() :].encode("utf-8", "replace")
            written[cell[2]] = written.get(cell[2], b"") * bool(cell[1]) + text
    return written


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _without_magics(source: str) -> str:
    """Return a cell as Python, with every line in its place."""
    lines = source.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in _PYTHON_MAGICS:
            return ""
        lines[first] = "\n"
    plain = "".join(lines)
    if not any(mark in source for mark in "%!?") or _parses(plain):
        return plain
    try:
        from IPython.core import inputtransformer2 as ipython
    except ModuleNotFoundError as error:
        missing = MissingPackage.from_error("a cell with %, ! or ?", error)
        raise UnreadableFile(str(missing or error)) from None
    manager = ipython.TransformerManager()  # type: ignore[no-untyped-call]
    # other clean-ups would drop leading lines, or put a cell into a string; those are done above
    manager.cleanup_transforms = [ipython.classic_prompt, ipython.ipython_prompt]
    try:
        return str(manager.transform_cell(plain))
    except SyntaxError:
        # then it is no Python either, and the parser reports where
        return plain


def _parses(source: str) -> bool:
    """Return whether a cell is Python as it stands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape that is none; whoever runs the cell sees it
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return False
    return True


# Fingerprints of functions, by which copies are found even if names were changed. --
#
# A function becomes a sequence of tokens, without comments and docstrings, in which all its own
# names are equal; a stub has no tokens.  Every run of K tokens is hashed, and of every W hashes in
# a row the smallest is kept.  So every copied passage of at least K + W − 1 tokens leaves a common
# fingerprint, and shorter ones may be missed.  The method is winnowing: Schleimer, Wilkerson and
# Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD 2003,
# https://doi.org/10.1145/872757.872770.

#: Tokens of a fingerprint, and hashes of a window: copies of 19 tokens are found.
K, W = 12, 8

#: Limit on the fingerprints of a function; the longest solution has a third of that.
_MOST_PRINTS = 400

_BUILTINS = frozenset(dir(builtins))
_LAYOUT = frozenset({tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING})


def prints_of(sources: Iterable[str], names: Iterable[str]) -> dict[str, list[int]]:
    """Return the fingerprints of functions by name; of a name's last definition.

    Args:
        sources: pieces of Python; those that do not parse are skipped.
        names: the names of the functions.
    """
    wanted = set(names)
    found: dict[str, list[int]] = {}
    for source in sources:
        try:
            tree = ast.parse(source)
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name in wanted:
                    found[node.name] = fingerprints(tokens(node))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return found


def tokens(function: ast.FunctionDef) -> list[str]:
    """Return a function as tokens, in which all its own names are equal, and all numbers."""
    body = list(function.body)
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    # source made anew, so that layout, brackets and quotes make no difference
    text = "\n".join(ast.unparse(node) for node in body)
    found: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT:
            continue
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            # the names of attributes and builtins say what is done; own names do not
            known = token.string in _BUILTINS or (found and found[-1] == ".")
            found.append(token.string if known else "name")
        elif token.type == tokenize.NUMBER:
            found.append("0")
        elif token.type == tokenize.STRING:
            found.append("''")
        elif token.type == tokenize.INDENT:
            found.append("{")
        elif token.type == tokenize.DEDENT:
            found.append("}")
        elif token.string:
            found.append(token.string)
    return found


def fingerprints(sequence: list[str]) -> list[int]:
    """Return the winnowed hashes of a sequence of tokens, sorted, none twice."""
    hashes = [_hash(sequence[i : i + K]) for i in range(len(sequence) - K + 1)]
    if len(hashes) <= W:
        return sorted({min(hashes)}) if hashes else []
    windows = (hashes[i : i + W] for i in range(len(hashes) - W + 1))
    return sorted({min(window) for window in windows})[:_MOST_PRINTS]


def _hash(words: list[str]) -> int:
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "replace"), digest_size=6)
    return int.from_bytes(digest.digest(), "big")
