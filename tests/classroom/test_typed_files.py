"""Files that people type or save, as a review has collected them: assignments and rosters.

Each is right, or is refused with the line and the mend.  ``typed_files.json`` holds them, and what
is to come of each, as regular expressions.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from grader.classroom.arrivals import collect
from grader.classroom.assignment import read_assignment
from grader.classroom.people import complete
from grader.classroom.roster import read_roster
from headcount.core.errors import RequestError

FILES = json.loads(Path(__file__).with_name("typed_files.json").read_text("utf-8"))


def written(path, case):
    path.write_bytes(base64.b64decode(case.get("base64", "")) or case["text"].encode())
    return path


@pytest.mark.parametrize("name", FILES["toml"])
def test_an_assignment_is_read_or_refused_with_its_line_and_the_mend(tmp_path, name):
    case = FILES["toml"][name]
    try:
        found = read_assignment(written(tmp_path / "assignment.toml", case))
    except RequestError as error:
        assert "refuse" in case["want"]
        said = str(error).removeprefix(f"{tmp_path}/assignment.toml")
        line = re.match(r", line (\d+): ", said)
        assert not case.get("line") or int(line[1]) in case["line"]
        assert re.search(case.get("fix") or case["word"], said)
        assert not re.search(case.get("never", "$^"), said)
    else:
        assert "accept" in case["want"]
        points = sum(asked.points for asked in found.assignment.exercises)
        assert points == case.get("points", points)
        # a time of nobody is said where the students are known
        words = " ".join([*found.remarks, *found.assignment.extensions])
        assert re.search(case.get("word", ""), words)


#: What people write that is no TOML, and what they are told to write.
SLIPS = [
    ("title = Week 2", 'title = "Week 2"'),
    ('title = "HW', 'title = "HW"'),
    ('title = HW"', 'title = "HW"'),
    ('title "HW"', 'title = "HW"'),
    ("title = «HW»", 'title = "HW"'),
    ('title = "HW";', 'title = "HW"'),
    ("exercises = [02-05]", 'exercises = ["02-05"]'),
    ("exercises = [broadcast, scatter]", 'exercises = ["broadcast", "scatter"]'),
    ('exercises = ("02", "03")', 'exercises = ["02", "03"]'),
    ('exercises = "02", "03"', 'exercises = ["02", "03"]'),
    ('exercises = ["02" "03"]', 'exercises = ["02", "03"]'),
    ('exercises = ["02"]]', 'exercises = ["02"]'),
    ("due = 20.11.2026 23:59", "due = 2026-11-20 23:59:00"),
    ("due = 2026/11/20 23:59:00", "due = 2026-11-20 23:59:00"),
    ("due = 2026-11-5 9:00:00", "due = 2026-11-05 09:00:00"),
    ("due = 2026-11-20T23:59+01:00", "due = 2026-11-20 23:59:00+01:00"),
    ("due = 2026-11-20 23:59:00 // midnight", "due = 2026-11-20 23:59:00 # midnight"),
    ("time_zone = Europe/Berlin", 'time_zone = "Europe/Berlin"'),
    ("per_day = 10%", "per_day = 10"),
    ("per_day = 2,5", "per_day = 2.5"),
    ("grace = 15 min", "grace = 15"),
    ("[late", "[late]"),
    ("ada@example.edu = 2026-11-22 23:59:00", '"ada@example.edu" = 2026-11-22 23:59:00'),
    ("Ada Lovelace = 2026-11-22 23:59:00", '"Ada Lovelace" = 2026-11-22 23:59:00'),
    (r'roster = "C:\Users\canvas.csv"', r"roster = 'C:\Users\canvas.csv'"),
    ('"03\n]', '"03"'),
    ('"02"\n"03"\n]', '"02",'),
]


@pytest.mark.parametrize(("line", "mend"), SLIPS)
def test_a_line_that_is_no_toml_is_said_as_it_should_be(tmp_path, line, mend):
    path = tmp_path / "assignment.toml"
    begins = "exercises = [" if line.endswith("\n]") else "# an entry"
    path.write_text(f"# first\n{begins}\n{line}\nseed = 7\n")
    with pytest.raises(RequestError, match=f"{path}, line 3: .*; write ") as refused:
        read_assignment(path)
    assert str(refused.value).endswith(f"; write {mend}")


def fits(row, student="", email=None, number=".*", handed_in=""):
    seen, wanted = (sorted(re.findall(r"\w+", name)) for name in (row.student, student))
    return (
        seen == (wanted or seen)
        and row.email == (email or row.email)
        and bool(re.fullmatch(number, row.number or ""))
        and str(row.handed_in).startswith(handed_in)
    )


@pytest.mark.parametrize("name", FILES["rosters"])
def test_a_roster_is_read_or_refused_with_the_mend(tmp_path, name):
    case = FILES["rosters"][name]
    for file, text in case.get("files", {"zz stranger/notes.txt": "x"}).items():
        path = tmp_path / "work" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        roster = read_roster(written(tmp_path / "class.csv", case))
    except RequestError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert re.search(case.get("refuse") or case["or_refuse"], said)
        assert not re.search(case.get("never", "$^"), said)
        return
    assert "refuse" not in case
    layout = None if "files" in case else "folders"
    with collect(tmp_path / "work", layout=layout) as arrivals:
        rows, _ = complete(roster, arrivals.submissions, [])
    rows = [row for row in rows if "stranger" not in row.student]
    for wanted in case["rows"]:
        assert [fits(row, **wanted) for row in rows].count(True) == 1
    assert not case.get("exactly") or len(rows) == len(case["rows"])
