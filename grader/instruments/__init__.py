"""Instruments for adapters, functions that call the student's code for an exercise in a rank.

They refuse and count operations of torch (``operations``), count the lines that run (``lines``) and
the bytes that are held (``storages``), pull gradients back (``gradients``), set the clock that the
student's code reads (``clock``), and simulate a CUDA device (``device``).
"""

from grader.instruments.clock import Clock, mark_time, show_clock
from grader.instruments.device import Device, OnDevice, on_device, simulate_device, without_device
from grader.instruments.gradients import (
    BETWEEN,
    UNSEEN,
    differentiate,
    mark_end,
    mark_unseen_collectives,
)
from grader.instruments.groups import group_as_data
from grader.instruments.lines import count_lines
from grader.instruments.operations import count_operations, elementwise_by_hand, refuse_operations
from grader.instruments.storages import (
    HeldStorages,
    PeakStorages,
    ReceivedStorages,
    return_freed_memory,
    wait_until,
)

__all__ = [
    "BETWEEN",
    "UNSEEN",
    "Clock",
    "Device",
    "HeldStorages",
    "OnDevice",
    "PeakStorages",
    "ReceivedStorages",
    "count_lines",
    "count_operations",
    "differentiate",
    "mark_end",
    "mark_time",
    "mark_unseen_collectives",
    "on_device",
    "elementwise_by_hand",
    "group_as_data",
    "refuse_operations",
    "return_freed_memory",
    "show_clock",
    "simulate_device",
    "wait_until",
    "without_device",
]
