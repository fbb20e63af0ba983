"""The clock that an adapter turns: who sees it, and that it is gone afterwards."""

from __future__ import annotations

import time
import timeit
import types

import torch

from grader.instruments import Clock, show_clock

SOURCE = """
import time
import timeit
from time import monotonic_ns, perf_counter as now

def seconds(turn):
    before = [time.perf_counter(), time.monotonic(), time.time(), now()]
    before += [time.perf_counter_ns() / 1e9, monotonic_ns() / 1e9, timeit.default_timer()]
    turn()
    after = [time.perf_counter(), time.monotonic(), time.time(), now()]
    after += [time.perf_counter_ns() / 1e9, monotonic_ns() / 1e9, timeit.default_timer()]
    return [b - a for a, b in zip(before, after)]

def by_timeit(turn):
    return timeit.timeit(turn, number=4)

def by_timer(turn):
    return timeit.Timer(turn).timeit(4)

def by_repeat(turn):
    return timeit.repeat(turn, repeat=2, number=4)

def processor(turn):
    return time.process_time() + time.thread_time_ns()
"""


def students():
    """A module of a student's own."""
    module = types.ModuleType("submission")
    exec(compile(SOURCE, "answer.py", "exec"), vars(module))
    return module


def turned(name, also=lambda: 0.0):
    clock, function = Clock(also), getattr(students(), name)

    def turn():
        clock.now += 0.375

    with show_clock(function, clock):
        return function(turn)


def test_every_way_to_read_a_clock_shows_it():
    assert turned("seconds") == [0.375] * 7
    assert turned("by_timeit") == turned("by_timer") == 4 * 0.375
    assert turned("by_repeat") == [4 * 0.375] * 2


def test_a_reading_is_too_long_for_float32():
    reading = Clock(lambda: 0.0).seconds() + 1 / 512
    assert torch.tensor(reading, dtype=torch.float32).item() != reading


def test_the_processors_clocks_stand_still():
    assert turned("processor") == 0


def test_what_is_added_is_shown():
    ticks = iter(range(100))
    assert turned("seconds", lambda: float(next(ticks))) == [7.375] * 7


def test_others_read_the_real_clock_meanwhile():
    clock, seen = Clock(lambda: 0.0), {}
    # code of a library's file name
    reads = compile("before = time.monotonic(); after = time.monotonic()", time_file(), "exec")
    with show_clock(students().seconds, clock):
        exec(reads, {"time": time}, seen)
    assert seen["before"] <= seen["after"]
    assert clock.now not in seen.values()


def time_file():
    return timeit.__file__


def test_everything_is_as_before_afterwards():
    module, real = students(), (time.perf_counter, timeit.default_timer, time.process_time)
    defaults = timeit.timeit.__defaults__
    with show_clock(module.seconds, Clock(lambda: 0.0)):
        # what was imported by name is replaced as well
        assert module.now is time.perf_counter
        assert module.now is not real[0]
    assert (time.perf_counter, timeit.default_timer, time.process_time) == real
    assert timeit.timeit.__defaults__ == defaults
    assert module.now is real[0]
