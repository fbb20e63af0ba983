"""The verdicts of a class: which of them are still valid, and where they are kept.

The store is one SQLite file, with one transaction for each verdict.  A verdict is kept under a
fingerprint of everything that it depends on: the submission, the exercise, the grader, the inputs,
the limits.  A verdict that is found there is not judged again.  Whatever ends a grader, what it has
finished is kept, and SQLite itself repairs a file that was being written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import grader
import headcount
from grader.classroom.assignment import Assignment
from grader.classroom.decisions import DecisionTable
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.files import locked, make_private_folder
from headcount.core.errors import HeadcountError, RequestError

if TYPE_CHECKING:
    from grader.exercise.declaration import Exercise  # torch, which an export does without

# What a verdict depends on, as one short text. ------------------------------------
#
# A stored verdict is used again only where grading anew would come to the same one.  That depends
# on the modules that judging reaches, by imports or by names in strings, and on the packages that
# these import.  Nothing else counts: no page, no style, no command.  Of the course, an exercise
# depends on its own chapter alone: its module with what that imports, its help, its known answers.

#: Bytes of a hash, and of a seed.
_SIZE = 16

_EXERCISES = "grader.course.chapters"

#: The module that has a submission judged.
_JUDGING = "grader.classroom.grading"


def fingerprint(exercise: Exercise, digest: str, seed: int, limits: tuple[float, ...]) -> str:
    """Return a text that is equal for two gradings just if they would come to the same verdict.

    Args:
        exercise: the exercise that is judged.
        digest: hash of the submission's files.
        seed: seed of the inputs.
        limits: the values of :meth:`grader.classroom.messages.Limits.key`.
    """
    sources = _installed()
    return _hash(sources.engine, sources.declaration(exercise), digest, seed, limits)


def seed_of_inputs(secret: int, digest: str) -> int:
    """Return the seed of the inputs of one hand-in, which tells nothing about any other's.

    Files that differ in anything meet other inputs.  So whatever feedback shows of the inputs of
    one hand-in is of no use in the next, nor to anybody else; the same files meet the same.

    Args:
        secret: what the inputs of the class are drawn from.
        digest: hash of the submission's files.
    """
    return int(_hash(secret, digest), 16)


def course_mark(exercises: Mapping[str, Exercise], due: Iterable[str] = ()) -> str:
    """Return a text that is equal for courses on which a submission has the same exercises.

    Which exercises a submission is judged on follows from its files, the names and
    chapters of the course, what is due, and the grader that reads the files.

    Args:
        exercises: the exercises of the course.
        due: names of those that the assignment states; none if it states nothing.
    """
    names = [(name, exercise.chapter) for name, exercise in exercises.items()]
    return _hash(_installed().engine, names, *([sorted(due)] if due else []))


class Sources:
    """The source files of a grader, and the versions of Python and the packages that it runs on.

    Args:
        files: the contents of all files, by path: ``grader/judge/judge.py`` and so on.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        modules = {path: path.removesuffix(".py") for path in files if path.endswith(".py")}
        self._paths = {
            module.removesuffix("/__init__").replace("/", "."): path
            for path, module in modules.items()
        }
        self._judging: set[str] = set()
        reached = self._closure({_JUDGING})
        self._judging = {name for name in reached if not name.startswith(f"{_EXERCISES}.")}
        used = {top for name in self._judging for top in self._names(name) if "." not in top}
        packages = {one for top, all_of in _packages().items() if top in used for one in all_of}
        versions = [(package, version(package)) for package in sorted(packages)]
        self.engine = _hash(self._digests(self._judging), versions, platform.python_version())
        self._declarations: dict[frozenset[str], str] = {}

    @classmethod
    def read(cls, *packages: Path) -> Sources:
        """Read the sources of packages, which are called ``grader`` and ``headcount``."""
        return cls(
            {
                path.relative_to(package.parent).as_posix(): path.read_bytes()
                for package in packages
                for path in package.rglob("*")
                if "__pycache__" not in path.parts and path.is_file()
            }
        )

    def declaration(self, exercise: Exercise) -> str:
        """Return a hash of what an exercise's chapter consists of."""
        used = frozenset({f"{_EXERCISES}.ch{exercise.chapter}", exercise.inputs.__module__})
        if used not in self._declarations:
            beside = (
                f"grader/course/help/{exercise.chapter}.md",
                f"grader/course/answers/{exercise.chapter}/",
            )
            told = [(p, _digest(data)) for p, data in self._files.items() if p.startswith(beside)]
            self._declarations[used] = _hash(self._digests(self._closure(used)), sorted(told))
        return self._declarations[used]

    def _digests(self, modules: Iterable[str]) -> list[tuple[str, str]]:
        return [(name, _digest(self._files[self._paths[name]])) for name in sorted(modules)]

    def _closure(self, modules: Iterable[str]) -> set[str]:
        """Return some modules, and all that these reach, without those that all judging does."""
        found: set[str] = set()
        coming = list(modules)
        while coming:
            name = coming.pop()
            if name in self._paths and name not in found | self._judging:
                found.add(name)
                # importing a module imports the package around it
                coming += [name.rpartition(".")[0], *self._names(name)]
        return found

    def _names(self, module: str) -> list[str]:
        """Return the names by which a module may reach others."""
        return _names_in(self._files[self._paths[module]], is_door="." not in module)


