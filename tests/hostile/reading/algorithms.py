# promise: nothing can be read that is not the course's own runtime
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import gc
import glob
import importlib
import os
import sys
import types

WORDS = ("binomial_tree", "recursive_doubling", "dissemination", "rabenseifner", "bruck", "_ring")


def load(name):
    return lambda: importlib.import_module(name)


def found(names):
    return [name for name in names if any(word in name for word in WORDS)] or os.stat("/nothing/found")


def in_memory():
    gc.unfreeze()
    functions = [one for one in gc.get_objects() if type(one) is types.FunctionType]
    return found(one.__name__ for one in functions if "headcount" in one.__code__.co_filename)


def on_disk():
    paths = glob.glob("/course/**", recursive=True)
    return found(line for path in paths if path.endswith(".py") for line in open(path))


def from_outside():
    """The checkout, or wherever the judge has its modules from."""
    for name in {one for text in os.environ.values() for one in text.split(":") if "headcount" in one}:
        if os.path.isdir(name) and os.listdir(name):
            return os.listdir(name)
    return os.stat("/nothing/found")


def compiled():
    return [os.path.join(d, n) for d, _, names in os.walk("/course") for n in names
            if n.startswith(("algorithms.", "deadlock."))] or os.stat("/nothing/found")


ATTEMPTS = {
    name: load(name)
    for name in (
        "headcount.simulation",
        "headcount.simulation.algorithms",
        "headcount.simulation.process",
        "headcount.trace.deadlock",
        "headcount.trace.trace",
        "grader.report.replay",
        "grader.course.bench.plan",
        "grader.course.calculator",
    )
}
ATTEMPTS |= {
    "already there": lambda: next(name for name in sys.modules if "headcount.simulation" in name),
    "memory": in_memory,
    "disk": on_disk,
    "outside": from_outside,
    "compiled": compiled,
}
