"""Shows a learner's progress in the course."""

from __future__ import annotations

from grader.course.course_map import map_html
from grader.course.index import course_index
from grader.judge.progress import CourseProgress, overview
from grader.report.text import progress_report
from headcount.core.errors import is_ours
from headcount.core.notebook import shows_results
from headcount.report import plain

__all__ = [
    "Progress",
    "progress",
]

__tracebackhide__ = is_ours


class Progress:
    """A learner's progress in the course; the value of :func:`progress`.

    Attributes:
        overview: the same as data.
    """

    def __init__(self, overview: CourseProgress) -> None:
        self.overview = overview

    def __repr__(self) -> str:
        return plain(progress_report(self.overview))

    def _repr_html_(self) -> str:
        return map_html(self.overview)


def progress() -> Progress:
    """Return which exercises of the course are passed, tried or untouched.

    Every :func:`check` of your own functions counts, in notebooks and on the
    command line.  Progress is kept in ``.grader/progress.json`` of the course; delete
    the file to begin anew.
    """
    found = Progress(overview(course_index()))
    if not shows_results():
        print(found)
    return found
