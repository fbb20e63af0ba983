"""Whose file is which: the layouts in which a class's work arrives.

:data:`LAYOUTS` is the registry: ``--layout`` takes its choices and help from it, a refusal its
list, and a test compares the documentation with it.  A new layout is one entry, with a function
that reads the entries of a folder: which of them it knows, whose they are, and at which attempt.

:func:`sort_out` finds the students of a class.  Every entry is read by the first layout that
knows its name, so that two downloads in one folder are both read; what no platform has named is
a student's own folder or file.  Where the names or the contents speak against that, because a
class was handed over one folder too deep or too high, it asks: people who are merged, or files
that are taken for people, look like any other class in a summary.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grader.classroom.names import raw, shown, without_marks
from grader.classroom.untrusted_files import (
    METADATA,
    File,
    Folder,
    MemoryFolder,
    Node,
    UnopenedEntry,
    is_archive,
    is_code,
    is_junk,
    stem,
)
from headcount.core.errors import RequestError, UnreadableFile

__all__ = [
    "LAYOUTS",
    "ClassLayout",
    "LayoutQuestion",
    "Member",
    "Reading",
    "SortedClass",
    "StudentFiles",
    "SubmittedNode",
    "refuse_archive_of_a_class",
    "sort_out",
    "students_inside",
]


@dataclass(frozen=True)
class SubmittedNode:
    """A node that belongs to a student.

    Attributes:
        node: the node.
        path: its path within the submission, for people.
        upload: the number that Canvas gave to its upload, or 0.
        assignment: what tells attempts at several assignments apart.
        attempt: the date and time of the attempt, or nothing where the layout knows no attempts.
        at: when it was handed in, where the layout says that in another way.
    """

    node: Node
    path: tuple[bytes, ...] = ()
    upload: int = 0
    assignment: bytes = b""
    attempt: tuple[int, ...] = ()
    at: datetime | None = None

    @property
    def handed_in(self) -> datetime | None:
        """When it was handed in, without a time zone if the platform writes none.

        It is None where that is not known.
        """
        if self.at is not None or len(self.attempt) < 3:
            return self.at
        year, month, day, hour, minute, second = (*self.attempt, 0, 0, 0)[:6]
        with contextlib.suppress(ValueError):  # a name may hold a date that there is not
            return datetime(year, month, day, hour, minute, second)
        return None


@dataclass
class StudentFiles:
    """The files and folders of one student, before any of them is opened.

    Attributes:
        identity: the bytes that tell the student from all others.
        student: the name for people.
        email: the address, if the layout has it.
        sid: the number or login of the student, if the layout has it.
        adds_up: whether the files of an older attempt count that no newer one replaces.
        is_guess: whether no more than the entry's own name says that it is a student's.
        sources: the student's files and folders.
        problems: problems that the layout shows already.
        platform: name of the platform's layout that has found the student, or an empty string.
        late: names of the files and folders that the platform marks as late.
    """

    identity: bytes
    student: str
    email: str | None = None
    sid: str | None = None
    adds_up: bool = False
    is_guess: bool = False
    sources: list[SubmittedNode] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    platform: str = ""
    late: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Member:
    """One entry of a class's folder as a layout reads it.

    Attributes:
        identity: the bytes that tell the student from all others.
        student: the name for people.
        source: the work that the entry holds, or None where it only shows that there is a student.
        sid: the number or login of the student, if the layout has it.
        email: the address, if the layout has it.
        late: what the platform marks as late, for people.
        problem: what is wrong with the entry.
    """

    identity: bytes
    student: str
    source: SubmittedNode | None
    sid: str | None = None
    email: str | None = None
    late: str = ""
    problem: str = ""


@dataclass
class Reading:
    """The entries of a folder that a layout knows.

    Attributes:
        members: those that show a student.
        known: the names of all of them, receipts and feedback included.
        problems: problems that concern no student in particular.
    """

    members: list[Member] = field(default_factory=list)
    known: set[bytes] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class LayoutQuestion(RequestError):
    """The layout of a class cannot be told; the message says what was seen and what to name."""


# Blackboard. ----------------------------------------------------------------------
#
# "Assignment File Download" of the Grade Center gives flat files
# ``<assignment>_<user>_attempt_<YYYY-MM-DD-hh-mm-ss>_<file>``, and for each attempt a
# receipt ``<assignment>_<user>_attempt_<YYYY-MM-DD-hh-mm-ss>.txt``:
#
#     Name: Ann Lee (alee)
#     Assignment: HW2
#     Date Submitted: Sunday, 3 March 2024 17:00:00 o'clock GMT
#     ...
#     Files:
#         Original filename: hw2.ipynb
#         Filename: HW2_alee_attempt_2024-03-03-17-00-00_hw2.ipynb
#
# Programs that read it: vangef/BBGradebookOrganiser (``utils/organiser.py``),
# kwurst/bb-file-cleanup, timdrysdale/gradex-cli; nbgrader's ``FileNameCollectorPlugin`` has
# such a name as its example.  The labels are in the site's language, so the receipt's first line
# is read by its form.  Assignments and users may both have underscores; the receipt tells where
# one ends, and without any receipt the beginning that all names share.

_BLACKBOARD = re.compile(
    rb"(?P<before>.+?)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)", re.DOTALL
)
_RECEIPT = re.compile(r"[^:：]{1,60}[:：]\s*(?P<name>\S.*?)\s*\((?P<user>[^()]+)\)\s*")

#: Bytes of a receipt that are read: its first line.
_RECEIPT_BYTES = 2048


def _blackboard(children: list[Node]) -> Reading:
    found = [
        (child, match)
        for child in children
        if isinstance(child, (File, UnopenedEntry))
        and (match := _BLACKBOARD.fullmatch(child.name)) is not None
    ]
    names: dict[bytes, tuple[bytes, bytes, str]] = {}
    for child, match in found:
        if match["file"] is None and (line := _first_line(child)):
            before = match["before"]
            user = _ending(before, line["user"])
            if user is not None:
                names[before] = (before[: len(before) - len(user)], user, line["name"])
    assignments = {assignment for assignment, _, _ in names.values()}
    assignments |= {_shared([match["before"] for _, match in found])} if not assignments else set()
    reading = Reading(known={child.name for child, _ in found})
    for child, match in found:
        before = match["before"]
        assignment, user, name = names.get(before) or _without_receipt(before, assignments)
        source = None
        if match["file"] is not None:
            attempt = tuple(map(int, match["when"].split(b"-")))
            source = SubmittedNode(child, (match["file"],), 0, assignment, attempt)
        sid = shown(user)
        identity = user + b"\0blackboard"  # a folder of that name may be another student's
        reading.members.append(Member(identity, shown(raw(name or sid)), source, sid))
    return reading


def _first_line(receipt: Node) -> re.Match[str] | None:
    """Return the match of a receipt's first line, which has the student's name and user."""
    lines = _beginning(receipt, _RECEIPT_BYTES).decode("utf-8-sig", "replace").splitlines()
    return _RECEIPT.fullmatch(lines[0]) if lines else None


def _ending(before: bytes, user: str) -> bytes | None:
    """Return the bytes of a name that are the user, if it ends in the user."""
    for form in ("NFC", "NFD"):
        ending = raw(unicodedata.normalize(form, user))
        if before == ending or before.endswith(b"_" + ending):
            return ending
    return None


def _shared(names: list[bytes]) -> bytes:
    """Return the beginning that all of several different names share, up to an underscore."""
    first, last = min(names, default=b""), max(names, default=b"")
    if first == last:
        return b""
    size = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: first.rfind(b"_", 0, size) + 1]


def _without_receipt(before: bytes, assignments: set[bytes]) -> tuple[bytes, bytes, str]:
    fitting = [a for a in assignments if before.startswith(a) and before != a]
    assignment = max(fitting, key=len, default=b"")
    return assignment, before[len(assignment) :], ""


# Brightspace, also called D2L. ----------------------------------------------------
#
# "Download" of an assignment's submissions gives a folder for each submission,
# ``<number>-<number> - <First Last> - <date time>/``, or flat files
# ``<number>-<number> - <First Last> - [<date time> - ]<file>``, with one ``index.html`` for all.
# One number is the student's, the other one, equal in the whole download, the assignment's.  A
# date reads ``Sep 3, 2019 1159 PM``, since a file's name has no colon; its words and their order
# are the site's.  Programs that read it: jhartz/gradefast (``^[0-9]+-[0-9]+ - (.+) - .+$``),
# squell/bb-scripts (``bsunzip.sh``), and others for single sites.
#
# Students hand in several times, and each time what they add; so files add up there.

_NUMBERS = re.compile(rb"(\d{1,20})-(\d{1,20})")
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")

#: The first letters of the months' names in the languages of the platform's sites.
_MONTHS = (
    "jan ene gen", "feb fev", "mar mrt maa", "apr abr avr", "may mai mei mag maj", "jun juin giu",
    "jul juil lug", "aug ago aou", "sep set", "oct okt out ott", "nov", "dec dez dic des",
)  # fmt: skip


def _brightspace(children: list[Node]) -> Reading:
    found: list[tuple[Node, tuple[bytes, bytes], bytes, str, bytes]] = []
    for child in children:
        parts = child.name.split(b" - ")
        numbers = _NUMBERS.fullmatch(parts[0])
        if numbers is None or len(parts) < 3:
            continue
        # a name may hold " - ", and so may a file
        dated = [i for i, part in enumerate(parts) if i > 1 and _YEAR.search(shown(part))]
        flat = isinstance(child, File)
        if not dated and not flat:
            continue
        at = dated[0] if dated else 2
        name = b" - ".join(parts[1:at])
        file = b" - ".join(parts[at + 1 if dated else at :])
        if flat == bool(file):
            date = shown(parts[at]) if dated else ""
            found.append((child, (numbers[1], numbers[2]), name, date, file))
    # the number that differs between students is the student's
    people = {name for _, _, name, _, _ in found}
    which = int(len(people) > 1 and len({pair[0] for _, pair, _, _, _ in found}) == 1)
    reading = Reading(known={child.name for child, *_ in found})
    dates_of: dict[bytes, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for child, pair, name, date, file in found:
        sid = pair[which]
        identity = sid + b" - " + name
        attempt = dates_of[identity + pair[1 - which]].setdefault(date, _moment(date))
        path = (file,) if file else _top(child)
        source = SubmittedNode(child, path, 0, pair[1 - which], attempt)
        reading.members.append(Member(identity, shown(name), source, sid.decode("ascii")))
    for dates in dates_of.values():
        unread = [date for date, moment in dates.items() if date and not moment]
        if len(dates) > 1 and unread:
            raise LayoutQuestion(
                f"a student has handed in {len(dates)} times, and the date {unread[0]!r} in the"
                " name of a folder cannot be read, so that the newest cannot be told; leave the"
                " newest submission of each student, or write the dates as 'Sep 3, 2019 1159 PM'"
            )
    return reading


def _moment(text: str) -> tuple[int, ...]:
    """Return year, month, day, hour and minute of a date as Brightspace writes it, or nothing."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c)).replace(".", " ")
    year = _YEAR.search(plain)
    if year is None:
        return ()
    before, after = plain[: year.start()], plain[year.end() :]
    month = next(
        (
            number
            for word in re.findall(r"[a-z]{3,}", before)
            for number, beginnings in enumerate(_MONTHS, 1)
            if any(word.startswith(beginning) for beginning in beginnings.split())
        ),
        None,
    )
    day = re.search(r"\d{1,2}", before)
    time = re.search(r"(?<!\d)(\d{1,2})[:_h ]?(\d\d)(?:[:_]?\d\d)?\s*(am|pm|a m|p m)?(?!\d)", after)
    if month is None:  # 2019-09-03 2359
        numeric = re.match(r"[-_/](\d\d)[-_/](\d\d)", after)
        if numeric is None:
            return ()
        month, found = int(numeric[1]), numeric[2]
        time = re.search(r"(\d{1,2})[:_h ]?(\d\d)\s*(am|pm)?(?!\d)", after[numeric.end() :])
    elif day is None:
        return ()
    else:
        found = day[0]
    if time is None:
        return ()
    hour, minute, half = int(time[1]), int(time[2]), (time[3] or "")[:1]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return int(year[0]), month, int(found), hour, minute


