"""Whose file is which: the layouts in which a class's work arrives.

:data:`LAYOUTS` is the registry: ``--layout`` takes its choices and help from it, a refusal its
list, and a test compares the documentation with it.  A new layout is one function with a line above
it.  It reads the entries of a folder: which of them it knows, whose they are, and when they came.

:func:`sort_out` finds the students of a class.  A download is the one platform's whose names most
of its entries have, and a file that came by email beside it gets a row.  Where no platform has
named most of them, nothing tells a class from one student's work, or students from assignments.
Then it asks for ``--layout``: people who are merged, or files that are taken for people, look like
any other class in a summary.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeGuard
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grader.classroom.names import few, raw, shown
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


@dataclass(frozen=True)
class SubmittedNode:
    """A node that belongs to a student.

    Attributes:
        node: the node.
        path: its path within the submission, for people.
        upload: the number that Canvas gave to its upload, or 0.
        assignment: what tells attempts at several assignments apart.
        at: when it was handed in, without a time zone if the platform writes none; None where that
            is not known.  Nodes of different times are different attempts.
    """

    node: Node
    path: tuple[bytes, ...] = ()
    upload: int = 0
    assignment: bytes = b""
    at: datetime | None = None


@dataclass
class StudentFiles:
    """The files and folders of one student, before any of them is opened.

    Attributes:
        identity: the bytes that tell the student from all others.
        student: the name for people.
        sources: the student's files and folders.
        sid: the number or login of the student, if the layout has it.
        email: the address, if the layout has it.
        late: names of the files and folders that the platform marks as late.
        problems: problems that the layout shows already.
        layout: name of the layout that has found the student.
        is_stray: whether the entry stands beside those of a platform, which has not named it.
    """

    identity: bytes
    student: str
    sources: list[SubmittedNode] = field(default_factory=list)
    sid: str | None = None
    email: str | None = None
    late: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    layout: str = ""
    is_stray: bool = False


@dataclass
class Reading:
    """The entries of a folder that one layout knows, or several after one another.

    Attributes:
        students: the students whom they show; entries of one student share an identity.
        known: the names of all of them, receipts and feedback included.
        problems: problems that concern no student in particular.
        question: what to ask if the class is laid out so.
    """

    students: list[StudentFiles] = field(default_factory=list)
    known: set[bytes] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    question: LayoutQuestion | None = None


_Reader = Callable[[list[Node]], Reading]


class LayoutQuestion(RequestError):
    """The layout of a class cannot be told; the message says what was seen and what to name."""


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
        leads: whether its names begin with what no student and no other platform writes there.
    """

    name: str
    title: str
    shape: str
    read: _Reader
    adds_up: bool = False
    is_platform: bool = True
    leads: bool = False


#: By name, in the order in which they are tried.
LAYOUTS: dict[str, ClassLayout] = {}


def _layout(name: str, title: str, shape: str, **more: bool) -> Callable[[_Reader], _Reader]:
    """Return a decorator that puts a reader into the registry."""

    def register(read: _Reader) -> _Reader:
        LAYOUTS[name] = ClassLayout(name, title, shape, read, **more)
        return read

    return register


# Gradescope. ----------------------------------------------------------------------
#
# "Export Submissions", see :func:`grader.classroom.gradescope.submitters`.


