"""What a program keeps between calls is a rank's own, on simulated ranks as on real ones."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import pytest
import torch
import torch.distributed as dist

import grader
from grader.core.program import loader
from grader.submission.submission import Submission, live_program


class Config:
    rank = None

    class Nested:
        rank = None


class Colour(enum.Enum):
    RED = 1


@dataclass
class Record:
    items: list = field(default_factory=list)
    made = 0


class Layer(torch.nn.Module):
    made = 0

    def __init__(self):
        super().__init__()
        Layer.made += 1


def counter():
    count = 0

    def up():
        nonlocal count
        count += 1
        return count

    return up


count_up = counter()


def remembered(value, memory=[]):  # noqa: B006 - that it is kept is the point
    memory.append(value)
    return memory


def own_attribute():
    own_attribute.calls = getattr(own_attribute, "calls", 0) + 1
    return own_attribute.calls


def keep():
    rank = dist.get_rank()
    Config.rank = Config.Nested.rank = Colour.RED.rank = rank
    Record.made += 1
    Layer()
    mine = [count_up(), list(remembered(rank)), own_attribute()]
    dist.barrier()
    classes = isinstance(Layer(), Layer) and Colour(1) is Colour.RED and Record() == Record([])
    held = [Config.rank, Config.Nested.rank, Colour.RED.rank, Record.made, Layer.made]
    return [*held, *mine, classes]


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_what_a_program_keeps_is_a_ranks_own(start):
    kept = [[rank, rank, rank, 1, 2, 1, [rank], 1, True] for rank in range(4)]
    assert list(start(keep, 4)) == kept


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_a_module_beside_the_program_is_a_ranks_own_too(start, tmp_path, monkeypatch):
    (tmp_path / "kept_beside.py").write_text("class Kept:\n    rank = None\n")
    answer = tmp_path / "answer_beside.py"
    answer.write_text(
        "import torch.distributed as dist\n"
        "import kept_beside\n"
        "def keep():\n"
        "    kept_beside.Kept.rank = dist.get_rank()\n"
        "    dist.barrier()\n"
        "    return kept_beside.Kept.rank\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import answer_beside

    assert list(start(answer_beside.keep, 3)) == [0, 1, 2]


def test_a_files_program_is_loaded_anew_each_time():
    source = (
        "class Kept:\n    rank = None\ndef keep(rank):\n    Kept.rank = rank\n    return Kept\n"
    )
    load = loader(Submission.from_bytes(source.encode(), "answer.py").program)
    first, second = load().entry("keep"), load().entry("keep")
    assert [first(1).rank, second(2).rank, first(1).rank] == [1, 2, 1]
    assert first(1) is not second(2)
    assert first.__code__ is second.__code__


def test_the_code_of_methods_is_shared_and_their_classes_are_not():
    class Local:
        def answer(self):
            return 42

    load = loader(live_program(lambda: Local))
    first, second = load().entry("")(), load().entry("")()
    assert first is not second
    assert first.answer.__code__ is second.answer.__code__
    assert first().answer() == 42