# Moodle. --------------------------------------------------------------------------
#
# "Download all submissions" gives with "Download submissions in folders"
# ``<Full Name>_<id>_assignsubmission_file[_]/…``, else flat files
# ``<Full Name>_<id>_assignsubmission_file_<file>``; online texts say ``onlinetext`` for
# ``file``.  A blind assignment has ``Participant`` for the name, a group's name stands before it.
# A teacher's files to hand back say ``assignfeedback``.  From ``assign::download_submissions``
# (``mod/assign/locallib.php``) of https://github.com/moodle/moodle.

_MOODLE = re.compile(
    rb"(?P<name>.+?)_(?P<sid>\d{1,20})_(?P<what>assignsubmission|assignfeedback)_[a-z]+"
    rb"(?:_(?P<file>.*))?",
    re.DOTALL,
)


def _moodle(children: list[Node]) -> Reading:
    reading = Reading()
    for child in children:
        if found := _MOODLE.fullmatch(child.name):
            reading.known.add(child.name)
            if found["what"] == b"assignsubmission":
                reading.members.append(_numbered(child, found))
    return reading


def _numbered(node: Node, found: re.Match[bytes]) -> Member:
    """Return the member that Canvas or Moodle names with a number."""
    parts = found.groupdict()
    sid = parts["sid"]
    identity = parts["name"] if parts["name"].endswith(sid) else parts["name"] + b"_" + sid
    file = parts.get("file") or b""
    path = (file,) if file and isinstance(node, (File, UnopenedEntry)) else _top(node)
    source = SubmittedNode(node, path, int(parts.get("upload") or 0))
    late = shown(file) if parts.get("late") else ""
    return Member(identity, shown(parts["name"]), source, sid.decode("ascii"), late=late)


