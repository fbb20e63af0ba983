"""The device that an adapter plays: it keeps CUDA's rules, and leaves torch as it was."""

from __future__ import annotations

import types

import pytest
import torch

from grader.instruments import (
    Clock,
    Device,
    OnDevice,
    on_device,
    simulate_device,
    without_device,
)


def a_device():
    return Device(Clock(lambda: 0.0), launch=0.25, notice=0.5)


def students(source):
    module = types.ModuleType("submission")
    exec(compile(source, "answer.py", "exec"), vars(module))
    return module


TIMES = """
import torch
from torch.cuda import Event

def f(run, early):
    begin, end = Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run()
    end.record()
    if not early:
        torch.cuda.synchronize()
    return begin.elapsed_time(end)
"""


def test_an_event_has_the_time_of_the_device_and_not_of_the_launch():
    device, f = a_device(), students(TIMES).f
    before = device.clock.now
    with simulate_device(f, device):
        assert f(lambda: device.run(4.0), early=False) == 4000.0
    assert device.clock.now == before + 4.0 + 0.5


def test_nobody_asks_an_event_before_the_host_has_waited():
    device, f = a_device(), students(TIMES).f
    with simulate_device(f, device), pytest.raises(RuntimeError, match="device not ready"):
        f(lambda: device.run(4.0), early=True)


def test_work_is_done_in_order_while_the_host_goes_on():
    device = a_device()
    start = device.clock.now
    for _ in range(3):
        device.run(4.0)
    assert device.clock.now == start + 3 * 0.25
    assert device.done == start + 3 * 4.0


@pytest.mark.parametrize("kinds", [(False, True), (True, False)])
def test_events_must_be_made_for_timing_and_recorded(kinds):
    with simulate_device(print, a_device()):
        begin, end = (torch.cuda.Event(enable_timing=kind) for kind in kinds)
        with pytest.raises(ValueError, match="enable_timing"):
            begin.elapsed_time(end)
        made = torch.cuda.Event(enable_timing=True)
        with pytest.raises(ValueError, match="recorded"):
            made.elapsed_time(made)


def test_streams_and_queries():
    device = a_device()
    with simulate_device(print, device):
        stream = torch.cuda.current_stream()
        event = stream.record_event()
        assert event.query()
        device.run(4.0)
        assert not stream.query()
        stream.synchronize()
        assert stream.query()


def test_a_tensor_says_that_it_is_on_the_device():
    tensor = on_device(torch.ones(3))
    assert isinstance(tensor, OnDevice)
    assert tensor.is_cuda
    assert not tensor.is_cpu
    assert (tensor.device.type, tensor.get_device()) == ("cuda", 0)


def test_without_a_device_torch_refuses_events_everywhere():
    with without_device(print):
        assert not torch.cuda.is_available()
        with pytest.raises(RuntimeError, match="no CUDA device"):
            torch.cuda.Event(enable_timing=True)


def test_torch_and_the_student_s_module_are_as_they_were():
    module = students(TIMES)
    names = ("Event", "synchronize", "is_available", "current_stream")
    before = [getattr(torch.cuda, name) for name in names]
    with simulate_device(module.f, a_device()):
        assert module.Event is torch.cuda.Event is not before[0]
    assert [getattr(torch.cuda, name) for name in names] == before
    assert module.Event is before[0]