@_layout("gradescope", "Gradescope's export", "submission_metadata.yml, submission_<number>/…")
def _gradescope(children: list[Node]) -> Reading:
    metadata = next((c for c in children if c.name == METADATA and isinstance(c, File)), None)
    if metadata is None:
        return Reading()
    from grader.classroom.gradescope import Submitter, submitters

    by_name = {child.name: child for child in children}
    reading = Reading(known=set(by_name))
    people: dict[bytes, tuple[Submitter, ...]] = {}
    try:
        with metadata.open() as stream:
            people = {raw(folder): group for folder, group in submitters(stream).items()}
    except UnreadableFile as error:
        reading.problems.append(
            f"{shown(METADATA)} {error}; students are called by their folders' names"
        )
    except OSError as error:
        reading.problems.append(f"{shown(METADATA)} cannot be read: {error.strerror}")
    for name in sorted((people.keys() | by_name.keys()) - {METADATA}):
        child, group = by_name.get(name), people.get(name, ())
        if isinstance(child, File) and not group:
            if _is_work(child):
                reading.problems.append(
                    f"{shown(name)} stands beside the folders of the export; it is not graded"
                )
            continue
        for number, who in enumerate(group or (Submitter(),)):
            mark = raw(who.sid or who.email or who.name or "")
            one = StudentFiles(
                b"\0".join((name, mark, b"%d" % number)) if len(group) > 1 else name,
                shown(raw(who.name or who.email or who.sid or "") or name),
                sid=None if who.sid is None else shown(raw(who.sid)),
                email=None if who.email is None else shown(raw(who.email)),
            )
            if child is None:
                one.problems.append(f"the export has no folder {shown(name)}")
            else:
                one.sources.append(SubmittedNode(child, _entry_path(child), at=who.handed_in))
            reading.students.append(one)
    return reading


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


@_layout("blackboard", "Blackboard's download", "<assignment>_<user>_attempt_<date>_<file>")
def _blackboard(children: list[Node]) -> Reading:
    found = [
        (child, match)
        for child in children
        if not _is_folder(child) and (match := _BLACKBOARD.fullmatch(child.name)) is not None
    ]
    users: dict[bytes, tuple[bytes, str]] = {}
    for child, match in found:
        line = _first_line(child) if match["file"] is None else None
        if line is not None and (user := _ending(match["before"], line["user"])):
            users[match["before"]] = (user, line["name"])
    assignments = {before.removesuffix(user) for before, (user, _) in users.items()}
    assignments = assignments or {_shared([match["before"] for _, match in found])}
    reading = Reading(known={child.name for child, _ in found})
    for child, match in found:
        before, file = match["before"], match["file"]
        if before in users:
            user, name = users[before]
            assignment = before.removesuffix(user)
        else:
            fitting = [one for one in assignments if before.startswith(one) and before != one]
            assignment = max(fitting, key=len, default=b"")
            user, name = before[len(assignment) :], ""
        # a folder of that name may be another student's
        one = StudentFiles(user + b"\0blackboard", shown(raw(name) or user), sid=shown(user))
        if file is not None:
            at = None
            with contextlib.suppress(ValueError):  # a name may hold a date that there is not
                at = datetime(*map(int, match["when"].split(b"-")))  # type: ignore[arg-type]
            one.sources.append(SubmittedNode(child, (file,), 0, assignment, at))
        reading.students.append(one)
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
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})[:_h ]?(\d\d)(?:[:_]?\d\d)?\s*([ap]\.? ?m)?(?!\d)")

#: The first letters of the months' names in the languages of the platform's sites.
_MONTHS = tuple(
    tuple(beginnings.split())
    for beginnings in (
        *("jan ene gen", "feb fev", "mar mrt maa", "apr abr avr", "may mai mei mag maj"),
        *("jun juin giu", "jul juil lug", "aug ago aou", "sep set", "oct okt out ott", "nov"),
        "dec dez dic des",
    )
)