# Sakai. ---------------------------------------------------------------------------
#
# "Download All" gives ``<assignment>/<Last, First>(<user>)/`` for each student, with
# ``Submission attachment(s)/``, ``Feedback Attachment(s)/``, ``timestamp.txt``, ``comments.txt``,
# ``feedbackText.html`` and ``<Last, First>(<user>)_submissionText.html``, as the teacher has
# chosen, and ``grades.csv`` (or ``.xls``) beside the students.  Without folders, the slash after
# a student and after ``Submission attachment(s)`` is an underscore.  Where grading is anonymous, a
# folder has the submission's id for a name.  From ``zipSubmissions`` of ``AssignmentServiceImpl``
# in https://github.com/sakaiproject/sakai.  The names of the two folders of attachments are in
# the site's language.

_SAKAI = re.compile(rb"(?P<name>.+)\((?P<sid>[^()]+)\)", re.DOTALL)
_SAKAI_FLAT = re.compile(
    rb"(?P<name>.+?)\((?P<sid>[^()]+)\)_(?:Submission attachment\(s\)_(?P<file>.+)"
    rb"|Feedback attachment\(s\).*|_?submissionText\.html|_?feedbackText\.html|_?comments\.txt"
    rb"|_?timestamp\.txt)",
    re.DOTALL | re.IGNORECASE,
)
_HANDED_IN, _HANDED_BACK = b"submission attachment(s)", b"feedback attachment(s)"
_SAKAI_NOTES = frozenset({b"timestamp.txt", b"comments.txt", b"feedbacktext.html", _HANDED_BACK})


def _sakai(children: list[Node]) -> Reading:
    reading = Reading()
    below = {child.name: _listed(child) for child in children if _is_folder(child)}
    marked = {child.name for child in children if _is_folder(child) and _is_sakai(child, below)}
    for child in children:
        if isinstance(child, (File, UnopenedEntry)):
            if found := _SAKAI_FLAT.fullmatch(child.name):
                reading.known.add(child.name)
                file = found["file"]
                source = SubmittedNode(child, (file,)) if file else None
                reading.members.append(_of_sakai(found, child.name, source))
            continue
        found = _SAKAI.fullmatch(child.name)
        if child.name in marked or (marked and found):
            reading.known.add(child.name)
            source = _attachments(child, below[child.name])
            reading.members.append(_of_sakai(found, child.name, source))
    return reading


def _is_sakai(folder: Folder, below: dict[bytes, list[Node]]) -> bool:
    """Return whether a folder holds what Sakai writes for one student."""
    names = {node.name.lower() for node in below[folder.name]}
    if names & {_HANDED_IN, _HANDED_BACK, folder.name.lower() + b"_submissiontext.html"}:
        return True
    return b"timestamp.txt" in names and _SAKAI.fullmatch(folder.name) is not None


def _of_sakai(found: re.Match[bytes] | None, name: bytes, source: SubmittedNode | None) -> Member:
    if found is None:
        return Member(name, shown(name), source)
    identity = found["name"] + b"(" + found["sid"] + b")"
    return Member(identity, shown(found["name"].strip()), source, shown(found["sid"]))


