"""A collective that is waited for at once is one report to the judge, which knows the wait from it.

The group is a recording one of rank 0 of two, on a transport that moves nothing.
"""

from __future__ import annotations

import threading

import pytest
import torch
import torch.distributed as dist

from headcount.core.events import WORLD, Blocked, Completed, Posted
from headcount.rank.recorder import Recorder
from headcount.rank.recording_group import RecordingGroup
from headcount.rank.transports.gloo import Gloo
from headcount.trace.deadlock import stuck, waiting
from headcount.trace.message_matcher import MessageMatcher


class Transport:
    """Ends every collective as soon as it is handed over, and notes which it was."""

    def __init__(self):
        self.taken = []

    def allreduce(self, tensors, options):
        self.taken.append(tensors[0].numel())
        return self

    def wait(self, *timeout):
        pass


class OneRank:
    """Rank 0, and the judge of both ranks."""

    def __init__(self):
        self.judge, self.events, self.told = MessageMatcher(2), [], threading.Semaphore(0)
        self.recorder = Recorder(0, self.emit, strict=False)
        self.transport = Transport()
        given = (self.transport, Gloo(), 0, 2, range(2), WORLD, self.recorder)
        self.group = RecordingGroup(*given)

    def emit(self, event, flush):
        self.judge.take(0, event)
        self.events.append(event)
        if isinstance(event, (Posted, Blocked)):
            self.told.release()

    def begin(self, count, in_flight=False):
        options = dist.AllreduceOptions()
        options.asyncOp = in_flight
        return self.group.allreduce([torch.ones(count)], options)

    def of(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]

    def open(self):
        """Let the other rank call what this one has called, in its order."""
        for event in self.of(Posted):
            self.recorder.resolve(event.op, 0)


@pytest.fixture
def rank():
    return OneRank()


def test_the_report_of_the_call_is_that_of_the_wait(rank):
    request = rank.begin(3)
    (posted,) = rank.of(Posted, Blocked)
    assert posted.blocking
    assert waiting(rank.judge) == {0}
    rank.judge.end(1)  # the other rank will never call
    assert list(stuck(rank.judge)) == [0]
    rank.open()
    request.wait()
    assert [type(event) for event in rank.events[-2:]] == [Posted, Completed]
    assert waiting(rank.judge) == set()
    assert rank.recorder.waits == {}


def test_what_is_left_in_flight_is_a_wait_only_once_it_is_waited_for(rank):
    request = rank.begin(3, in_flight=True)
    assert [event.blocking for event in rank.of(Posted)] == [False]
    assert waiting(rank.judge) == set()
    rank.open()
    request.wait()
    assert [type(event) for event in rank.of(Posted, Blocked, Completed)] == [
        *(Posted, Blocked, Completed)
    ]


def test_calls_of_two_threads_on_one_group_keep_their_order_and_each_its_wait(rank):
    def call(count):
        rank.begin(count).wait()

    threads = [threading.Thread(target=call, args=(count,)) for count in (3, 4)]
    for thread in threads:
        thread.start()
        rank.told.acquire()  # the first has called before the second one does
    assert not rank.of(Blocked)
    assert [(event.op, event.count) for event in rank.of(Posted)] == [(0, 3), (1, 4)]
    idents = [thread.ident for thread in threads]
    assert [event.thread for event in rank.of(Posted)] == idents
    assert {thread: held.op.number for thread, held in rank.judge.waits[0].items()} == {
        idents[0]: 0,
        idents[1]: 1,
    }
    rank.open()
    for thread in threads:
        thread.join()
    assert rank.transport.taken == [3, 4]
    assert rank.judge.waits[0] == {}