@_layout(
    "brightspace",
    "Brightspace's (D2L's) download",
    "<number>-<number> - <name> - <date>/…",
    adds_up=True,
    leads=True,
)
def _brightspace(children: list[Node]) -> Reading:
    found: list[tuple[tuple[bytes, bytes], bytes, str, SubmittedNode]] = []
    split = [(child, child.name.split(b" - ")) for child in children]
    named = [one for one in split if _NUMBERS.fullmatch(one[1][0]) and len(one[1]) > 2]
    # all files have a date or none has: what a student calls a file may hold a year
    undated = any(isinstance(child, File) and not _dates(parts, True) for child, parts in named)
    for child, parts in named:
        # a name may hold " - ", and so may a file
        is_file = isinstance(child, File)
        dated = [] if undated and is_file else _dates(parts, is_file)
        at = dated[0] if dated else 2
        file = b" - ".join(parts[at + 1 if dated else at :])
        if is_file == bool(file) and (dated or file):
            date = shown(parts[at]) if dated else ""
            source = SubmittedNode(child, (file,) if file else _entry_path(child), at=_moment(date))
            first, _, second = parts[0].partition(b"-")
            found.append(((first, second), b" - ".join(parts[1:at]), date, source))
    # the number that differs between students is the student's
    people = {name for _, name, _, _ in found}
    which = int(len(people) > 1 and len({pair[0] for pair, _, _, _ in found}) == 1)
    reading = Reading(known={source.node.name for *_, source in found})
    dates_of: dict[tuple[bytes, ...], dict[str, datetime | None]] = defaultdict(dict)
    for pair, name, date, source in found:
        sid, assignment = pair[which], pair[1 - which]
        dates_of[sid, name, assignment][date] = source.at
        source = replace(source, assignment=assignment)
        reading.students.append(
            StudentFiles(sid + b" - " + name, shown(name), [source], sid.decode("ascii"))
        )
    for dates in dates_of.values():
        unread = [date for date, moment in dates.items() if date and moment is None]
        if len(dates) > 1 and unread:
            reading.question = LayoutQuestion(
                f"a student has handed in {len(dates)} times, and the date {unread[0]!r} in the"
                " name of a folder cannot be read, so that the newest cannot be told; leave the"
                " newest submission of each student, or write the dates as 'Sep 3, 2019 1159 PM'"
            )
    return reading


def _dates(parts: list[bytes], is_file: bool) -> list[int]:
    """Return which parts of a name may be a date; after that of a file comes what it is called."""
    found = [i for i, part in enumerate(parts) if i > 1 and _YEAR.search(shown(part))]
    if is_file:  # what a student calls it may hold a year as well, but hardly a date and a time
        found = [i for i in found if i == 2 or _moment(shown(parts[i]))]
    return [i for i in found if b" - ".join(parts[i + 1 :])] if is_file else found


