# promise: nothing can be read that is not the course's own runtime
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import importlib
import sys


def load(name):
    return lambda: importlib.import_module(name)


ATTEMPTS = {
    name: load(name)
    for name in (
        "grader.course.chapters",
        "grader.course.chapters.ch02_broadcast",
        "grader.judge.judge",
        "grader.exercise.cases",
        "grader.exercise.declaration",
        "grader.exercise.hints",
        "grader.classroom",
        "tests",
        "grader.course.answers",
        "tools",
        "solutions",
    )
}
ATTEMPTS["already there"] = lambda: next(
    name for name in sys.modules if "grader.course" in name or "exercise" in name
)