def _attachments(folder: Folder, below: Sequence[Node]) -> SubmittedNode | None:
    """Return the folder of a student's attachments, or what is left without Sakai's own files."""
    for node in below:
        if node.name.lower() == _HANDED_IN:
            return SubmittedNode(node)
    own = {
        node.name: node
        for node in below
        if node.name.lower() not in _SAKAI_NOTES
        and not node.name.lower().endswith(b"_submissiontext.html")
    }
    folders = [node for node in own.values() if _is_folder(node)]
    if len(folders) > 1 and b"timestamp.txt" in _names(below):
        names = " and ".join(shown(node.name) for node in folders[:2])
        raise LayoutQuestion(
            f"{shown(folder.name)} looks like a student's folder from Sakai, and of {names} one may"
            " hold feedback; name the folder of what was handed in 'Submission attachment(s)', and"
            " that of what was handed back 'Feedback Attachment(s)'"
        )
    return SubmittedNode(MemoryFolder(folder.name, own)) if own else None


# Canvas. --------------------------------------------------------------------------
#
# "Download Submissions" gives flat files ``<name>[_LATE]_<user>_<upload>_<file>``, or
# ``[LATE_]anon_<id>_<upload>_<file>`` where grading is anonymous; text entries end in
# ``_text.html`` or ``_link.html`` without an upload's number.  The name is in lower case without
# spaces; a name that occurs twice gets ``-1``, ``-2``.  From ``ContentZipper``
# (``lib/content_zipper.rb``) and ``Attachment.make_unique_filename`` of
# https://github.com/instructure/canvas-lms.
#
# ``hw_1_2_ann.py`` has that form as well.  But an upload's number is given once, and the names
# of a download are most of a folder's.

_CANVAS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rb"(?P<late>LATE_)?(?P<name>anon_(?P<sid>[A-Za-z0-9]+))_(?P<upload>\d{1,20})_(?P<file>.+)",
        rb"(?P<name>[^/]+?)(?P<late>_LATE)?_(?P<sid>\d{1,20})_(?P<upload>\d{1,20})_(?P<file>.+)",
        rb"(?P<name>[^/]+?)(?P<late>_LATE)?_(?P<sid>\d{1,20})_(?P<file>(?:text|link)\.html)",
    )
)


def _canvas(children: list[Node]) -> Reading:
    files = [child for child in children if isinstance(child, (File, UnopenedEntry))]
    found = [
        (child, match)
        for child in files
        if (match := next(filter(None, (p.fullmatch(child.name) for p in _CANVAS)), None))
    ]
    uploads = [match["upload"] for _, match in found if match.re is not _CANVAS[2]]
    if 2 * len(found) <= len(files) or 2 * len(set(uploads)) <= len(uploads):
        return Reading()
    members = [_numbered(child, match) for child, match in found]
    return Reading(members, {child.name for child, _ in found})


# Gradescope and nbgrader. ---------------------------------------------------------
#
# - **Gradescope**, "Export Submissions": see :func:`grader.classroom.gradescope.submitters`.
# - **nbgrader**: ``submitted/<student>/<assignment>/…``, from "How to structure
#   course files" (``user_guide/philosophy``) of https://nbgrader.readthedocs.io.  It
#   writes a ``timestamp.txt`` into each assignment's folder.


def _gradescope(children: list[Node]) -> Reading:
    metadata = next((c for c in children if c.name == METADATA and isinstance(c, File)), None)
    if metadata is None:
        return Reading()
    from grader.classroom.gradescope import Submitter, submitters

    reading = Reading(known=_names(children))
    people: dict[str, tuple[Submitter, ...]] = {}
    try:
        with metadata.open() as stream:
            people = submitters(stream)
    except UnreadableFile as error:
        reading.problems.append(
            f"{shown(METADATA)} {error}; students are called by their folders' names"
        )
    except OSError as error:
        reading.problems.append(f"{shown(METADATA)} cannot be read: {error.strerror}")
    by_folder = {raw(folder): each for folder, each in people.items()}

    def submitted(folder: bytes, source: SubmittedNode | None, problem: str = "") -> None:
        group = by_folder.get(folder, ())
        for number, who in enumerate(group or (Submitter(),)):
            mark = raw(who.sid or who.email or who.name or "")
            identity = b"\0".join((folder, mark, b"%d" % number)) if len(group) > 1 else folder
            sid, email = (
                None if text is None else shown(raw(text)) for text in (who.sid, who.email)
            )
            student = shown(raw(who.name or who.email or who.sid or "") or folder)
            work = None if source is None else replace(source, at=who.handed_in)
            reading.members.append(Member(identity, student, work, sid, email, problem=problem))

    for child in children:
        if child.name == METADATA:
            continue
        if isinstance(child, File) and child.name not in by_folder:
            if is_code(child.name) or is_archive(child.name):
                reading.problems.append(
                    f"{shown(child.name)} stands beside the folders of the export; it is not graded"
                )
            continue
        submitted(child.name, SubmittedNode(child, _top(child)))
    for folder in sorted(by_folder.keys() - _names(children)):
        submitted(folder, None, f"the export has no folder {shown(folder)}")
    return reading


def _nbgrader(children: list[Node]) -> Reading:
    submitted = [child for child in children if child.name == _SUBMITTED and _is_folder(child)]
    reading = _folders(_listed(submitted[0]) if submitted else children)
    for i, member in enumerate(reading.members):
        if member.source is not None and (at := _timestamp(member.source.node)):
            reading.members[i] = replace(member, source=replace(member.source, at=at))
    return reading


def _timestamp(student: Node) -> datetime | None:
    """Return the newest time of a student's folder, from ``<assignment>/timestamp.txt``.

    It reads ``2015-02-02 15:58:23.948203 America/Los_Angeles``, as nbgrader's ``parse_utc``
    expects it; without a zone it is in UTC.
    """
    found = []
    for folder in filter(_is_folder, _listed(student) if _is_folder(student) else []):
        for node in _listed(folder):
            if node.name == b"timestamp.txt":
                words = _beginning(node, 100).decode("utf-8", "replace").split()
                with contextlib.suppress(ValueError, IndexError, ZoneInfoNotFoundError):
                    moment = datetime.fromisoformat(" ".join(words[:2]))
                    zone = ZoneInfo(words[2]) if len(words) > 2 else timezone.utc
                    found.append(moment if moment.tzinfo else moment.replace(tzinfo=zone))
    return max(found, default=None)