def _moment(text: str) -> datetime | None:
    """Return a date and time as Brightspace writes it, or None if they cannot be told."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    year = _YEAR.search(plain)
    if year is None:
        return None
    before, after = plain[: year.start()], plain[year.end() :]
    months = [
        number
        for word in re.findall(r"[a-z]{3,}", before)
        for number, beginnings in enumerate(_MONTHS, 1)
        if word.startswith(beginnings)
    ]
    days = re.findall(r"\d{1,2}", before)
    if numeric := re.match(r"[-_/](\d\d)[-_/](\d\d)", after):  # 2019-09-03 2359
        month, day, after = int(numeric[1]), int(numeric[2]), after[numeric.end() :]
    elif months and days:
        month, day = months[-1], int(days[0])  # the name of a weekday comes before the month's
    else:
        return None
    time = _CLOCK.search(after)
    if time is None:
        return None
    hour = int(time[1])
    if time[3]:
        hour = hour % 12 + (12 if time[3].startswith("p") else 0)
    with contextlib.suppress(ValueError):  # it may be the 31st of February
        return datetime(int(year[0]), month, day, hour, int(time[2]))
    return None


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


@_layout("moodle", "Moodle's download", "<name>_<id>_assignsubmission_file_…")
def _moodle(children: list[Node]) -> Reading:
    reading = Reading()
    for child in children:
        if found := _MOODLE.fullmatch(child.name):
            reading.known.add(child.name)
            if found["what"] == b"assignsubmission":
                reading.students.append(_numbered(child, found))
    names = {one.student for one in reading.students}
    if len(names) == 1 and len({one.sid for one in reading.students}) > 1:
        for one in reading.students:  # marking is anonymous
            one.student += f" {one.sid}"
    return reading


def _numbered(node: Node, found: re.Match[bytes]) -> StudentFiles:
    """Return the student whom Canvas or Moodle names with a number."""
    parts = found.groupdict()
    sid = parts["sid"]
    identity = parts["name"] if parts["name"].endswith(sid) else parts["name"] + b"_" + sid
    file = parts.get("file") or b""
    path = (file,) if file and not _is_folder(node) else _entry_path(node)
    source = SubmittedNode(node, path, int(parts.get("upload") or 0))
    late = [shown(file)] if parts.get("late") else []
    return StudentFiles(identity, shown(parts["name"]), [source], sid.decode("ascii"), late=late)


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


@_layout("sakai", "Sakai's download", "<Last, First>(<user>)/Submission attachment(s)/…")
def _sakai(children: list[Node]) -> Reading:
    reading = Reading()
    below = {child.name: _listed(child) for child in children if _is_folder(child)}
    marked = {name for name, entries in below.items() if _is_sakai(name, entries)}
    for child in children:
        if _is_folder(child):
            found = _SAKAI.fullmatch(child.name)
            if not (child.name in marked or (marked and found)):
                continue
            source = _attachments(child.name, below[child.name], reading)
        elif found := _SAKAI_FLAT.fullmatch(child.name):
            source = SubmittedNode(child, (found["file"],)) if found["file"] else None
        else:
            continue
        one = StudentFiles(child.name, shown(child.name), [source] if source else [])
        if found is not None:
            one.identity = found["name"] + b"(" + found["sid"] + b")"
            one.student, one.sid = shown(found["name"].strip()), shown(found["sid"])
        reading.known.add(child.name)
        reading.students.append(one)
    return reading


def _is_sakai(name: bytes, below: list[Node]) -> bool:
    """Return whether a folder holds what Sakai writes for one student."""
    names = {node.name.lower() for node in below}
    if names & {_HANDED_IN, _HANDED_BACK, name.lower() + b"_submissiontext.html"}:
        return True
    return b"timestamp.txt" in names and _SAKAI.fullmatch(name) is not None


def _attachments(name: bytes, below: list[Node], reading: Reading) -> SubmittedNode | None:
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
    folders = [shown(node.name) for node in own.values() if _is_folder(node)]
    if len(folders) > 1 and b"timestamp.txt" in _names(below):
        reading.question = LayoutQuestion(
            f"{shown(name)} looks like a student's folder from Sakai, and of"
            f" {' and '.join(folders[:2])} one may hold feedback; name the folder of what was"
            " handed in 'Submission attachment(s)', and that of what was handed back 'Feedback"
            " Attachment(s)'"
        )
    return SubmittedNode(MemoryFolder(name, own)) if own else None


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


@_layout("canvas", "Canvas' download", "<name>_<user>_<upload>_<file>")
def _canvas(children: list[Node]) -> Reading:
    files = [child for child in children if not _is_folder(child)]
    found = [
        (child, match)
        for child in files
        if (match := next(filter(None, (p.fullmatch(child.name) for p in _CANVAS)), None))
    ]
    uploads = [match["upload"] for _, match in found if match.re is not _CANVAS[2]]
    if 2 * len(found) <= len(files) or 2 * len(set(uploads)) <= len(uploads):
        return Reading()
    students = [_numbered(child, match) for child, match in found]
    return Reading(students, {child.name for child, _ in found})


# nbgrader. ------------------------------------------------------------------------
#
# ``submitted/<student>/<assignment>/…``, from "How to structure course files"
# (``user_guide/philosophy``) of https://nbgrader.readthedocs.io.  It writes a ``timestamp.txt``
# into each assignment's folder.

_SUBMITTED = b"submitted"

#: Names that stand beside nbgrader's ``submitted``.
_NBGRADER = frozenset(
    b"nbgrader_config.py gradebook.db source release autograded feedback downloaded".split()
)


@_layout(
    "nbgrader", "nbgrader's submissions", "submitted/<student>/<assignment>/…", is_platform=False
)
def _nbgrader(children: list[Node]) -> Reading:
    reading = _folders(children)
    for student in reading.students:
        (whole,) = student.sources
        student.sources = [
            SubmittedNode(node, (node.name,), 0, node.name, _timestamp(node, student.problems))
            for node in (_listed(whole.node) if _is_folder(whole.node) else [])
        ] or [whole]
    return reading


def _timestamp(assignment: Node, problems: list[str]) -> datetime | None:
    """Return the time of an assignment's folder, from its ``timestamp.txt``.

    It reads ``2015-02-02 15:58:23.948203 America/Los_Angeles``, as nbgrader's ``parse_utc``
    expects it; without a zone it is in UTC.
    """
    below = _listed(assignment) if _is_folder(assignment) else []
    for node in (node for node in below if node.name == b"timestamp.txt"):
        words = _beginning(node, 100).decode("utf-8", "replace").split()
        try:
            moment = datetime.fromisoformat(" ".join(words[:2]))
            zone = ZoneInfo(words[2]) if len(words) > 2 else timezone.utc
            aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
            return aware.astimezone(timezone.utc)
        except (ValueError, OSError, ZoneInfoNotFoundError):  # a zone may be a folder
            problems.append(f"{shown(assignment.name)}/timestamp.txt says no time")
    return None


# Folders and files that people have named themselves. -----------------------------

#: Archives that are not opened.
FOREIGN = (b".rar", b".7z")
_LATE_MARK = b"_LATE"


@_layout("folders", "each folder is one student's", "<student>/…", is_platform=False)
def _folders(children: list[Node]) -> Reading:
    """Read every folder as one student's; so is what cannot be opened."""
    nodes = [child for child in children if not isinstance(child, File)]
    return Reading([_by_name(node, node.name) for node in nodes], _names(nodes))


