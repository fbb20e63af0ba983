"""Submissions that attack: a payload, its place, its time, the ranks that run it, an exercise.

A submission is two files.  ``answer.py`` is the course's own solution, whose function is called by
way of ``hidden.py``, and in there stands what is attempted.  Both follow from a seed.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grader.course.chapters import discover
from grader.exercise.declaration import Exercise
from tools.attack.payloads import Payload, draw_payload

__all__ = ["PLACES", "RANKS", "TURNS", "Variant", "variant"]

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"

#: Which ranks attack, as a condition on ``rank`` and ``n``.
RANKS = {
    "all ranks": "True",
    "rank 0": "rank == 0",
    "the last rank": "rank == n - 1",
    "all but rank 0": "rank != 0 or n == 1",
    "simulated ranks": "n > 8",
    "real ranks": "n <= 8",
}

#: In which calls, as a condition on ``calls`` and ``n``: a rank counts those it has been in.
TURNS = {
    "every call": "True",
    "the first call": "calls == 1",
    "the third call": "calls == 3",
    "from the fifth call on": "calls > 4",
    "three ranks or more": "n > 2",
}

#: Where and when: what ``call`` does, and what stands beside it.
PLACES = {
    "before the answer": "    strike(args)\n    return right(*args, **kwargs)",
    "after the answer": "    result = right(*args, **kwargs)\n    strike(args)\n    return result",
    "instead of the answer": "    return strike(args) if due() else right(*args, **kwargs)",
    "between messages": '''
    from torch.distributed import distributed_c10d as c10d

    for name in ("isend", "irecv", "send", "recv", "all_reduce", "all_gather", "broadcast"):
        for module in (dist, c10d):
            setattr(module, name, interrupted(getattr(module, name), args))
    return right(*args, **kwargs)


def interrupted(function, args):
    """The function, before whose second call the attack comes."""
    if hasattr(function, "times"):
        return function

    def wrapper(*given, **named):
        wrapper.times += 1
        if wrapper.times == 2:
            strike(args)
        return function(*given, **named)

    wrapper.times = 0
    return wrapper
''',
    "in a thread": """
    threading.Thread(target=strike, args=(args,), daemon=True).start()
    return right(*args, **kwargs)
""",
    "while another rank works": """
    if not due():
        time.sleep(0.2)
    else:
        strike(args)
    return right(*args, **kwargs)
""",
    "a moment after the answer": """
    threading.Timer(0.02, strike, (args,)).start()
    return right(*args, **kwargs)
""",
    "at exit": "    atexit.register(strike, args)\n    return right(*args, **kwargs)",
    "in a finalizer": """
    global late
    late = Late(args)
    result, late = right(*args, **kwargs), None
    return result


late = None


class Late:
    def __init__(self, args):
        self.args = args

    def __del__(self):
        strike(self.args)
""",
    "in a cycle that the collector finds": """
    late = Late(args)
    late.itself = late
    del late
    gc.set_threshold(1)
    return right(*args, **kwargs)


class Late:
    def __init__(self, args):
        self.args = args

    def __del__(self):
        strike(self.args)
""",
    "in a signal's handler": """
    signal.signal(signal.SIGALRM, lambda *_: strike(args))
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    return right(*args, **kwargs)
""",
    "in the grader's own frames": """
    result = right(*args, **kwargs)
    sys.setprofile(lambda frame, *_: profiled(frame, args))
    return result


def profiled(frame, args):
    if "headcount/" in frame.f_code.co_filename or "grader/" in frame.f_code.co_filename:
        sys.setprofile(None)
        strike(args)
""",
    "in a method of what is returned": """
    result = right(*args, **kwargs)
    if type(result) not in (list, tuple, dict):
        strike(args)
        return result
    kind = type(result)
    methods = ("__iter__", "__len__", "items", "__getitem__", "__repr__", "__class__")
    acting = type("Acting", (kind,), {name: acted(kind, name, args) for name in methods[:4]})
    return acting(result)


def acted(kind, name, args):
    def method(self, *given):
        strike(args)
        return getattr(kind, name)(self, *given)

    return method
""",
    "in methods of tensors": """
    if due():
        torch.Tensor.__add__ = raised(torch.Tensor.__add__, args)
        torch.Tensor.detach = raised(torch.Tensor.detach, args)
    return right(*args, **kwargs)


def raised(function, args):
    def method(self, *given):
        strike(args)
        return function(self, *given)

    return method
""",
    "in a metaclass": """
    return right(*args, **kwargs)


class Meta(type):
    def __new__(kind, *args):
        strike(())
        return super().__new__(kind, *args)


class Loaded(metaclass=Meta):
    pass
""",
    "in a decorator": """
    return right(*args, **kwargs)


def decorated(function):
    strike(())
    return function


@decorated
def loaded():
    pass
""",
    "in a default argument": """
    return right(*args, **kwargs)


def loaded(when=strike(())):
    pass