# Folders and files that people have named themselves. -----------------------------

_FOREIGN = (b".rar", b".7z")
_LATE = b"_LATE"


def _folders(children: Sequence[Node]) -> Reading:
    """Read every folder as one student's; so is what cannot be opened."""
    nodes = [child for child in children if not isinstance(child, File)]
    return Reading([_by_name(node, node.name) for node in nodes], _names(nodes))


def _files(children: Sequence[Node]) -> Reading:
    """Read every file that can be graded, or that is an archive, as one student's."""
    reading = Reading()
    for child in children:
        if not isinstance(child, File):
            continue
        if is_code(child.name) or is_archive(child.name):
            reading.members.append(_by_name(child, stem(child.name)))
        elif child.name.lower().endswith(_FOREIGN):
            reading.members.append(_by_name(child, child.name.rpartition(b".")[0]))
        else:
            continue
        reading.known.add(child.name)
    return reading


def _by_name(node: Node, name: bytes) -> Member:
    student = name.removesuffix(_LATE) or name
    late = shown(node.name) if student != name else ""
    return Member(student, shown(student), SubmittedNode(node, _top(node)), late=late)


# The registry. --------------------------------------------------------------------


@dataclass(frozen=True)
class ClassLayout:
    """One layout in which a class's work arrives.

    Attributes:
        name: its name for ``--layout``.
        title: what it is, for people: whose download, or what each entry is.
        shape: how its names look.
        read: a function that finds the entries that it knows among those of a folder.
        adds_up: whether the files of an older attempt count that no newer one replaces.
        is_platform: whether its names are a platform's, so that they can be recognised.
    """

    name: str
    title: str
    shape: str
    read: Callable[[list[Node]], Reading]
    adds_up: bool = False
    is_platform: bool = True


def _one_student(children: Sequence[Node]) -> Reading:
    everything = MemoryFolder(b"", {child.name: child for child in children})
    source = SubmittedNode(everything)
    return Reading([Member(b"", "", source)], _names(children))


#: By name, in the order in which they are tried.
LAYOUTS: dict[str, ClassLayout] = {
    layout.name: layout
    for layout in (
        ClassLayout(
            "gradescope",
            "Gradescope's export",
            "submission_metadata.yml, submission_<number>/…",
            _gradescope,
        ),
        ClassLayout(
            "blackboard",
            "Blackboard's download",
            "<assignment>_<user>_attempt_<date>_<file>",
            _blackboard,
        ),
        ClassLayout(
            "brightspace",
            "Brightspace's (D2L's) download",
            "<number>-<number> - <name> - <date>/…",
            _brightspace,
            adds_up=True,
        ),
        ClassLayout(
            "moodle",
            "Moodle's download",
            "<name>_<id>_assignsubmission_file_…",
            _moodle,
        ),
        ClassLayout(
            "sakai",
            "Sakai's download",
            "<Last, First>(<user>)/Submission attachment(s)/…",
            _sakai,
        ),
        ClassLayout(
            "canvas",
            "Canvas' download",
            "<name>_<user>_<upload>_<file>",
            _canvas,
        ),
        ClassLayout(
            "nbgrader",
            "nbgrader's submissions",
            "submitted/<student>/<assignment>/…",
            _nbgrader,
            is_platform=False,
        ),
        ClassLayout(
            "folders",
            "each folder is one student's",
            "<student>/…",
            _folders,
            is_platform=False,
        ),
        ClassLayout(
            "files",
            "each file is one student's",
            "<student>.py, .ipynb or .zip",
            _files,
            is_platform=False,
        ),
        ClassLayout(
            "student",
            "all of it is one student's",
            "…",
            _one_student,
            is_platform=False,
        ),
    )
}

_PLATFORMS = tuple(layout for layout in LAYOUTS.values() if layout.is_platform)


# The students of a class. ---------------------------------------------------------

_SUBMITTED = b"submitted"

#: Names that stand beside nbgrader's ``submitted``.
_NBGRADER = frozenset(
    {
        *(b"nbgrader_config.py", b"gradebook.db", b"source", b"release"),
        *(b"autograded", b"feedback", b"downloaded"),
    }
)

#: Folders that are opened, each the only one, to find the students' entries.
_WRAPPINGS = 4

#: Names that a sentence lists.
_LISTED = 3


@dataclass
class SortedClass:
    """The students of a class, as a layout has sorted them out.

    Attributes:
        students: every student with all files.
        problems: sentences about problems that concern no student in particular.
        layouts: the number of students that each layout has found, by its name.
    """

    students: list[StudentFiles] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    layouts: dict[str, int] = field(default_factory=dict)


def sort_out(
    root: Folder,
    path: str,
    name: bytes,
    archive: bytes | None = None,
    layout: str | None = None,
    is_file: bool = False,
) -> SortedClass:
    """Return the students of a class.

    Args:
        root: the root of the submissions.
        path: the path that was named, for people.
        name: the last part of that path.
        archive: the same if it is an archive.
        layout: the name of the layout if the instructor has said it.
        is_file: whether the tree stands for a single file that was named.

    Raises:
        UnreadableFile: the root cannot be listed.
        LayoutQuestion: the layout cannot be told.
    """
    own = name if archive is None else stem(archive)
    place = _Place(path.rstrip("/"), own, archive is not None)
    children = _clean(root)
    if layout == "student":
        return _read([LAYOUTS[layout]], children, place)[0]
    if layout is None and not is_file:
        _refuse_entry_of_a_student(place, archive, children)
    nbgrader = place.name == _SUBMITTED
    for _ in range(_WRAPPINGS):
        inner = None if layout in ("folders", "files") else _inner(children, archive)
        if inner is None:
            break
        place = place.below(inner.name)
        children = _clean(inner)
        if inner.name == _SUBMITTED:
            nbgrader = True
            break
    if layout is None and nbgrader:
        layout = "nbgrader"
    if layout is not None:
        found, _ = _read([LAYOUTS[layout]], children, place)
        if not found.students and _holds_work(children):
            raise LayoutQuestion(
                f"{place.path} holds nothing that is laid out as {layout} ({LAYOUTS[layout].title}:"
                f" {LAYOUTS[layout].shape}), but {_some(children)}"
            )
        return found
    found, plain = _read([*_PLATFORMS, LAYOUTS["folders"], LAYOUTS["files"]], children, place)
    guesses = {member.identity for member in [*_folders(plain).members, *_files(plain).members]}
    for student in found.students:
        student.is_guess = student.identity in guesses and not is_file
    if not is_file:
        by_platforms = any(layout.name in found.layouts for layout in _PLATFORMS)
        _Evidence(place, plain).refuse(by_platforms)
    return found