@_layout("files", "each file is one student's", "<student>.py, .ipynb or .zip", is_platform=False)
def _files(children: list[Node]) -> Reading:
    """Read every file that can be graded, or that is an archive, as one student's."""
    files = [
        child
        for child in children
        if _is_work(child) or (isinstance(child, File) and child.name.lower().endswith(FOREIGN))
    ]
    students = [
        _by_name(file, stem(file.name) if _is_work(file) else file.name.rpartition(b".")[0])
        for file in files
    ]
    return Reading(students, _names(files))


@_layout(
    "mixed",
    "each folder and each file is one student's",
    "<student>/… and <student>.py",
    is_platform=False,
)
def _mixed(children: list[Node]) -> Reading:
    folders, files = _folders(children), _files(children)
    return Reading(folders.students + files.students, folders.known | files.known)


def _by_name(node: Node, name: bytes) -> StudentFiles:
    student = name.removesuffix(_LATE_MARK) or name
    late = [shown(node.name)] if student != name else []
    return StudentFiles(
        student, shown(student), [SubmittedNode(node, _entry_path(node))], late=late
    )


@_layout("student", "all of it is one student's", "…", is_platform=False)
def _one_student(children: list[Node]) -> Reading:
    """Read everything as the work of one student, who has the name of what was named."""
    everything = {child.name: child for child in children}
    return Reading(
        [StudentFiles(b"", "", [SubmittedNode(MemoryFolder(b"", everything))])], set(everything)
    )


#: The layouts whose names can be recognised.
_PLATFORMS = [layout for layout in LAYOUTS.values() if layout.is_platform]


# The students of a class. ---------------------------------------------------------

#: Folders that are opened, each the only one, to find the students' entries.
_WRAPPINGS = 4


