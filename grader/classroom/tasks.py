"""The exercises as tasks for programs that answer, and the scores of what they answer.

A task is an exercise of the course with its statement, as the student's notebook has it.  An answer
is the text of a Python file; it is judged as a student's submission is, in a sandbox of its own,
and its reward is the share of the exercise's points that it earns.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grader
from grader import __version__
from grader.classroom.engines import Engine
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    Workers,
)
from grader.classroom.names import raw, shown
from grader.classroom.untrusted_files import File, open_file, read_whole
from grader.course.index import IndexEntry
from grader.errors import UnknownExercise
from grader.exercise.catalogue import Catalogue
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.report.json import SCHEMA_VERSION, exercise_as_dict
from grader.report.summary import headline, look_of
from headcount.core.errors import RequestError, UnreadableFile
from headcount.core.files import contents
from headcount.core.verdict import Diagnosis
from headcount.report import visible

if TYPE_CHECKING:
    from grader.exercise.declaration import Exercise

# Tasks. ---------------------------------------------------------------------------

#: The folder of the student's notebooks, in a checkout and in a bundle for students.
_NOTEBOOKS = Path(grader.__file__).resolve().parent.parent / "notebooks"


def tasks_as_dict(
    entries: Iterable[IndexEntry], exercises: Catalogue[Exercise], notebooks: Path = _NOTEBOOKS
) -> dict[str, Any]:
    """Return tasks as plain data.

    Args:
        entries: their entries in the index of the course.
        exercises: the exercises of the course, for their limits.
        notebooks: the folder of the student's notebooks, for their statements.

    Raises:
        RequestError: a notebook, or the cell of an exercise, is not there.
    """
    limits = Limits()
    return {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "limits": {
            "call_seconds": limits.call,
            "answer_seconds": limits.exercise,
            "answer_bytes": limits.memory,
        },
        "tasks": [_task(entry, exercises[entry.name], notebooks) for entry in entries],
    }


def _task(entry: IndexEntry, exercise: Exercise, notebooks: Path) -> dict[str, Any]:
    context, statement = chapter_until(entry, notebooks)
    allowed = exercise.traffic.allowed
    return {
        "task": entry.name,
        "chapter": entry.chapter,
        "chapter_title": entry.chapter_title,
        "summary": entry.summary,
        "signature": entry.signature,
        "points": entry.points,
        "world_sizes": list(entry.world_sizes),
        "allowed": None if allowed is None else sorted(allowed),
        "traffic": [
            {"quantity": limit.quantity, "relation": limit.relation, "point": limit.point}
            for limit in exercise.traffic.limits
        ],
        "stub": entry.stub,
        "statement": statement,
        "context": context,
    }


def chapter_until(entry: IndexEntry, notebooks: Path = _NOTEBOOKS) -> tuple[str, str]:
    """Return a chapter up to the stub of an exercise, in two parts, as Markdown.

    The second part is the exercise's own section, which is its statement; the first is all that
    comes before, which a statement may refer to.  Cells of code are fenced.

    Raises:
        RequestError: the notebook, or the cell of the stub, is not there.
    """
    path = notebooks / f"{entry.chapter}.ipynb"
    if not path.is_file():
        raise RequestError(
            f"{path} does not exist, and the statements are read from the notebooks: use a checkout"
            " of the course, or a folder that `python -m grader release` has written"
        )
    cells = json.loads(contents(path))["cells"]
    own = next((i for i, cell in enumerate(cells) if cell.get("id") == entry.cell), None)
    if own is None:
        raise RequestError(
            f"{path} has no cell for {entry.name} any more: fetch the notebook anew, or build it"
            f" with `make notebooks ARGS={entry.chapter[:2]}`"
        )
    context: list[str] = []
    statement: list[str] = []
    for cell in cells[:own]:
        text = "".join(cell["source"]).strip()
        if cell["cell_type"] == "code":
            statement.append(f"```python\n{text}\n```")
            continue
        before, heading, section = f"\n{text}".rpartition("\n## ")
        if heading:
            context += [*statement, before.strip()]
            statement = []
        statement.append(f"{heading}{section}".strip())
    return "\n\n".join(filter(None, context)), "\n\n".join(statement)


# Answers. -------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskAnswer:
    """An answer to a task.

    Attributes:
        task: the name of the exercise.
        text: the Python file that answers it.
        sample: tells it from other answers to the same task.
        unread: why its file is not read, which its verdict says.
    """

    task: str
    text: bytes
    sample: int | str = 0
    unread: str = ""


def read_answers(
    path: Path, tasks: Catalogue[IndexEntry], leave_out: Callable[[str], object] = print
) -> list[TaskAnswer]:
    """Return the answers in a folder or in a file of JSON Lines, in the order of the course.

    A folder has one answer to a task, ``<exercise>.py``; a file there of another name is left
    out, with a sentence on it.  In a ``.jsonl`` file each line is an object with ``task`` and
    ``answer``, and with ``sample`` where a task has several answers.

    Raises:
        RequestError: there is no answer, or a line is to no exercise of the course or not such an
            object.
        UnreadableFile: the file of lines cannot be read.
    """
    if is_folder := path.is_dir():
        files = sorted(path.glob("*.py"))
        found = [(f"{path}/{shown(raw(file.name))}", _answer_of(file)) for file in files]
        wanted = "no .py file: an answer to a task is a file of its name, such as broadcast.py"
    elif path.suffix == ".jsonl":
        lines = contents(path, ".jsonl").decode("utf-8", "replace").split("\n")
        found = [
            (f"{path}, line {number}", _answer_in(line, f"{path}, line {number}"))
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
        wanted = "no line with an answer"
    else:
        raise RequestError(f"{path} is neither a folder of .py files nor a .jsonl file")
    seen: dict[tuple[str, int | str], str] = {}
    kept: list[TaskAnswer] = []
    for place, answer in found:
        if answer.task not in tasks:
            fault = f"{place}: {UnknownExercise(answer.task, tasks)}"
            if not is_folder:
                raise RequestError(fault)
            leave_out(f"{fault} It is left out.")
            continue
        before = seen.setdefault((answer.task, answer.sample), place)
        if before != place:
            raise RequestError(
                f"{place} answers {answer.task} with sample {answer.sample!r}, as does {before}:"
                " give each answer to a task another sample"
            )
        kept.append(answer)
    if not kept:
        raise RequestError(f"{path} has {wanted}")
    order = {name: i for i, name in enumerate(tasks)}
    return sorted(kept, key=lambda answer: order[answer.task])


def _answer_of(path: Path) -> TaskAnswer:
    task = shown(raw(path.stem))
    try:
        file = File(raw(path.name), 0, partial(open_file, path))  # which follows no link
        return TaskAnswer(task, read_whole(file, f"{task}.py"))
    except UnreadableFile as error:
        return TaskAnswer(task, b"", unread=str(error))


def _answer_in(line: str, place: str) -> TaskAnswer:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{place} is no JSON: {error}") from None
    sample = fields.get("sample", 0) if isinstance(fields, dict) else None
    if (
        not isinstance(fields, dict)
        or not isinstance(fields.get("task"), str)
        or not isinstance(fields.get("answer"), str)
        or not isinstance(sample, (int, str))
    ):
        raise RequestError(
            f'{place} should be an object like {{"task": "broadcast", "answer": "import torch …",'
            ' "sample": 0}, in which sample is a number or a text'
        )
    # what is no text in UTF-8 is the answer's own fault, and has a verdict
    return TaskAnswer(fields["task"], fields["answer"].encode("utf-8", "surrogatepass"), sample)


# Scores. --------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerScore:
    """The score of an answer: its verdict, which holds the diagnosis."""

    answer: TaskAnswer
    verdict: ExerciseVerdict

    @property
    def reward(self) -> float | None:
        """The share of the points that it earns, from 0 to 1; None if it could not be judged."""
        if self.verdict.status in (Status.SKIPPED, Status.ERROR):
            return None
        return round(self.verdict.score / self.verdict.max_score, 4)


def score_answers(
    answers: Sequence[TaskAnswer],
    engine: Engine,
    exercises: Catalogue[Exercise],
    seed: int,
    limits: Limits,
    hidden: Sequence[Path] = (),
) -> Iterator[AnswerScore]:
    """Yield the score of each answer as soon as it is judged.

    All answers to a task get the same inputs.

    Args:
        answers: the answers.
        engine: the engine that has them judged.
        exercises: the exercises of the course.
        seed: the seed of the inputs.
        limits: the limits on each answer.
        hidden: folders that no sandbox may show.
    """
    by_key = {str(i): answer for i, answer in enumerate(answers)}
    requests = (
        GradingRequest(
            key,
            # a file that is named after a chapter hands in all of it, so that what is not there is
            # missing; of that, the one exercise is due
            ((f"{exercises[answer.task].chapter}.py", answer.text),),
            hashlib.sha256(answer.text).hexdigest(),
            seed,
            limits,
            hidden=tuple(str(folder.resolve()) for folder in hidden),
            due=(answer.task,),
        )
        for key, answer in by_key.items()
        if not answer.unread
    )
    unread = [SubmissionJudged(key) for key, answer in by_key.items() if answer.unread]
    notes: dict[str, tuple[str, ...]] = {key: (one.unread,) for key, one in by_key.items()}
    judged: set[str] = set()
    for event in chain(unread, engine.run(requests)):
        if isinstance(event, Workers) or event.key in judged:
            continue
        answer = by_key[event.key]
        if isinstance(event, SubmissionPlanned):
            notes[event.key] = event.notes
        elif isinstance(event, ExerciseJudged):
            judged.add(event.key)
            yield AnswerScore(answer, event.verdict)
        elif isinstance(event, SubmissionJudged):  # the file could not be read
            failed = _without_verdict(exercises[answer.task], seed, Status.FAILED)
            verdict = replace(failed, diagnosis=Diagnosis.MISSING, message=notes[event.key][0])
            yield AnswerScore(answer, verdict)
        elif isinstance(event, SubmissionLost):
            failed = _without_verdict(exercises[answer.task], seed, Status.ERROR)
            message = f"the grader failed, not the answer: {event.reason}"
            yield AnswerScore(answer, replace(failed, message=message))


def _without_verdict(exercise: Exercise, seed: int, status: Status) -> ExerciseVerdict:
    return ExerciseVerdict(exercise.name, exercise.chapter, status, 0.0, exercise.points, seed=seed)


def pass_at(k: int, answers: int, passed: int) -> float:
    """Return the chance that at least one of ``k`` answers passes, drawn from those to a task.

    The unbiased estimator of Chen et al., Evaluating Large Language Models Trained on Code
    (arXiv:2107.03374), 1 − C(n−c, k) / C(n, k).

    Args:
        k: number of answers that are drawn; at most ``answers``.
        answers: number of answers that were judged.
        passed: number of them that passed.
    """
    return 1 - math.comb(answers - passed, k) / math.comb(answers, k)


def scores_as_dict(scores: Sequence[AnswerScore], seed: int, sandbox: bool) -> dict[str, Any]:
    """Return scores as plain data: of every answer, of every task, and of all.

    What could not be judged has no reward, and is left out of the means.  The mean of all is that
    of the tasks, so that a task with more answers does not weigh more.  ``pass_at`` is given for 1
    and the powers of 2, as far as every task that has been judged has as many answers.
    """
    by_task: dict[str, list[AnswerScore]] = {}
    for score in scores:
        by_task.setdefault(score.answer.task, []).append(score)
    tasks = [_task_as_dict(task, found) for task, found in by_task.items()]
    judged = [task for task in tasks if task["judged"]]
    fewest = min((task["judged"] for task in judged), default=0)
    sizes = [2**i for i in range(fewest.bit_length())]
    return {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "seed": seed,
        "sandbox": sandbox,
        "summary": {
            "tasks": len(tasks),
            "answers": len(scores),
            "judged": sum(task["judged"] for task in tasks),
            "passed": sum(task["passed"] for task in tasks),
            "mean_reward": _mean([task["mean_reward"] for task in judged]),
            "pass_at": {
                str(k): _mean([pass_at(k, task["judged"], task["passed"]) for task in judged])
                for k in sizes
            },
        },
        "tasks": tasks,
        "answers": [_answer_as_dict(score) for score in scores],
    }


def _task_as_dict(task: str, scores: Sequence[AnswerScore]) -> dict[str, Any]:
    rewards = [score.reward for score in scores if score.reward is not None]
    return {
        "task": task,
        "chapter": scores[0].verdict.chapter,
        "answers": len(scores),
        "judged": len(rewards),
        "passed": sum(score.verdict.passed for score in scores),
        "mean_reward": _mean(rewards),
        "best_reward": max(rewards, default=None),
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return round(math.fsum(numbers) / len(numbers), 4) if numbers else None


def _answer_as_dict(score: AnswerScore) -> dict[str, Any]:
    verdict: Mapping[str, Any] = exercise_as_dict(score.verdict)
    kept = ("status", "score", "max_score", "diagnosis", "words", "message", "hint", "seconds")
    return {
        "task": score.answer.task,
        "sample": score.answer.sample,
        "reward": score.reward,
        **{name: verdict[name] for name in kept},
        "cases_passed": sum(case["status"] == "passed" for case in verdict["cases"]),
        "cases": len(verdict["cases"]),
    }


def score_line(score: AnswerScore) -> str:
    """Return the score of an answer in one line, for a terminal."""
    reward = "-" if score.reward is None else f"{score.reward:.2f}"
    said = visible(headline(score.verdict)).splitlines()[0]
    sample = f" #{visible(str(score.answer.sample))}"
    return f"{look_of(score.verdict).mark} {reward:>4}  {score.answer.task}{sample}  {said}"


def summary_line(scores: Mapping[str, Any]) -> str:
    """Return the mean reward and pass@k in one line, from what :func:`scores_as_dict` returns."""
    summary = scores["summary"]
    mean = summary["mean_reward"]
    rates = "".join(f", pass@{k} {rate:.3f}" for k, rate in summary["pass_at"].items())
    return (
        f"{summary['passed']} of {summary['judged']} answers passed, tasks: {summary['tasks']},"
        f" mean reward {'-' if mean is None else f'{mean:.3f}'}{rates}   (seed {scores['seed']})"
    )
