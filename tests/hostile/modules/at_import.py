# promise: what runs when a file is loaded runs in a rank and nowhere else
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_value
import os
import sys

print("BREACH" if "canary" in str(os.environ) else "only a rank")


def decorated(function):
    os.environ["GRADER_CANARY"] = "changed"
    sys.path.insert(0, "/tmp")
    try:
        open("/tmp/hostile", "w").close()
        print("BREACH: written")
    except OSError:
        pass
    return function


class Meta(type):
    def __init__(cls, *args):
        super().__init__(*args)
        decorated(None)


class Answer(metaclass=Meta):
    pass


@decorated
def neighbours(first=decorated(-1)):  # noqa: B008
    return first, first