def sort_out(
    root: Folder,
    source: Path,
    archive: bytes | None = None,
    layout: str | None = None,
    is_file: bool = False,
) -> Reading:
    """Return the students of a class.

    Args:
        root: the root of the submissions.
        source: the path that was named.
        archive: the name of the archive, if it is one.
        layout: the name of the layout if the instructor has said it.
        is_file: whether the tree stands for a single file that was named.

    Raises:
        UnreadableFile: the root cannot be listed.
        LayoutQuestion: the layout cannot be told.
    """
    path, children = str(source), _clean(root)
    name = os.fsencode(source.resolve().name) if archive is None else stem(archive)
    for _ in range(_WRAPPINGS):
        inner = None if name == _SUBMITTED else _inner(children, name if archive else b"", layout)
        if inner is None:
            break
        path, name = f"{path.rstrip('/')}/{shown(inner.name)}", inner.name
        children = _clean(inner)
    if layout is None and name == _SUBMITTED:
        layout = "nbgrader"
    if layout is not None:
        found = _read([LAYOUTS[layout]], children, name)
        if not found.students and any(_is_folder(child) or _is_work(child) for child in children):
            raise LayoutQuestion(
                f"{path} holds nothing that is laid out as {layout} ({LAYOUTS[layout].title}:"
                f" {LAYOUTS[layout].shape}), but {_first_names(children)}"
            )
        return found
    platform = _platform(children)
    found = _read([*platform, LAYOUTS["folders"], LAYOUTS["files"]], children, name)
    strays = [one for one in found.students if not LAYOUTS[one.layout].is_platform]
    if strays and not is_file:
        entries = [source.node for one in strays for source in one.sources]
        if len(strays) == len(found.students):
            for folder in filter(_is_folder, entries):
                refuse_class_inside(f"{path}/{shown(folder.name)}", _listed(folder))
            raise _question(path, entries)
        found.problems.append(
            f"{_first_names(entries)}: not a name of {platform[0].title}; taken for"
            f" {'a student' if len(strays) == 1 else 'students'} of that name"
        )
        for one in strays:
            one.is_stray = True
    return found


def _inner(children: list[Node], archive: bytes, layout: str | None) -> Folder | None:
    """Return the folder to look into instead, if this one only wraps it.

    Args:
        children: the entries of the folder.
        archive: the name of the archive that it is the root of, without its ending.
        layout: the layout that the instructor has said.
    """
    folders = {child.name: child for child in children if _is_folder(child)}
    alone = len(children) == len(folders) == 1
    may_be_nbgrader = layout in (None, "nbgrader")
    tells = alone or layout is not None or bool(_NBGRADER & _names(children))
    if may_be_nbgrader and _SUBMITTED in folders and tells:
        return folders[_SUBMITTED]
    if not alone or layout == "student":
        return None
    (folder,) = folders.values()
    below = _listed(folder)
    found = _platform if layout is None else lambda at: LAYOUTS[layout].read(at).students
    here, there = found(children), found(below)
    # programs that pack a folder often wrap it in one of the archive's name
    wraps = folder.name in (archive, b"submissions")
    if may_be_nbgrader and _SUBMITTED in _names(below):
        return folder
    if layout in (None, *(one.name for one in _PLATFORMS)):
        return folder if (there or wraps) and not here else None
    return folder if there and wraps else None


def _platform(children: list[Node]) -> list[ClassLayout]:
    """Return the one platform whose names most of the entries have, or none.

    A student chooses the end of a name, and so may make it fit another platform's names as well.
    Its own fits all names; of two that do, it is the one that begins them or leaves longer ends.
    """
    work = {child.name for child in children if _is_folder(child) or _is_work(child)}
    fitting: dict[tuple[int, bool, int], ClassLayout] = {}
    for layout in _PLATFORMS:
        reading = layout.read(children)
        sources = [source for one in reading.students for source in one.sources]
        ends = sum(len(part) for s in sources for part in s.path if part != s.node.name)
        if reading.students and 2 * len(reading.known) > len(work | reading.known):
            fitting.setdefault((len(reading.known), layout.leads, ends), layout)
    return [fitting[max(fitting)]] if fitting else []


