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
        "grader.oracles",
        "grader.exercises",
        "grader.exercises.ch02_broadcast",
        "grader.judge",
        "grader.cases",
        "grader.exercise",
        "grader.hints",
        "grader.classroom",
        "grader.compare",
        "tests",
        "tests.accepted",
        "tools",
        "solutions",
    )
}
ATTEMPTS["already there"] = lambda: next(
    name for name in sys.modules if "oracle" in name or "exercise" in name
)
