"""Names of students and files: data, never paths.

Names come as bytes, as a file system or an archive holds them.  :func:`shown`
gives the text for people, :func:`key` the name under which a program stores.

Which of two files is the newer
-------------------------------
Modification times cannot tell, since downloads and archives set them as they
like.  Names can, and :func:`age` puts them in order.  It takes the marks of
people and programs off the file's name, without its ending:

- dates and times, ``2024-05-01`` or ``20240501_1530``;
- counters of resubmissions: Canvas' ``-1`` (also put on where two names in one
  download are equal), a browser's ``(1)``, Jupyter's ``-Copy1``, a desktop's
  ``copy 2``, ``Copy of``.

Then files are ordered by what is left of the name, in natural order (``lab2``
before ``lab10``); among equals a higher counter is newer, whatever the dates
say; then a later date; then a later upload where the system numbers them; then
the folders and archives around the file, by the same rule.  Capitals and
Unicode's forms make no difference until nothing else does.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from grader.errors import code_kind

#: Characters of a name that people are shown.
_LONGEST, _END = 255, 20

#: Characters of a key's readable part, and of the hash that makes it unique.
_READABLE, _HASH = 40, 16

_KEY = re.compile(rf"(?=[a-z0-9-]{{1,{_READABLE}}}-[0-9a-f]{{{_HASH}}}\Z)[a-z0-9]+(-[a-z0-9]+)+")

_DATE = re.compile(
    r"[-_. ]*(?<!\d)(20\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])"
    r"(?:[-_ T.]*([01]\d|2[0-3])[-_:.h]?([0-5]\d)(?:[-_:.m]?([0-5]\d))?)?(?!\d)",
    re.ASCII | re.IGNORECASE,
)
_COUNTER = re.compile(
    r"(?:\s*\((\d{1,9})\)|[-_\s]+copy[-_\s]*(\d{0,9})|(?<=.)-(\d{1,3}))\s*$", re.ASCII
)
_COPY_OF = re.compile(r"^copy(?: \((\d{1,9})\))? of\s+(?=.)", re.ASCII)

_COPY = re.compile(r"(?<=.)(?: ?\(\d{1,9}\)|[-_ ]+copy[-_ ]*\d{0,9})\Z", re.ASCII)

#: Small letters that look like Latin ones: Cyrillic, Greek, and the Turkish i without a dot.
_LATIN = str.maketrans(
    "авекмнорстухѕіјһӏԁԛԝ" + "αβεζηικμνορτυχ" + "ı", "abekmhopctyxsijhldqw" + "abezhikmnoptyx" + "i"
)

#: What :func:`shown` makes of a character that it escapes.
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(00(?:0[0-9a-f]|10)[0-9a-f]{4}))")

#: Letters, marks and symbols that are invisible, though Unicode's category of them says otherwise.
_BLANK = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")

#: Unicode categories of characters that are invisible or reverse a line of text.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def raw(name: str) -> bytes:
    """Return a name as bytes, lone surrogates included."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")