def _question(path: str, entries: Sequence[Node]) -> LayoutQuestion:
    """Return the question what a class is that no platform has named."""
    kinds = {isinstance(entry, File) for entry in entries}
    each = "mixed" if len(kinds) == 2 else "files" if True in kinds else "folders"
    fitting = " or ".join(f"--layout {name} ({LAYOUTS[name].title})" for name in (each, "student"))
    known = ", ".join(layout.title for layout in [*_PLATFORMS, LAYOUTS["nbgrader"]])
    return LayoutQuestion(
        f"{path} holds {_first_names(entries)}, and no name there tells whose work it is:"
        f" say {fitting}, or name the folder of the class (recognised without --layout: {known})"
    )


def _read(layouts: list[ClassLayout], children: list[Node], name: bytes) -> Reading:
    """Return the students that some layouts find, each among what is left by those before it."""
    found = Reading()
    by_identity: dict[bytes, StudentFiles] = {}
    left = children
    for layout in layouts:
        reading = layout.read(left)
        if reading.question is not None:
            raise reading.question
        for one in reading.students:
            one.identity, one.student = one.identity or name, one.student or shown(name)
            one.layout = layout.name
            student = by_identity.setdefault(one.identity, one)
            if student is not one:
                student.sources += one.sources
                student.problems += one.problems
                student.late += one.late
        found.problems += reading.problems
        found.known |= reading.known
        left = [child for child in left if child.name not in reading.known]
    unread = [child for child in left if _is_folder(child) or _is_work(child)]
    if unread:
        found.problems.append(
            f"{_first_names(unread)} {'is' if len(unread) == 1 else 'are'} not graded:"
            f" not laid out as {layouts[0].name} ({layouts[0].title})"
        )
    found.students = list(by_identity.values())
    for student in found.students:
        if student.late:
            student.problems.append(f"marked late: {', '.join(dict.fromkeys(student.late))}")
    return found


def refuse_class_inside(path: str, children: list[Node]) -> None:
    """Refuse to take for one student's what a platform has named for several.

    Raises:
        LayoutQuestion: names of a platform among the entries tell several students apart.
    """
    for layout in _PLATFORMS:
        count = len({student.identity for student in layout.read(children).students})
        if count > 1:
            raise LayoutQuestion(
                f"{path} holds the work of {count} students from {layout.title}, and would be"
                " taken for one student: grade that folder or archive by itself"
            )


# Nodes. ---------------------------------------------------------------------------


def _beginning(node: Node, size: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be read."""
    if not isinstance(node, File):
        return b""
    try:
        with node.open() as stream:
            return stream.read(size)
    except OSError:
        return b""  # what cannot be read is said where it is graded


def _clean(folder: Folder) -> list[Node]:
    return [child for child in folder.children() if not is_junk(child.name)]


def _listed(folder: Folder) -> list[Node]:
    """Return the entries of a folder; none if it cannot be listed."""
    try:
        return _clean(folder)
    except UnreadableFile:
        return []  # what cannot be read is said where it is graded


def _names(nodes: Sequence[Node]) -> set[bytes]:
    return {node.name for node in nodes}


def _is_folder(node: Node) -> TypeGuard[Folder]:
    return not isinstance(node, (File, UnopenedEntry))


def _is_work(node: Node) -> bool:
    return isinstance(node, File) and (is_code(node.name) or is_archive(node.name))


def _entry_path(node: Node) -> tuple[bytes, ...]:
    """Return the path that a student's own entry begins with: a file's name, a folder's none."""
    return () if _is_folder(node) else (node.name,)


def _first_names(nodes: Sequence[Node]) -> str:
    """Return the first names of many nodes, for a sentence."""
    return few([shown(node.name) for node in nodes])
