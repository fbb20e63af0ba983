"""Who is who in a class: one table of people, for all platforms and assignments.

``python -m grader people ROSTER… --to people.toml`` makes it, and asks where rosters do not say who
is who.  :func:`united` alone decides which lines of rosters, entries of the table and rows of
results are of one person, and :func:`match` alone whose a submission or a line of a gradebook is.

A number is compared with those of its own kind: Canvas' download has Canvas' own user number, and
Moodle's that of the participant, which mean somebody else in any other column.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from pathlib import Path

import msgspec
from msgspec import structs

from grader.classroom.arrivals import StudentSubmission
from grader.classroom.assignment import Assignment, RosterStudent, TomlFile
from grader.classroom.gradebooks import Table
from grader.classroom.names import few, first_last, folded, key, raw
from grader.classroom.results import SubmissionRow
from grader.classroom.roster import Roster, read_roster
from grader.classroom.store import StoredSubmission
from grader.files import replace_file
from headcount.core.errors import RequestError
from headcount.report import visible

#: Platforms whose numbers of people mean nothing elsewhere.
OWN_NUMBERS = frozenset({"canvas", "moodle"})

#: What stands for a name where marking is anonymous: "Participant 900", in the site's language.
_NAMELESS = re.compile(r"\w+ \d+")

#: The kinds of numbers of which nobody has two, so that other numbers are other people's.
_ONLY = frozenset({"canvas", "", "email"})


def person(one: StudentSubmission | StoredSubmission | SubmissionRow) -> RosterStudent:
    """Return the person whose submission it is, as far as it says."""
    own = [(one.number, one.platform if one.platform in OWN_NUMBERS else "")] if one.number else []
    return RosterStudent(one.student, one.email, (*own, *one.numbers))


@dataclass(frozen=True)
class United:
    """Records of people, put together.

    Attributes:
        groups: the records of each person, by their positions.
        by_name: the records of which nothing but a name says whose they are.
        doubts: pairs of records that may be of one person, and are apart; and whether a number or
            an address says so.
    """

    groups: list[list[int]]
    by_name: set[int]
    doubts: dict[tuple[int, int], bool]


def united(
    records: Sequence[RosterStudent],
    sources: Sequence[int],
    apart: Iterable[tuple[int, int]] = (),
    strict: bool = True,
) -> United:
    """Put the records of each person together, by numbers and addresses first, then by names.

    What two records of one source share, or two that are told apart, joins none.

    Args:
        records: what several sources say.
        sources: the source of each record; two of one source are two people.
        apart: pairs of records that are of two people, whatever they share.
        strict: whether a name does not count where there are numbers of one kind that differ.
    """
    of = [[at] for at in range(len(records))]
    told = {frozenset(pair) for pair in apart}
    by_name: set[int] = set()
    doubts: dict[tuple[int, int], bool] = {}

    def are_two(one: list[int], other: list[int]) -> bool:
        return bool(told) and any(frozenset((a, b)) in told for a in one for b in other)

    known_groups = {folded(group) for one in records for group in one.groups}
    for is_name in (False, True):
        having: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, record in enumerate(records):
            is_person = not strict and sources[at] == 0
            for form in _names(record, known_groups, is_person) if is_name else _marks(record):
                having[form].append(at)
        for all_having in having.values():
            first, *others = {id(of[at]): of[at] for at in all_having}.values()
            seen = [sources[at] for group in (first, *others) for at in group]
            fit = len({*seen}) == len(seen) and not any(are_two(first, one) for one in others)
            if fit and not (is_name and strict and _differ(records, (first, *others))):
                for other in others:
                    by_name |= {*first, *other} if is_name else set()
                    first += other
                    for at in other:
                        of[at] = first
            else:
                for one, other in combinations((first, *others), 2):
                    both = {sources[n] for n in one} & {sources[n] for n in other}
                    if not (is_name and strict and both):
                        doubts.setdefault((one[0], other[0]), not is_name)
    left = {
        (id(of[one]), id(of[other])): ((one, other), sure)
        for (one, other), sure in doubts.items()
        if of[one] is not of[other] and not are_two(of[one], of[other])
    }
    groups = sorted({id(group): sorted(group) for group in of}.values())
    return United(groups, by_name, dict(left.values()))


def _marks(one: RosterStudent) -> list[tuple[str, str]]:
    """Return the numbers and addresses of a person, each with its kind."""
    address = [(one.email, "email")] if one.email else []
    return list(dict.fromkeys((kind, folded(own)) for own, kind in (*one.numbers, *address)))


def _names(one: RosterStudent, groups: Collection[str], is_person: bool) -> list[tuple[str, str]]:
    """Return what stands for a person's name, and for a person also what submissions make of it."""
    if _NAMELESS.fullmatch(one.name):
        return []
    group, _, member = one.name.partition("-")  # Moodle writes "Group A-Ann Lee"
    names = [first_last(one.name), *([member] if folded(group) in groups else [])]
    if is_person:
        # Canvas writes a name in lower case without spaces; people name folders by logins
        marks = [value for kind, value in _marks(one) if kind in ("", "email")]
        names += [one.name, *(value.partition("@")[0] for value in marks)]
    return [("name", form) for form in dict.fromkeys(map(_compact, names)) if form]


