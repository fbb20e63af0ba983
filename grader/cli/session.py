"""A whole file judged: which of its exercises, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.core.errors import RequestError
from grader.core.verdict import SubmissionVerdict
from grader.course.chapters import Catalogue
from grader.judge.judge import Judge, Settings
from grader.launch.launchers import Launcher
from grader.submission.submission import Submission

__all__ = ["judge_file"]


def judge_file(
    path: str,
    names: Sequence[str],
    catalogue: Catalogue,
    launcher: Callable[[], Launcher],
    settings: Settings,
) -> SubmissionVerdict:
    """Judge the exercises that a file defines, or those that are named.

    Args:
        path: a ``.py`` file or a notebook.
        names: exercises to judge; one that the file lacks is ``missing``.
            None means all that the file defines.
        catalogue: the exercises of the course.
        launcher: gives what starts the ranks; asked when there is something to run.
        settings: seed, sizes and limits.

    Raises:
        UnknownExercise: a name that the course does not have.
        UnreadableFile: the path is no submission.
        RequestError: no name is given and the file defines no exercise.
    """
    wanted = [catalogue[name].name for name in dict.fromkeys(names)]
    submission = Submission.from_file(path, catalogue)
    if not wanted:
        defined = submission.names | set(submission.broken)
        wanted = [name for name in catalogue if name in defined]
    if not wanted:
        raise RequestError(_nothing_in(submission))
    judge = Judge(launcher(), settings)
    verdicts = [judge.judge(catalogue[name], submission) for name in wanted]
    return SubmissionVerdict(submission.label, settings.seed, tuple(verdicts), judge.backend)


def _nothing_in(submission: Submission) -> str:
    if submission.unparsed:
        fault = submission.unparsed[0]
        return f"{submission.label} is no Python: line {fault.line}: {fault.message}"
    return (
        f"{submission.label} defines no exercise of the course;"
        " `python -m grader list` shows their names"
    )
