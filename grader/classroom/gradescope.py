"""The metadata file of Gradescope's export.

"Export Submissions" gives a zip with ``submission_metadata.yml`` beside one
folder per submission.  The file maps each folder's name to Ruby's symbols::

    submission_123:
      :submitters:
      - :name: Ada Lovelace
        :sid: '100'
        :email: ada@example.org
      :created_at: 2024-05-01 12:00:00.000000000 Z
      :score: 3.5

There is no documentation of it; this is what programs read that work with it,
such as otter-grader's ``GradescopeParser`` (``otter/metadata.py`` of its early
versions) and others that look up ``[':submitters'][0][':name']``.

It may hold all results of a class, and it may have been tampered with.  So it
is read event by event, and only who submitted is kept: no objects are built,
numbers stay text (a ``:sid:`` of ``007`` keeps its zeros), and an alias that
stands for a list of lists of lists is never multiplied out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import yaml

from grader.core.errors import UnreadableFile

__all__ = ["LARGEST_METADATA", "Submitter", "submitters"]

#: Bytes of metadata that are read; 500 submissions with their results take less.
LARGEST_METADATA = 16 << 20

#: Levels within levels; Gradescope's has about ten.
_DEEPEST = 64

#: Texts under an anchor that are remembered.
_ANCHORS = 10_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Submitter:
    """Somebody who submitted."""

    name: str | None = None
    sid: str | None = None
    email: str | None = None


def submitters(stream: BinaryIO) -> dict[str, tuple[Submitter, ...]]:
    """Who submitted what, by the folder's name.

    Raises:
        UnreadableFile: it is no such file; the message completes
            "submission_metadata.yml …".
    """
    data = stream.read(LARGEST_METADATA + 1)
    if len(data) > LARGEST_METADATA:
        raise UnreadableFile(f"is larger than {LARGEST_METADATA >> 20} MB")
    try:
        found = _Reader(data).read()
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "its text has characters that YAML lacks"
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise UnreadableFile(f"is no YAML{where}: {problem}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"is no YAML: {error}") from None
    if not found:
        raise UnreadableFile("names no submissions; a mapping from folders to :submitters: is due")
    return found


class _Reader:
    """Walks the events once, holding the way from the top to where it is."""

    def __init__(self, data: bytes) -> None:
        self._events: Iterator[Any] = yaml.parse(data, Loader=_LOADER)
        self._texts: dict[str, str] = {}
        self._depth = 0

    def read(self) -> dict[str, tuple[Submitter, ...]]:
        found: dict[str, tuple[Submitter, ...]] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingStartEvent):
                self._enter()
                for folder in self._keys():
                    found[folder] = self._submission()
                return found
            if isinstance(event, yaml.NodeEvent):
                return found
        return found

    def _submission(self) -> tuple[Submitter, ...]:
        people: list[Submitter] = []
        if not self._opens(yaml.MappingStartEvent):
            return ()
        for key in self._keys():
            if key == ":submitters":
                people = self._people()
            else:
                self._skip(self._next())
        return tuple(people)

    def _people(self) -> list[Submitter]:
        people: list[Submitter] = []
        if not self._opens(yaml.SequenceStartEvent):
            return people
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                self._skip(event)
                continue
            texts = {}
            for key in self._keys():
                event = self._next()
                texts[key] = self._text(event)
                self._skip(event)
            one = Submitter(texts.get(":name"), texts.get(":sid"), texts.get(":email"))
            if one != Submitter():
                people.append(one)
        return people

    def _keys(self) -> Iterator[str]:
        """The keys of the mapping that has begun; whoever asks reads the values."""
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._text(event)
            self._skip(event)
            if key is None:
                self._skip(self._next())
            else:
                yield key

    def _next(self) -> Any:
        event = next(self._events)
        if isinstance(event, yaml.CollectionStartEvent):
            self._enter()
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        return event

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} deep")

    def _opens(self, kind: type) -> bool:
        """Whether the next value is of a kind; another is passed over."""
        event = self._next()
        if isinstance(event, kind):
            return True
        self._skip(event)
        return False

    def _skip(self, event: Any) -> None:
        """Pass over the rest of a value that begins with this event."""
        if isinstance(event, yaml.CollectionStartEvent):
            outside = self._depth - 1
            while self._depth > outside:
                self._text(self._next())

    def _text(self, event: Any) -> str | None:
        if isinstance(event, yaml.AliasEvent):
            return self._texts.get(event.anchor)
        if not isinstance(event, yaml.ScalarEvent):
            return None
        text = str(event.value)
        if event.anchor and len(self._texts) < _ANCHORS:
            self._texts[event.anchor] = text
        null = event.implicit[0] and text in ("", "~", "null")
        return None if null else text