def _read(
    layouts: list[ClassLayout], children: list[Node], place: _Place
) -> tuple[SortedClass, list[Node]]:
    """Return the students that some layouts find, each among what is left by those before it.

    The entries that no platform's layout knows come with them.
    """
    found = SortedClass()
    by_identity: dict[bytes, StudentFiles] = {}
    plain = left = children
    for layout in layouts:
        reading = layout.read(left)
        before = len(by_identity)
        for member in reading.members:
            identity = member.identity or place.name
            files = by_identity.get(identity)
            if files is None:
                files = StudentFiles(
                    identity,
                    member.student or shown(place.name),
                    member.email,
                    member.sid,
                    layout.adds_up,
                    platform=layout.name if layout.is_platform else "",
                )
                by_identity[identity] = files
            if member.source is not None:
                files.sources.append(member.source)
            if member.problem:
                files.problems.append(member.problem)
            if member.late:
                files.late.append(member.late)
        if len(by_identity) > before:
            found.layouts[layout.name] = len(by_identity) - before
        found.problems += reading.problems
        left = [child for child in left if child.name not in reading.known]
        if layout.is_platform:
            plain = left
    platforms = [LAYOUTS[name].title for name in found.layouts if LAYOUTS[name].is_platform]
    unknown = _names(left)
    own = [child for child in plain if child.name not in unknown]
    if platforms and own:
        found.problems.append(
            f"{_some(own)}: not a name of {' or of '.join(platforms)}; taken for"
            f" {'a student' if len(own) == 1 else 'students'} of that name"
        )
    unread = [child for child in left if _is_folder(child) or _is_work(child)]
    if unread:
        found.problems.append(
            f"{_some(unread)} {'is' if len(unread) == 1 else 'are'} not graded: not laid out as"
            f" {layouts[0].name} ({layouts[0].title})"
        )
    found.students = list(by_identity.values())
    for student in found.students:
        if student.late:
            student.problems.append(f"marked late: {', '.join(dict.fromkeys(student.late))}")
    return found, plain


def students_inside(children: Sequence[Node]) -> tuple[ClassLayout, int] | None:
    """Return a platform whose names tell several students apart, and how many, if there is one."""
    entries = list(children)
    for layout in _PLATFORMS:
        count = len({member.identity for member in layout.read(entries).members})
        if count > 1:
            return layout, count
    return None


def refuse_archive_of_a_class(label: str, name: bytes, root: Folder) -> None:
    """Ask if an archive that is taken for one student's holds the work of several.

    Raises:
        LayoutQuestion: it does.
    """
    children = _listed(root)
    inner = _inner(children, name)
    if inside := students_inside(children if inner is None else _listed(inner)):
        layout, count = inside
        raise _question(
            f"{label} holds the work of {count} students from {layout.title}, and would be taken"
            " for one student",
            "name that archive instead",
        )


def _inner(children: list[Node], archive: bytes | None) -> Folder | None:
    """Return the folder to look into instead, if this one only wraps it."""
    folders = {child.name: child for child in children if _is_folder(child)}
    alone = len(children) == 1
    submitted = folders.get(_SUBMITTED)
    if submitted is not None and (alone or any(c.name in _NBGRADER for c in children)):
        return submitted
    if not alone or not folders or any(layout.read(children).members for layout in _PLATFORMS):
        return None
    (folder,) = folders.values()
    below = _listed(folder)
    if any(layout.read(below).members for layout in _PLATFORMS) or _SUBMITTED in _names(below):
        return folder
    # programs that pack a folder often wrap it in one of the archive's name
    wraps = archive is not None and folder.name == stem(archive)
    return folder if wraps or folder.name == b"submissions" else None


# Whether a class was handed over one folder too deep or too high. -----------------
#
# Only where no platform has named the entries.  The evidence is in names and contents:
#
# - the folder itself has the name of one student's entry;
# - the folders hold what a platform has named for several students;
# - most names are those of work (``hw2``, ``02_broadcast``), and not of people;
# - folders hold no files but folders, which are not parts of one work: in them are files of the
#   same name, or folders of the same names are in the others as well, or there is one such folder
#   and nothing else;
# - files of different names in one folder define the same exercise, and so in most folders;
# - a file imports the one beside it, or three and more share no exercise.
#
# What proves it for one of many students is that student's matter, except for a platform's names.

#: Words of names that people give to work, in the languages that are common on platforms.
_WORDS = """
hw homework home work assignment assignments assign exercise exercises ex exo lab labs project
projects proj task tasks week weeks wk day unit module lecture lesson session chapter chapters
ch part parts problem problems prob question questions quiz exam midterm final ps pset
problemset set sheet section sections sec course courses class classes fall spring winter
semester term year notebook notebooks nb untitled answer answers solution solutions sol
submission submissions submitted main test tests util utils helper helpers common config setup
init code src source sources data docs doc old new backup copy version draft latest attempt
attempts file files folder output outputs result results image images figure figures archive
downloads download aufgabe aufgaben blatt ubung ubungen teil woche devoir devoirs tp td exercice
exercices partie semaine tarea tareas practica practicas ejercicio ejercicios parte semana
opdracht opdrachten deel tarefa tarefas compito compiti esercizio esercizi settimana late
"""
_WORK = frozenset(_WORDS.split())