def shown(name: bytes) -> str:
    """Return a name for people: one line of valid Unicode without invisible characters.

    It may still hold quotes, ``<``, ``=`` and slashes: code that writes HTML or
    CSV escapes it, and no code uses it as a path.
    """
    text = name.decode("utf-8", "backslashreplace")
    text = "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)
    # the end says what kind of file it is
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _END - 1]}…{text[-_END:]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def few(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence: the first ones, and how many more there are."""
    more = [f"{len(names) - most} more"] * (len(names) > most)
    *first, last = [*names[:most], *more]
    return f"{', '.join(first)} and {last}" if first else last


def key(identity: bytes, name: str) -> str:
    """Return a name that is a safe file name everywhere, and unique to an identity.

    Args:
        identity: the exact bytes that tell a student from all others.
        name: the student's name, from which the readable part is made.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:_READABLE].strip("-") or "student"
    return f"{slug}-{hashlib.sha256(identity).hexdigest()[:_HASH]}"


def is_key(text: str) -> bool:
    """Return whether a text has the form of a result of :func:`key`."""
    return _KEY.fullmatch(text) is not None


def lookalike(name: str) -> str:
    """Return a text that is equal for names that people may take for the same.

    Letters of other alphabets count as the Latin ones that they look like, and characters that
    nobody sees do not count.  ``Ann (1)`` looks like ``Ann``: a browser or a desktop counts a
    second file of one name so.

    Args:
        name: a name as :func:`shown` gives it.
    """
    seen = "".join(c for c in _folded(name) if not _is_unseen(c))
    text = " ".join(unicodedata.normalize("NFKD", seen).translate(_LATIN).split())
    return _COPY.sub("", text) or text or name


def folded(name: str) -> str:
    """Return a text that is equal for spellings of a name that people take for the same."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def first_last(name: str) -> str:
    """Return ``Last, First`` as ``first last``, folded; other names keep their order."""
    last, _, first = name.partition(",")
    return folded(f"{first} {last}")


def oddities(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return what tells a name from others that look the same: characters, by Unicode's names.

    They are those that nobody sees, and letters that look like Latin ones, if no other name has
    them.
    """
    common = set().union(*map(_folded, others))
    odd = (c for c in _folded(name) if c not in common and (_is_unseen(c) or ord(c) in _LATIN))
    return tuple(dict.fromkeys(unicodedata.name(c, f"U+{ord(c):04X}") for c in odd))


def _folded(name: str) -> str:
    """Return a name in lower case, with the unseen characters that :func:`shown` has escaped."""

    def decoded(escape: re.Match[str]) -> str:
        character = chr(int(escape[1] or escape[2] or escape[3], 16))
        return character if _is_unseen(character) else escape[0]

    return unicodedata.normalize("NFKC", _ESCAPE.sub(decoded, name)).casefold()


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or _BLANK.match(character) is not None


def without_marks(name: str) -> str:
    """Return a name, without its file's ending, without the marks that :func:`age` goes by."""
    return _marks(name)[0]


def age(label: str, upload: int = 0) -> tuple[Any, ...]:
    """Return a key that sorts files from old to new by the rule in this module's docstring.

    Args:
        label: the file's path within the submission, with ``/``.
        upload: the number that the system gave to the upload, if it has one.
    """
    *folders, name = label.split("/")
    plain, kind = code_kind(name)
    stem, counters, date = _marks((plain if kind else name.rpartition(".")[0]) or name)
    return (
        _natural_key(stem),
        counters,
        date,
        upload,
        tuple((_natural_key(s), c, d) for s, c, d in map(_marks, folders)),
        label,
    )


@lru_cache(maxsize=4096)
def module_file_name(name: str) -> str:
    """Return the name of a Python file as Python imports it, without the marks of copies.

    A name that Python can import as it is stays; ``helpers-1.py`` is ``helpers.py``.
    """
    stem, _, ending = name.rpartition(".")
    if not stem.isidentifier():
        for mark in (_DATE, _COUNTER, _COPY_OF):
            # marks are known in lower case, and the module's name may have capitals
            while found := mark.search(stem.lower()):
                stem = stem[: found.start()] + stem[found.end() :]
    return f"{stem}.{ending.lower()}"


def _marks(name: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Return a name without its marks, then its counters and its date."""
    rest = unicodedata.normalize("NFC", name).casefold()
    for ending in (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz"):
        rest = rest.removesuffix(ending)
    date: tuple[int, ...] = ()
    found = _DATE.search(rest)
    if found:
        date = tuple(int(found[i] or 0) for i in (1, 3, 4, 5, 6, 7))
        rest = rest[: found.start()] + rest[found.end() :]
    counters: list[int] = []
    while len(counters) < 8 and (found := _COUNTER.search(rest)):
        counters.insert(0, int(found[1] or found[2] or found[3] or 1))
        rest = rest[: found.start()]
    if found := _COPY_OF.search(rest):
        counters.append(int(found[1] or 1))
        rest = rest[found.end() :]
    return rest.strip(" -_."), tuple(counters), date


def _natural_key(text: str) -> tuple[Any, ...]:
    """Return a key for natural order, in which numbers of any length count as numbers."""
    parts = re.split(r"([0-9]+)", text)
    return tuple(
        (len(part.lstrip("0")), part.lstrip("0")) if i % 2 else part for i, part in enumerate(parts)
    )