""",
}  # fmt: skip

#: Places that are come to when the file is loaded, before the first call.
_LOADING = ("in a metaclass", "in a decorator", "in a default argument")

#: The arguments of a payload that was written for another exercise, by their names.
_ARGUMENTS = {
    "x": "torch.ones(4)", "src": "0", "dst": "0", "peer": "0", "k": "1", "op": "dist.ReduceOp.SUM",
    "ranks_per_node": "1", "chunks": "[torch.ones(4)] * dist.get_world_size()",
}  # fmt: skip

_HIDDEN = '''"""{title}"""
{payload}

import atexit
import contextlib
import gc
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

calls = 0


def due():
    """Whether this rank attacks in this call."""
    rank, n = dist.get_rank(), dist.get_world_size()
    return ({ranks}) and ({turns})


def strike(args):
    if due():
        with contextlib.suppress({suppressed}):
            return payload({arguments})


def run(right, args, kwargs):
    global calls
    calls += 1
    return answered(right, args, kwargs)


def answered(right, args, kwargs):
{place}
'''

_FUNCTION = """

def {name}(*args, **kwargs):
    return hidden.run(_right_{name}, args, kwargs)
"""

_CLASS = """

class {name}(_right_{name}):
    def __init__(self, *args, **kwargs):
        hidden.run(super().__init__, args, kwargs)
"""


@dataclass(frozen=True)
class Variant:
    """A submission that attacks.

    Attributes:
        seed: what it was drawn from.
        payload: what is attempted.
        exercise: the name of the exercise that it answers.
        place, ranks, turns: keys of :data:`PLACES`, :data:`RANKS` and :data:`TURNS`.
        quiet: whether exceptions of the payload are suppressed.
    """

    seed: int
    payload: Payload
    exercise: str
    place: str
    ranks: str
    turns: str
    quiet: bool

    @property
    def title(self) -> str:
        """What it is, in a line."""
        who = f"{self.payload.name}: {self.place}, on {self.ranks}, in {self.turns}"
        return f"seed {self.seed}, {who}, of {self.exercise}"

    @property
    def works(self) -> bool:
        """Whether a right answer is given, too, in at least one call of every rank."""
        never = self.place == "instead of the answer"
        return not (never and self.ranks == "all ranks" and self.turns == "every call")

    @property
    def files(self) -> tuple[tuple[str, bytes], ...]:
        """Label and contents of each file that is handed in."""
        own = self.payload.exercise == self.exercise
        given = ", ".join(_ARGUMENTS.get(name, "None") for name in self.payload.parameters)
        hidden = _HIDDEN.format(
            title=self.title.replace("\\", "/").replace('"', "'"),
            payload=self.payload.source,
            ranks=RANKS[self.ranks],
            turns=TURNS[self.turns],
            suppressed="BaseException" if self.quiet else "",
            arguments=f"*(args or ({given}{',' * bool(given)}))" if own else given,
            place=PLACES[self.place].strip("\n"),
        )
        # a line that a message quotes is no breach
        hidden = hidden.replace("BREACH", r"BR\x45ACH")
        return ("hidden.py", hidden.encode()), ("answer.py", self._answer.encode())

    @property
    def _answer(self) -> str:
        exercise, name = _exercises()[self.exercise], self.exercise
        text = (SOLUTIONS / f"{exercise.chapter}.py").read_text(encoding="utf-8")
        if exercise.compiled:
            return f"{text}\nimport hidden\n"
        found = re.search(rf"^(def|class) {name}\b", text, re.M)
        assert found is not None, f"the chapter has no {name}"
        text = re.sub(rf"^(def|class) {name}\b", rf"\1 _right_{name}", text, flags=re.M)
        around = _CLASS if found[1] == "class" else _FUNCTION
        return f"{text}\nimport hidden\n{around.format(name=name)}"


@lru_cache(maxsize=1)
def _exercises() -> dict[str, Exercise]:
    return dict(discover())


#: What succeeds on simulated ranks, and may: it finds the modules that simulate them.
_SIMULATED = ("reading/algorithms",)


def variant(seed: int, family: str = "") -> Variant:
    """Return the variant of a seed: the same for the same seed, family and repository."""
    draw = random.Random(seed)
    payload = draw_payload(draw, family)
    exercises = _exercises()
    exercise = draw.choice(list(exercises))
    if payload.exercise and (payload.answers or draw.random() < 0.2):
        exercise = payload.exercise
    place, ranks, turns = draw.choice(list(PLACES)), "all ranks", "every call"
    alone = exercises[exercise].world_sizes == (1,)
    if payload.answers:
        place = "instead of the answer"
    elif payload.name in _SIMULATED:
        ranks = "real ranks"
    elif exercises[exercise].traffic.growth is not None and draw.random() < 0.5:
        ranks = "simulated ranks"
    elif not alone:
        ranks = draw.choice(list(RANKS)[:-2])
    if place in _LOADING or exercises[exercise].compiled:
        place = draw.choice(_LOADING)
    elif not payload.answers:
        turns = draw.choice(list(TURNS)[: 3 if alone else None])
        if alone and place == "between messages":
            place = "before the answer"
    return Variant(seed, payload, exercise, place, ranks, turns, draw.random() < 0.7)