@cache
def _packages() -> Mapping[str, Sequence[str]]:
    """Return the packages that are installed here by the modules that they consist of."""
    return packages_distributions()


@cache
def _installed() -> Sources:
    """Return the sources of the grader that runs here, read once."""
    packages = (grader.__file__, str(headcount.__file__))
    return Sources.read(*(Path(file).resolve().parent for file in packages))


def _hash(*parts: object) -> str:
    return _digest(repr(parts).encode())


#: Characters of what a rank printed that are kept, some more than a page shows.
_PRINTED = 4000


def _with_shown_output(verdict: ExerciseVerdict) -> ExerciseVerdict:
    """Return a verdict with as much of what ranks printed as a page shows, of the case that leads.

    What ranks print in other cases nobody sees, and it may be megabytes for each exercise.
    """
    leads = verdict.gravest_failure
    cases = tuple(
        replace(one, output=tuple(text[:_PRINTED] for text in one.output) if one is leads else ())
        for one in verdict.cases
    )
    return replace(verdict, cases=cases)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_SIZE).hexdigest()


#: An import, with its indent; what is imported for types only; the name of a module in a string.
_IMPORT = re.compile(rb"^( *)(?:from ([\w.]+) )?import (\([^)]*\)|.*)", re.MULTILINE)
_FOR_TYPES = re.compile(rb"^( *)if TYPE_CHECKING:\n(?:(?:\1 +.*)?\n)*", re.MULTILINE)
_IN_STRING = re.compile(rb"\"((?:grader|headcount)(?:\.\w+)+)\"")


@cache
def _names_in(source: bytes, is_door: bool) -> list[str]:
    """Return the names by which source may reach modules, and their packages.

    Args:
        source: the text of a module.
        is_door: whether its functions import whatever people ask for, which does not count.
    """
    source = _FOR_TYPES.sub(b"", source)
    names = [] if is_door else _IN_STRING.findall(source)
    for indent, module, what in _IMPORT.findall(source):
        if not (indent and is_door):
            words = re.findall(rb"\w[\w.]*", what)
            names += [module, *(b"%b.%b" % (module, word) for word in words)] if module else words
    return [text for name in names for text in {name.decode(), name.partition(b".")[0].decode()}]