def _compact(name: str) -> str:
    return "".join(c for c in folded(name) if c.isalnum())


def _differ(records: Sequence[RosterStudent], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether groups have different numbers of a kind of which nobody has two."""
    kinds = [{kind for at in group for kind, _ in _marks(records[at])} for group in groups]
    return any(_ONLY & one & other for one, other in combinations(kinds, 2))


def fitting(
    people: Sequence[RosterStudent], records: Sequence[RosterStudent]
) -> tuple[dict[int, int], dict[int, set[int]], set[int]]:
    """Return the person of each record, the people whose others may be, and those found by name."""
    found = united((*people, *records), [0] * len(people) + [1] * len(records), strict=False)
    start = len(people)
    whose = {group[1] - start: group[0] for group in found.groups if len(group) == 2}
    may_be: dict[int, set[int]] = defaultdict(set)
    claimed = {at: record for record, at in whose.items()}
    for (one, other), sure in found.doubts.items():
        if one < start <= other:
            may_be[other - start].add(one)
            # a name takes nothing from whom a number says
            taken = claimed.get(one)
            if taken is not None and (sure or taken + start in found.by_name):
                may_be[taken].add(one)
                whose.pop(taken, None)
    return whose, may_be, {at - start for at in found.by_name if at >= start}


def combined(records: Sequence[RosterStudent]) -> RosterStudent:
    """Return what several records say of one person; the first counts where only one can."""
    first, addresses = records[0], [one.email for one in records if one.email]
    further = [(one, "email") for one in addresses[1:] if folded(one) != folded(addresses[0])]
    numbers = {
        (kind, folded(number)): (number, kind)
        for number, kind in reversed([*(n for one in records for n in one.numbers), *further])
    }
    return replace(
        first,
        email=next(iter(addresses), None),
        numbers=tuple(reversed(numbers.values())),
        handed_in=next((one.handed_in for one in records if one.handed_in), None),
        section=next((one.section for one in records if one.section), ""),
        groups=tuple(dict.fromkeys(group for one in records for group in one.groups)),
    )


def lines_of(
    rows: Sequence[SubmissionRow], table: Table, lines: Iterable[list[str]]
) -> tuple[dict[str, list[str]], dict[str, str], tuple[SubmissionRow, ...]]:
    """Find the line of each submission in a gradebook.

    Returns:
        The line of each submission, by its key; the reason why another has none, by its key; and
        the submissions whose line was found by the name, which they may have chosen.
    """
    roster = Roster(table)
    known = [(one, line) for line in lines if (one := roster.student(line)) is not None]
    whose, may_be, by_name = fitting([one for one, _ in known], list(map(person, rows)))
    claims = Counter(at for fits in may_be.values() for at in fits)
    reasons = {}
    for at in set(range(len(rows))) - whose.keys():
        fits = may_be[at]
        most = max((claims[n] for n in fits), default=0)
        several = f"{len(fits) or 'no'} student{'s' * (len(fits) > 1)} of the gradebook fit"
        one_line = f"{most} submissions fit one student of the gradebook"
        reasons[rows[at].key] = one_line if len(fits) == 1 else several + "s" * (not fits)
    found = {rows[at].key: known[n][1] for at, n in whose.items()}
    return found, reasons, tuple(rows[at] for at in sorted(by_name & whose.keys()))


# The class of an assignment. ------------------------------------------------------


def class_of(people: Path | None, roster: Path | None) -> tuple[RosterStudent, ...]:
    """Return who should hand in: those of the roster, or else of the table, with all their numbers.

    Raises:
        RequestError: one of the files cannot be read.
    """
    table = read_people(people) if people is not None else ()
    listed = read_roster(roster) if roster is not None else ()
    if not table or not listed:
        return table or listed
    both = (*table, *listed)
    groups = united(both, [0] * len(table) + [1] * len(listed)).groups
    listed_groups = [group for group in groups if group[-1] >= len(table)]
    return tuple(combined([both[at] for at in group]) for group in listed_groups)


def complete(
    roster: Sequence[RosterStudent],
    submissions: Sequence[StudentSubmission],
    stored: Sequence[StoredSubmission],
) -> tuple[list[StudentSubmission], list[str]]:
    """Return the submissions with what the roster knows, and a row for everybody else in it.

    Args:
        roster: the students of the class.
        submissions: what has arrived; that of a group becomes one for each member.
        stored: the rows that stay; a student whose work is among them needs no other.

    Returns:
        All rows, and sentences on students who were not found.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for at, student in enumerate(roster):
        for name in student.groups:
            groups[_compact(name)].append(at)
    whose, may_be, _ = fitting(roster, list(map(person, submissions)))
    before = {at: stored[n] for n, at in fitting(roster, list(map(person, stored)))[0].items()}
    keys = {one.key for one in submissions}
    rows: list[StudentSubmission] = []
    remarks: dict[str, list[str]] = defaultdict(list)
    here, contested = set(whose.values()), set[int]()
    for number, one in enumerate(submissions):
        fits, members = may_be[number], groups[_compact(one.student)]
        if number in whose:
            at = whose[number]
            own = before.get(at)
            # a row that the student had before handing anything in stays the same row
            stays = own is not None and own.only_in_roster and own.key not in keys
            rows.append(_of(one, roster[at], own.key if own and stays else one.key))
        elif members and not fits:
            for at in members:
                row = _absent(roster[at], before.get(at), "")
                problems = (*one.problems, f"handed in by {one.student}")
                found = replace(one, number=row.number, platform=row.platform, problems=problems)
                rows += [_of(found, roster[at], row.key)] if at not in here else []
            here.update(members)
        else:
            contested |= fits
            why = "contested in the roster" if fits else "not in the roster"
            rows.append(replace(one, problems=(*one.problems, why)))
            remarks[why].append(one.student)
    for at, student in enumerate(roster):
        before_now = before.get(at)
        if at not in here and (before_now is None or before_now.only_in_roster):
            what = "it is contested what was handed in" if at in contested else "handed in nothing"
            rows.append(_absent(student, before_now, f"in the roster, and {what}"))
    return rows, [f"{what}: {', '.join(names)}" for what, names in remarks.items()]


def _of(one: StudentSubmission, student: RosterStudent, key: str) -> StudentSubmission:
    """Return a submission with what the roster knows of its student."""
    return replace(
        one,
        key=key,
        student=student.name,
        email=one.email or student.email,
        numbers=student.numbers,
        handed_in=one.handed_in or student.handed_in,
    )


def _absent(
    student: RosterStudent, before: StoredSubmission | None, problem: str
) -> StudentSubmission:
    """Return the row of a student of whom only the roster says that there is one."""
    number, platform = next(iter(student.numbers), (None, ""))
    made = key(b"roster\0" + raw(number or student.email or student.name), student.name)
    return StudentSubmission(
        made if before is None else before.key,
        student.name,
        student.email,
        number,
        (),
        (problem,),
        platform,
        numbers=student.numbers,
        only_in_roster=True,
    )


def widened(assignment: Assignment) -> Assignment:
    """Return an assignment whose times of single students name them in every way.

    A download may know a student by a login alone, where the instructor has written an address.
    """
    called: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for one in assignment.roster:
        every = tuple(filter(None, (one.name, one.email, *(number for number, _ in one.numbers))))
        for form in {form(name) for name in every for form in (folded, first_last)}:
            called[form].append(every)

    def all_names(times: Mapping[str, datetime]) -> dict[str, datetime]:
        found = dict(times)
        for who, at in times.items():
            for every in (*called[folded(who)], *called[first_last(who)]):
                found |= {name: at for name in every if name not in found}
        return found

    return replace(
        assignment,
        extensions=all_names(assignment.extensions),
        handed_in=all_names(assignment.handed_in),
    )


# The table. -----------------------------------------------------------------------

_HEAD = """\
# Who is in the class. `python -m grader people ROSTER --to THIS_FILE` adds what new rosters say,
# and keeps what you change, except remarks like this one: write note = "…" instead.
# Where an entry has maybe = […], answer: rename it to same = […] if they are one person, or to
# other = […] if they are two.
"""


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A person in the table, as it is written.

    Attributes:
        name, email, section, groups: as they are.
        known_as: numbers, logins and further addresses; those that are a platform's begin with it.
        note: whatever somebody has noted.
        maybe: entries that may be of the same person, by what they are known as.
        same, other: entries that are of the same person, and that are not.
    """

    name: str
    email: str = ""
    known_as: list[str] = []
    section: str = ""
    groups: list[str] = []
    note: str = ""
    maybe: list[str] = []
    same: list[str] = []
    other: list[str] = []

    @property
    def person(self) -> RosterStudent:
        """The person."""
        numbers = []
        for text in self.known_as:
            kind, _, number = text.partition(" ")
            plain = (text, "email" if "@" in text else "")
            numbers.append((number.strip(), kind) if kind in OWN_NUMBERS and number else plain)
        more = (tuple(numbers), None, self.section, tuple(self.groups))
        return RosterStudent(self.name, self.email or None, *more)


def _known_as(one: RosterStudent) -> list[str]:
    return [f"{kind} {own}" if kind in OWN_NUMBERS else own for own, kind in one.numbers]


def _label(one: RosterStudent) -> str:
    """Return what other entries call an entry by."""
    return one.email or next(iter(_known_as(one)), one.name)


def read_people(path: Path) -> tuple[RosterStudent, ...]:
    """Return the people of a table.

    Raises:
        RequestError: it cannot be read; the message names the line and the mend.
    """
    return tuple(entry.person for entry in _merged([], path)[0])


def update(rosters: Sequence[Path], to: Path) -> list[str]:
    """Make a table of people from rosters, or add what they say to one; return what to print.

    Raises:
        RequestError: a roster or the table cannot be read, or the table cannot be written.
    """
    entries, remarks = _merged(rosters, to)
    tables = [
        "".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
            for name, value in structs.asdict(entry).items()
            if value
        )
        for entry in entries
    ]
    try:
        replace_file(to, "\n[[person]]\n".join([_HEAD, *tables]).encode(), 0o600)
    except OSError as error:
        raise RequestError(f"{to} cannot be written: {error.strerror}") from None
    return [visible(line) for line in (*remarks, f"{to}: {len(entries)} people")]


def _entries(path: Path) -> tuple[list[Entry], list[int]]:
    """Return the entries of a table as they are written, and their lines."""
    file = TomlFile(path)
    found = file.decoded()
    written = found.pop("person", None)
    lines = [n for n, line in enumerate(file.lines, 1) if re.match(r"\s*\[\[\s*person\b", line)]
    texts = ", ".join(f"{one.name} = […]" for one in structs.fields(Entry) if one.type == list[str])
    form = f'a table has [[person]] for each, with name = "…", email, section, note, and {texts}'
    if found or not isinstance(written, list) or len(lines) != len(written):
        raise RequestError(f"{path} is no table of people: {form}")
    entries = []
    for line, one in zip(lines, written, strict=True):
        try:
            entries.append(msgspec.convert(one, Entry))
        except msgspec.ValidationError as error:
            raise RequestError(f"{path}, line {line}: {error}; {form}") from None
    return entries, lines


def _merged(rosters: Sequence[Path], path: Path) -> tuple[list[Entry], list[str]]:
    """Return the entries of a table with what rosters add, and sentences on what is not clear."""
    entries, lines = _entries(path) if path.exists() or not rosters else ([], [])
    records = [entry.person for entry in entries]
    called: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(records):
        for label in {folded(name) for name in (*_known_as(one), one.email, one.name) if name}:
            called[label].append(at)

    def named(field: str) -> list[tuple[int, int]]:
        return [(at, meant(at, who)) for at, e in enumerate(entries) for who in getattr(e, field)]

    def meant(at: int, label: str) -> int:
        fits = [other for other in called[folded(label)] if other != at]
        if len(fits) != 1:
            raise RequestError(
                f"{path}, line {lines[at]}: {len(fits)} other entries are called {label!r}; name"
                ' one by its address, or by a number, such as "canvas 1001"'
            )
        return fits[0]

    same, other, maybe = map(named, ("same", "other", "maybe"))
    # two entries are two people, except where it is said that they are one: by a number of theirs
    sources, own, remarks = [0] * len(entries), records.copy(), []
    for first, second in same:
        sources[first] = first + 1
        for at in (first, second):
            bond = (f"{first} {second}", "same")
            records[at] = replace(records[at], numbers=(*records[at].numbers, bond))
    origins = [str(path)] * len(records)
    for number, roster in enumerate(rosters, 1):
        listed = read_roster(roster)
        known = [one for one in listed if not _NAMELESS.fullmatch(one.name) or one.email]
        if len(known) < len(listed):
            remarks.append(f"{roster}: {len(listed) - len(known)} without a name are left out")
        records += known
        own += known
        sources += [-number] * len(known)
        origins += [str(roster)] * len(known)
    found = united(records, sources, other)
    of = {at: number for number, group in enumerate(found.groups) for at in group}
    people = [combined([own[at] for at in group]) for group in found.groups]
    asked: dict[int, list[int]] = defaultdict(list)
    for pair in (*found.doubts, *maybe):
        first, last = sorted(of[at] for at in pair)
        if first != last and first not in asked[last]:
            asked[last].append(first)
            remarks.append(
                f"is {_described(people[last])} also {_described(people[first])}? Answer in"
                f" {path}: there, rename maybe to same, or to other"
            )
    for group in found.groups:
        if found.by_name & {*group}:
            where = few(list(dict.fromkeys(origins[at] for at in group)))
            remarks.append(f"put together by the name alone: {records[group[0]].name}, in {where}")
    merged = []
    for number, group in enumerate(found.groups):
        one = people[number]
        written = [entries[at] for at in group if at < len(entries)]
        merged.append(
            Entry(
                one.name,
                one.email or "",
                _known_as(one),
                one.section,
                list(one.groups),
                note="; ".join(filter(None, (entry.note for entry in written))),
                maybe=[_label(people[at]) for at in asked[number]],
                other=list(dict.fromkeys(who for entry in written for who in entry.other)),
            )
        )
    return merged, remarks


def _described(one: RosterStudent) -> str:
    return f"{one.name} ({_label(one)})"