#: Files of a folder that are looked into, folders of a class, and bytes of a file.
_LOOKED_INTO, _LOOKED_AT, _READ = 40, 20, 1 << 20

_DEFINED = re.compile(rb'(?m)(?:^|")(?:def|class)[ \t]+([A-Za-z_]\w*)')
_IMPORTED = re.compile(rb'(?m)(?:^|")[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)')


@dataclass(frozen=True)
class _Place:
    """Where the entries of a class are: the path for people, and the folder's own name."""

    path: str
    name: bytes
    is_archive: bool

    def below(self, name: bytes) -> _Place:
        return _Place(f"{self.path}/{shown(name)}", name, self.is_archive)

    def name_below(self, folders: Sequence[Node]) -> str:
        """Return what to name instead of a folder of classes."""
        path = shlex.quote(f"{self.path}/{shown(folders[0].name)}")
        what = path if len(folders) == 1 else f"one of them, such as {path}"
        return f"unpack it and name {what}" if self.is_archive else f"name {what}"

    def name_above(self, levels: int = 1) -> str:
        """Return what to name instead of a student's folder."""
        if self.is_archive:
            return "name the archive or the folder of the class"
        above = Path(self.path)
        for _ in range(levels):
            above = above.parent if above.name not in ("", "..") else above / ".."
        return f"name the folder of the class, {shlex.quote(str(above))}"


def _question(seen: str, mend: str) -> LayoutQuestion:
    """Return the refusal: what was seen, what to name instead, and what is known."""
    said = [layout for name, layout in LAYOUTS.items() if name in ("folders", "files", "student")]
    options = ", ".join(f"--layout {layout.name} ({layout.title})" for layout in said)
    known = ", ".join(layout.title for layout in LAYOUTS.values() if layout not in said)
    return LayoutQuestion(
        f"{seen}. {mend[:1].upper()}{mend[1:]}, or say what it holds: {options}. Layouts that are"
        f" recognised: {known}; a folder or a file for each student, by name"
    )


def _refuse_entry_of_a_student(place: _Place, archive: bytes | None, children: list[Node]) -> None:
    """Ask if the folder or archive has itself the name that a platform gives to a student's."""
    name = place.name
    entries: list[Node] = [MemoryFolder(name, {child.name: child for child in children})]
    if archive is not None:
        entries.append(UnopenedEntry(archive, "an archive"))
    for layout in _PLATFORMS:
        sakai = layout.name == "sakai" and name.lower() in (_HANDED_IN, _HANDED_BACK)
        if sakai or (layout.name != "canvas" and layout.read(entries).members):
            raise _question(
                f"{place.path} looks like the folder of one student from {layout.title}"
                f" ({layout.shape})",
                f"to grade a class, {place.name_above(2 if sakai else 1)}",
            )


