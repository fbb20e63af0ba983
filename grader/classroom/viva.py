"""Questions for a viva: to each student on a run of their own code, with the answers for you."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import grader
from grader.classroom.names import is_key
from grader.classroom.pages import page
from grader.classroom.results import ClassResults, SubmissionRow
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import ExerciseVerdict, Question, QuestionedRun
from grader.files import make_private_folder, replace_file
from grader.judge.questions import questions_on
from grader.judge.settings import Settings, make_job
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld


class DrawnQuestion(NamedTuple):
    """A question to one student, with the answer of the course's solution on the same case.

    That is empty where the question does not arise there, and ``None`` where nothing is known.
    """

    exercise: str
    asked: Question
    solution: str | None


class StudentQuestions(NamedTuple):
    """The questions of one student by exercise, and why nothing can be asked about others."""

    row: SubmissionRow
    asked: Mapping[str, list[DrawnQuestion]]
    silent: Mapping[str, str]


class Solutions:
    """The answers that the course's solutions give, each run once on each case, in no sandbox.

    Args:
        exercises: the exercises of the course.
        folder: the folder of the solved chapters, which only a checkout has.
    """

    def __init__(self, exercises: Mapping[str, Exercise], folder: Path | None = None) -> None:
        self._exercises = exercises
        self._folder = folder or Path(grader.__file__).resolve().parent.parent / "solutions"
        self._known: dict[tuple[object, ...], dict[str, str]] = {}

    def answers(self, verdict: ExerciseVerdict, run: QuestionedRun) -> Mapping[str, str] | None:
        """Return the answers to the questions on a run, by their texts; None without a solution."""
        path = self._folder / f"{verdict.chapter}.py"
        if not path.is_file():
            return None
        if not run.case:  # it returns what is right
            return {one.text: one.answer for one in run.questions if one.kind == "value"}
        key = verdict.name, run.case, run.ranks, run.inputs
        if key not in self._known:
            exercise = self._exercises[verdict.name]
            drawn = exercise.cases(verdict.seed, run.ranks)
            case = next((one for one in drawn if one.name == run.case), None)
            if case is None:  # one that was run again with more time
                return None
            program = Submission.from_file(path, {exercise.name}).program
            with ProcessWorld(default_launcher(), run.ranks, program) as world:
                outcome = world.run(make_job(exercise, case, Settings(verdict.seed)))
            found = questions_on(outcome.trace, outcome.failure)
            self._known[key] = {one.text: one.answer for one in found}
        return self._known[key]


def draw(
    results: ClassResults, row: SubmissionRow, solutions: Solutions, count: int, seed: int
) -> StudentQuestions:
    """Draw a student's questions: first those of which the course's solution tells least.

    Of these, they are of several kinds and exercises.  The same student, hand-in and seed always
    get the same.
    """
    found: list[DrawnQuestion] = []
    silent: dict[str, str] = {}
    for name in (one.name for one in results.asked if not row.is_excused(one.name)):
        verdict = row.by_name.get(name)
        run = None if verdict is None else verdict.questioned
        if verdict is None:
            unknown = name in row.waiting or row.fault
            silent[name] = "not judged yet" if unknown else "not handed in"
        elif run is None or not run.questions:
            nothing = "no question about it has one answer"
            silent[name] = verdict.diagnosis.words if verdict.diagnosis else nothing
        else:
            known = solutions.answers(verdict, run)
            for one in run.questions:
                solution = None if known is None else known.get(one.text, "")
                found.append(DrawnQuestion(name, one, solution))
    Random(f"{seed} {row.key} {[one.seed for one in row.exercises]}").shuffle(found)
    asked: dict[str, list[DrawnQuestion]] = {one.name: [] for one in results.asked}
    kinds = Counter[str]()

    def order(one: DrawnQuestion) -> tuple[int, int, int]:
        told = 2 if one.solution == one.asked.answer else one.solution is None
        return told, kinds[one.asked.kind], len(asked[one.exercise])

    for _ in range(min(count, len(found))):
        best = min(found, key=order)
        found.remove(best)
        asked[best.exercise].append(best)
        kinds[best.asked.kind] += 1
    return StudentQuestions(row, {name: some for name, some in asked.items() if some}, silent)


def write_viva(
    results: ClassResults, folder: Path, exercises: Mapping[str, Exercise], count: int, seed: int
) -> None:
    """Write ``viva.html`` for the teacher and ``viva/<key>.html`` for each student.

    Raises:
        HeadcountError: a solution of the course cannot be run.
        OSError: a page cannot be written.
    """
    solutions = Solutions(exercises)
    drawn = [draw(results, row, solutions, count, seed) for row in results.rows]
    pages = {f"viva/{one.row.key}.html": [one] for one in drawn} | {"viva.html": drawn}
    make_private_folder(folder / "viva")
    for path in (folder / "viva").glob("*.html"):
        if is_key(path.stem) and f"viva/{path.name}" not in pages:
            path.unlink()  # of a student who has left
    for name, students in pages.items():
        whole = name == "viva.html"
        text = page("viva.html.j2", results=results, students=students, answers=whole, wanted=count)
        replace_file(folder / name, text.encode(), 0o600)