# The database. --------------------------------------------------------------------

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS submissions (
    key TEXT PRIMARY KEY, position INTEGER NOT NULL, entry BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT NOT NULL, exercise TEXT NOT NULL, fingerprint TEXT NOT NULL,
    status TEXT NOT NULL, safe INTEGER NOT NULL, verdict BLOB NOT NULL, before BLOB,
    PRIMARY KEY (key, exercise)
) WITHOUT ROWID;
"""

#: The version of the tables above, raised when they change.
_VERSION = 2


class StoreError(HeadcountError):
    """The results cannot be written or read; what was stored before is intact."""


class StoredSubmission(msgspec.Struct, frozen=True):
    """A submission in the store.

    Attributes:
        key: a safe name, unique in the class.
        student: the student's name as it arrived; it is data, whatever it looks like.
        digest: hash of its files.
        exercises: the exercises that it is judged on, in the order of the course.
        problems: remarks on how it arrived.
        found: remarks on the contents of its files.
        email, number: the student's address and number or login, where they are known.
        fault: the grader's own failure on the whole submission, or an empty string.
        prints: fingerprints of its answers, for similarity, by exercise.
        course: the :func:`course_mark` that ``exercises`` belong to; empty before they
            are known.
        platform: name of the layout that ``number`` comes from.
        numbers: what else tells who the student is, with its kind, from the roster.
        late: names of the files or folders that the platform has marked as late.
        handed_in: when it was handed in, as ISO 8601 text, or an empty string.
        upload: the platform's number of the newest upload, or 0.
        only_in_roster: whether nothing has arrived, and only a roster says that there is a student.
        pending: whether it still has to be judged, perhaps again, since it has changed.
        source: the absolute path of the submissions that it came from.
        layout: the layout that the instructor said they have, if any.
        files: path within the submission and SHA-256 of each file, oldest first.
        limits: the :meth:`grader.classroom.messages.Limits.key` that it was judged with.
        sources: those of its files that its answers are taken from.
        kept: the exercises that an earlier hand-in answers, and this one does not touch, with the
            path of the submissions that they came from.
    """

    key: str
    student: str
    digest: str
    exercises: list[str]
    problems: list[str] = []
    found: list[str] = []
    email: str | None = None
    number: str | None = None
    fault: str = ""
    prints: dict[str, list[int]] = {}
    course: str = ""
    platform: str = ""
    numbers: list[tuple[str, str]] = []
    late: list[str] = []
    handed_in: str = ""
    upload: int = 0
    only_in_roster: bool = False
    pending: bool = False
    source: str = ""
    layout: str | None = None
    files: list[tuple[str, str]] = []
    limits: tuple[bool | int | float, ...] = ()
    sources: list[str] = []
    kept: dict[str, str] = {}


_encode = msgspec.msgpack.encode
_entry = msgspec.msgpack.Decoder(StoredSubmission)
_course = msgspec.msgpack.Decoder(tuple[tuple[str, str, float], ...])
_verdict = msgspec.json.Decoder(ExerciseVerdict)
_assignment = msgspec.json.Decoder(Assignment)


class Store:
    """The results of a class, held by one grader at a time.

    Args:
        folder: the folder of results, which is made if it does not exist.
        readonly: read only, while another process may be writing.

    Raises:
        RequestError: another grader is writing to it, or it is no store.
        StoreError: it cannot be opened.
    """

    def __init__(self, folder: Path, readonly: bool = False) -> None:
        self.path = folder / "grades.sqlite"
        self._opened = contextlib.ExitStack()
        if readonly and not self.path.is_file():
            raise RequestError(f"{folder} holds no results; `python -m grader grade` makes them")
        try:
            if not readonly:
                make_private_folder(folder)
                self._opened.enter_context(locked(folder / ".lock", wait=False))
            _make_private(self.path)
            self._database = sqlite3.connect(self.path, isolation_level=None, timeout=30)
            self._opened.callback(self._database.close)
            self._database.execute("PRAGMA synchronous = FULL")
            with self._problems():
                self._prepare(readonly)
        except BlockingIOError:
            raise RequestError(
                f"another grader is at work on {folder}; wait for it, or name another folder"
            ) from None
        except (FileExistsError, NotADirectoryError):
            self.close()
            raise RequestError(f"{folder} is no folder; name one for the results") from None
        except OSError as error:
            self.close()
            reason = error.strerror or error
            raise StoreError(f"{folder} cannot be used for results: {reason}") from None
        except sqlite3.Error as error:
            self.close()
            raise StoreError(f"{self.path} cannot be opened: {error}") from None
        except BaseException:
            self.close()
            raise

    def _prepare(self, readonly: bool) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise RequestError(
                f"{self.path} was made by another version of the grader; name a new folder"
            )
        if not readonly:
            # one by one: executescript would commit an open transaction
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """Raise SQLite's errors as :class:`StoreError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            full = "full" in str(error) or "disk I/O" in str(error)
            mend = "; make room and grade again: it goes on where it stopped" if full else ""
            raise StoreError(f"{self.path}: {error}{mend}") from None

    # Settings. ---------------------------------------------------------------

    def secret(self) -> int:
        """Return the secret that all inputs are drawn from: 128 bits, drawn the first time."""
        with self._problems():
            self._database.execute(
                "INSERT OR IGNORE INTO settings VALUES ('secret', ?)", (secrets.token_bytes(_SIZE),)
            )
            row = self._database.execute("SELECT value FROM settings WHERE name = 'secret'")
            return int.from_bytes(row.fetchone()[0], "big")

    @property
    def assignment(self) -> Assignment:
        """What the instructor has stated of the assignment, in the last grading."""
        with self._problems():
            row = self._database.execute(
                "SELECT value FROM settings WHERE name = 'assignment'"
            ).fetchone()
        return _assignment.decode(row[0]) if row else Assignment()

    @assignment.setter
    def assignment(self, assignment: Assignment) -> None:
        with self._problems():
            self._database.execute(
                "INSERT OR REPLACE INTO settings VALUES ('assignment', ?)",
                (msgspec.json.encode(assignment),),
            )

    @property
    def course(self) -> tuple[tuple[str, str, float], ...]:
        """Name, chapter and points of every exercise, from the last grading."""
        with self._problems():
            row = self._database.execute(
                "SELECT value FROM settings WHERE name = 'course'"
            ).fetchone()
        return _course.decode(row[0]) if row else ()

    @course.setter
    def course(self, course: tuple[tuple[str, str, float], ...]) -> None:
        with self._problems():
            self._database.execute(
                "INSERT OR REPLACE INTO settings VALUES ('course', ?)", (_encode(course),)
            )

    # Submissions. ------------------------------------------------------------

    def note(self, position: int, entry: StoredSubmission) -> None:
        """Write a submission, and delete its verdicts on exercises that it does not list."""
        marks = ",".join("?" * len(entry.exercises))
        with self._problems(), self._transaction():
            self._database.execute(
                "INSERT INTO submissions VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE"
                " SET position = excluded.position, entry = excluded.entry",
                (entry.key, position, _encode(entry)),
            )
            self._database.execute(
                f"DELETE FROM verdicts WHERE key = ? AND exercise NOT IN ({marks})",
                (entry.key, *entry.exercises),
            )

    def keep_only(self, keys: set[str]) -> None:
        """Delete all submissions whose keys are not among these."""
        with self._problems(), self._transaction():
            gone = [key for (key,) in self._database.execute("SELECT key FROM submissions")]
            for key in gone:
                if key not in keys:
                    self._database.execute("DELETE FROM submissions WHERE key = ?", (key,))
                    self._database.execute("DELETE FROM verdicts WHERE key = ?", (key,))

    def arrange(self, keys: Iterable[str]) -> None:
        """Put submissions into an order, which becomes that of the class."""
        with self._problems(), self._transaction():
            self._database.executemany(
                "UPDATE submissions SET position = ? WHERE key = ?",
                [(position, key) for position, key in enumerate(keys)],
            )

    def entries(self) -> list[StoredSubmission]:
        """Return every submission, in the order of the class."""
        with self._problems():
            rows = self._database.execute("SELECT entry FROM submissions ORDER BY position, key")
            return [_entry.decode(row) for (row,) in rows]

    # Verdicts. ---------------------------------------------------------------

    def save(self, key: str, fingerprint: str, verdict: ExerciseVerdict, safe: bool = True) -> None:
        """Write a verdict, and keep the one that it replaces as the earlier one.

        Args:
            key: the submission's key.
            fingerprint: the :func:`fingerprint` of everything that the verdict depends on.
            verdict: the verdict on one of its exercises.
            safe: whether it was found in a sandbox.
        """
        packed = msgspec.json.encode(_with_shown_output(verdict))
        with self._problems(), self._transaction():
            self._database.execute(
                "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, NULL)"
                " ON CONFLICT (key, exercise) DO UPDATE SET fingerprint = excluded.fingerprint,"
                " status = excluded.status, safe = excluded.safe, before = verdict,"
                " verdict = excluded.verdict",
                (key, verdict.name, fingerprint, verdict.status.value, safe, packed),
            )

    def known(self, key: str) -> dict[str, str]:
        """Return the fingerprints of a submission's verdicts, by exercise.

        Faults of the grader and skipped exercises are not among them, so that they are
        judged again: the machine may have been repaired.
        """
        with self._problems():
            rows = self._database.execute(
                "SELECT exercise, fingerprint FROM verdicts WHERE key = ? AND status NOT IN (?, ?)",
                (key, Status.ERROR.value, Status.SKIPPED.value),
            )
            return dict(rows.fetchall())

    def is_unsafe(self, key: str) -> bool:
        """Return whether any of a submission's verdicts was found without a sandbox."""
        with self._problems():
            row = self._database.execute(
                "SELECT EXISTS (SELECT 1 FROM verdicts WHERE key = ? AND NOT safe)", (key,)
            )
            return bool(row.fetchone()[0])

    def verdicts(self, key: str) -> dict[str, ExerciseVerdict]:
        """Return a submission's verdicts by exercise."""
        return dict(self._read(key, "verdict"))

    def earlier(self, key: str) -> dict[str, ExerciseVerdict]:
        """Return the verdicts that were replaced when an exercise was graded again."""
        return dict(self._read(key, "before"))

    def _read(self, key: str, column: str) -> Iterator[tuple[str, ExerciseVerdict]]:
        with self._problems():
            rows: list[tuple[str, Any]] = self._database.execute(
                f"SELECT exercise, {column} FROM verdicts WHERE key = ? AND {column} IS NOT NULL",
                (key,),
            ).fetchall()
        for exercise, packed in rows:
            yield exercise, _verdict.decode(packed)

    # Decisions. --------------------------------------------------------------

    @property
    def decisions(self) -> DecisionTable:
        """What a person has decided; no grading writes there."""
        return DecisionTable(self._database, self._transaction, self._problems)

    # The file. ---------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself, when the disk is full
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the database, and release the lock."""
        self._opened.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_private(path: Path) -> None:
    """Let only its owner read a database, which is made if it does not exist.

    It holds every verdict, and the secret that the inputs are drawn from.  SQLite gives the
    files that it puts beside it, such as the journal, the same mode.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        try:
            path.chmod(0o600)
        except OSError as error:
            # on a disk that is read only, and for those whose file it is not, it stays as it is
            if error.errno not in (errno.EPERM, errno.EROFS):
                raise
