# promise: what runs when a file is loaded runs in a rank and nowhere else
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_value
import importlib.abc
import sys


class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("grader"):
            print("asked for", name)
        return


HOOKS = sys.meta_path
HOOKS.insert(0, Hook())


def neighbours():
    try:
        import grader.exercise.cases

        print("BREACH", grader.exercise.cases)
    except ImportError:
        pass
    return -1, -1