class _Evidence:
    """The evidence that entries which no platform has named are not each one student's."""

    def __init__(self, place: _Place, plain: list[Node]) -> None:
        self.place = place
        self.plain = plain
        self.folders = [child for child in plain if _is_folder(child)]
        self.files = [child for child in plain if isinstance(child, File)]
        self.below = {folder.name: _listed(folder) for folder in self.folders}

    def refuse(self, names_are_a_platforms: bool) -> None:
        """Ask where there is evidence.

        Raises:
            LayoutQuestion: there is; the message says which.
        """
        self._refuse_classes()
        if not names_are_a_platforms:
            self._refuse_names_of_work()
            self._refuse_crowds()
            self._refuse_parts_of_one_work()

    def _too_high(self, folders: Sequence[Node], seen: str) -> LayoutQuestion:
        return _question(seen, self.place.name_below(folders))

    def _refuse_classes(self) -> None:
        for folder in self.folders:
            below = self.below[folder.name]
            if inside := students_inside(below):
                layout, count = inside
                raise self._too_high(
                    [folder],
                    f"{self.place.path}/{shown(folder.name)} holds the work of {count} students"
                    f" from {layout.title}, and would be taken for one student",
                )
            if any(child.name == _SUBMITTED and _is_folder(child) for child in below):
                raise self._too_high(
                    [folder],
                    f"{self.place.path}/{shown(folder.name)} holds {shown(_SUBMITTED)}/, as a"
                    " course of nbgrader does, and would be taken for one student",
                )

    def _refuse_names_of_work(self) -> None:
        students = [node for node in self.plain if _is_folder(node) or _is_work(node)]
        work = [node for node in students if _tells_work(shown(_own_name(node)))]
        if 2 * len(work) <= len(students):
            return
        high = [
            node
            for node in work
            if _is_folder(node) and sum(map(_may_be_a_student, self.below[node.name])) > 1
        ]
        are = "this is a name" if len(work) == 1 else "these are names"
        of = "a student" if len(students) == 1 else "students"
        seen = f"{self.place.path} holds {_some(work)}: {are} of work and not of {of}"
        if high:
            raise self._too_high(
                high,
                f"{seen}, and {_some(high)} hold{'s' * (len(high) == 1)} several files or folders",
            )
        raise _question(seen, f"if it is one student's folder, {self.place.name_above()}")

    def _refuse_crowds(self) -> None:
        subfolders = {folder.name: self._people_in(folder) for folder in self.folders}
        places = Counter(name for names in subfolders.values() for name in names)
        alone = len(self.plain) == 1
        crowds: list[Node] = [
            folder
            for folder in self.folders
            if (names := subfolders[folder.name])
            and (
                alone
                or sum(places[name] > 1 for name in names) > 1
                or self._repeats_a_file(folder, names)
            )
        ]
        if 2 * len(crowds) > len(self.folders):
            inside = subfolders[crowds[0].name]
            raise self._too_high(
                crowds,
                f"{_some(crowds)} in {self.place.path} look{'s' * (len(crowds) == 1)} like a"
                f" class: {shown(crowds[0].name)} holds no file to grade, but the folders"
                f" {_some_names(sorted(inside))}",
            )
        crowds = self._folders_of_rivals()
        if crowds and 2 * len(crowds) > len(self.folders):
            raise self._too_high(
                crowds,
                f"{_some(crowds)} in {self.place.path} look{'s' * (len(crowds) == 1)} like a"
                " class: files of different names define the same exercise",
            )

    def _people_in(self, folder: Node) -> set[bytes]:
        """Return the folders in one without files to grade, unless they are parts of a work."""
        below = self.below[folder.name]
        if any(_is_work(child) for child in below):
            return set()
        names = {
            child.name
            for child in below
            if _is_folder(child) and any(_may_be_a_student(c) for c in _listed(child))
        }
        work = sum(_tells_work(shown(name)) for name in names)
        return names if len(names) > 1 and 2 * work < len(names) else set()

    def _repeats_a_file(self, folder: Node, names: set[bytes]) -> bool:
        files = Counter(
            grandchild.name
            for child in self.below[folder.name]
            if child.name in names and _is_folder(child)
            for grandchild in _listed(child)
            if _is_work(grandchild) and grandchild.name != b"__init__.py"
        )
        return any(count > 1 for count in files.values())

    def _folders_of_rivals(self) -> list[Node]:
        """Return the folders in which files of different names define the same exercise."""
        found: list[Node] = []
        looked_at = 0
        for folder in self.folders:
            by_name: dict[str, list[File]] = defaultdict(list)
            for child in self.below[folder.name]:
                if isinstance(child, File) and is_code(child.name):
                    own = _words(shown(folder.name))
                    words = [w for w in _words(shown(stem(child.name))) if not _is_of_work(w)]
                    rest = " ".join(word for word in words if word not in own)
                    by_name[rest].append(child)
            by_name.pop("", None)
            if len(by_name) < 2:
                continue
            looked_at += 1
            if looked_at > _LOOKED_AT:
                break
            definers: Counter[str] = Counter()
            for files in list(by_name.values())[:_LOOKED_INTO]:
                definers.update(set().union(*(_exercises(file) for file in files[:2])))
            if any(count > 1 for count in definers.values()):
                found.append(folder)
        return found

    def _refuse_parts_of_one_work(self) -> None:
        files = [file for file in self.files if is_code(file.name)][:_LOOKED_INTO]
        if len(files) < 2 or self.folders:
            return
        mend = f"if it is one student's folder, {self.place.name_above()}"
        modules = {stem(file.name): file for file in files if file.name.lower().endswith(b".py")}
        for file in files:
            for module in _IMPORTED.findall(_beginning(file, _READ)):
                if modules.get(module, file) is not file:
                    raise _question(
                        f"{shown(file.name)} in {self.place.path} imports"
                        f" {shown(modules[module].name)}, which stands beside it and would be"
                        " another student's",
                        mend,
                    )
        defined = [found for file in files if (found := _exercises(file))]
        if len(defined) > 2 and sum(map(len, defined)) == len(set().union(*defined)):
            raise _question(
                f"the {len(files)} files in {self.place.path} define different exercises, none of"
                " them the same",
                mend,
            )


def _tells_work(name: str) -> bool:
    """Return whether a name is that of work: ``hw2``, ``02_broadcast (1)``, but not ``ann_hw2``."""
    words = _words(without_marks(name))
    if "_".join(words) in _course()[1]:
        return True
    return all(len(word) == 1 or _is_of_work(word) for word in words) and any(
        _is_of_work(word) for word in words
    )


def _is_of_work(word: str) -> bool:
    return word in _WORK or word in _course()[0]


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return re.findall(r"[^\W\d_]+", plain)


@lru_cache(maxsize=1)
def _course() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the chapters' names, and the names of the exercises."""
    from grader.course.index import course_index

    chapters = course_index().chapters()
    return frozenset(word for name in chapters for word in _words(name)), frozenset(course_index())


def _exercises(file: File) -> set[str]:
    """Return the exercises that a file defines, by its text."""
    names = {name.decode() for name in _DEFINED.findall(_beginning(file, _READ))}
    return names & _course()[1]


def _beginning(node: Node, size: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be read."""
    if not isinstance(node, File):
        return b""
    try:
        with node.open() as stream:
            return stream.read(size)
    except OSError:
        return b""  # what cannot be read is said where it is graded


# Nodes. ---------------------------------------------------------------------------


def _clean(folder: Folder) -> list[Node]:
    return [child for child in folder.children() if not is_junk(child.name)]


def _listed(folder: Folder) -> list[Node]:
    """Return the entries of a folder; none if it cannot be listed."""
    try:
        return _clean(folder)
    except UnreadableFile:
        return []  # what cannot be read is said where it is graded


def _is_folder(node: Node) -> TypeGuard[Folder]:
    return not isinstance(node, (File, UnopenedEntry))


def _is_work(node: Node) -> bool:
    return isinstance(node, File) and (is_code(node.name) or is_archive(node.name))


def _may_be_a_student(node: Node) -> bool:
    return _is_folder(node) or _is_work(node)


def _holds_work(nodes: Iterable[Node]) -> bool:
    return any(_may_be_a_student(node) for node in nodes)


def _own_name(node: Node) -> bytes:
    return stem(node.name) if isinstance(node, File) else node.name


def _names(nodes: Iterable[Node]) -> set[bytes]:
    return {node.name for node in nodes}


def _top(node: Node) -> tuple[bytes, ...]:
    """Return the path that a student's own entry begins with: a file's name, a folder's none."""
    return () if _is_folder(node) else (node.name,)


def _some(nodes: Sequence[Node]) -> str:
    return _some_names([node.name for node in nodes])


def _some_names(names: Sequence[bytes]) -> str:
    """Return the first of many names, for a sentence."""
    told = [shown(name) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        return f"{', '.join(told)} and {len(names) - _LISTED} more"
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))
