"""The recording group: everything torch.distributed can call goes through it."""

from __future__ import annotations

import contextlib
import threading

import pytest
import torch
import torch.distributed as dist

from headcount.core.events import Polled
from headcount.core.verdict import Diagnosis
from headcount.rank.recorder import Recorder
from headcount.rank.requests import Deferred, PrivateBuffers, Request
from headcount.trace.message_matcher import MessageMatcher
from support.worlds import line_in, play


def values(outcome):
    assert outcome.failure is None, outcome.failure
    return [result.value for result in outcome.results]


# Point to point. -----------------------------------------------------------------


def test_send_and_recv():
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.arange(3.0), 1)
            return None
        x = torch.empty(3)
        source = dist.recv(x, 0)
        return x.tolist(), source

    outcome = play(answer, 2)
    assert values(outcome) == [None, ([0.0, 1.0, 2.0], 0)]
    (message,) = outcome.trace.messages
    assert (message.source, message.destination, message.nbytes) == (0, 1, 12)
    assert message.site.line == line_in(answer, "dist.send")


def test_tags_keep_messages_apart():
    def answer():
        a, b = torch.zeros(1), torch.zeros(1)
        if dist.get_rank() == 0:
            requests = [dist.isend(a + 1, 1, tag=1), dist.isend(b + 2, 1, tag=2)]
            for request in requests:
                request.wait()
        else:
            dist.recv(b, 0, tag=2)
            dist.recv(a, 0, tag=1)
        return a.item(), b.item()

    assert values(play(answer, 2))[1] == (1.0, 2.0)


def test_isend_and_irecv_around_a_ring():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        x, y = torch.full((4,), float(rank)), torch.empty(4)
        sending = dist.isend(x, (rank + 1) % n)
        receiving = dist.irecv(y, (rank - 1) % n)
        receiving.wait()
        sending.wait()
        return y[0].item()

    assert values(play(answer, 4)) == [3.0, 0.0, 1.0, 2.0]


def test_batch_isend_irecv():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        x, y = torch.full((4,), float(rank)), torch.empty(4)
        operations = [
            dist.P2POp(dist.isend, x, (rank + 1) % n),
            dist.P2POp(dist.irecv, y, (rank - 1) % n),
        ]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
        return y[0].item()

    assert values(play(answer, 3)) == [2.0, 0.0, 1.0]


def test_objects_travel():
    def answer():
        if dist.get_rank() == 0:
            dist.send_object_list(["hello", {"a": 1}], 1)
            return None
        found = [None, None]
        dist.recv_object_list(found, 0)
        return found

    assert values(play(answer, 2))[1] == ["hello", {"a": 1}]


def test_complex_and_bfloat16_messages():
    def answer():
        x = torch.full((3,), 1 + 2j) if dist.get_rank() == 0 else torch.zeros(3, dtype=torch.cfloat)
        b = torch.full((3,), float(dist.get_rank() == 0), dtype=torch.bfloat16)
        if dist.get_rank() == 0:
            dist.send(x, 1)
            dist.send(b, 1)
        else:
            dist.recv(x, 0)
            dist.recv(b, 0)
        return x[2].imag.item(), b[2].item()

    assert values(play(answer, 2))[1] == (2.0, 1.0)


@pytest.mark.parametrize("elements", [0, 3])
def test_wildcard_receives_are_matched_from_the_last_rank_on(elements):
    def answer(elements):
        rank, n = dist.get_rank(), dist.get_world_size()
        if rank:
            dist.send(torch.full((elements,), float(rank)), 0)
            return None
        x = torch.empty(elements)
        return [dist.recv(x, None) for _ in range(n - 1)]

    # every time: the world decides when nothing else can happen
    for _ in range(3):
        assert values(play(answer, 4, elements))[0] == [3, 2, 1]


def test_nonblocking_wildcards_and_receives_behind_them_keep_their_order():
    def answer():
        rank = dist.get_rank()
        if rank == 0:
            a, b, c = torch.zeros(1), torch.zeros(1), torch.zeros(1)
            requests = [dist.irecv(a, None), dist.irecv(b, 1), dist.irecv(c, None)]
            # somebody waits for us while our wildcards are open
            dist.send(torch.ones(1), 1)
            for request in requests:
                request.wait()
            return [t.item() for t in (a, b, c)]
        if rank == 1:
            first = dist.isend(torch.tensor([10.0]), 0)
            second = dist.isend(torch.tensor([11.0]), 0)
            dist.recv(torch.zeros(1), 0)
            first.wait()
            second.wait()
        else:
            dist.send(torch.tensor([20.0]), 0)
        return None

    # the first wildcard gets the highest rank's, then rank 1's come in order
    assert values(play(answer, 3))[0] == [20.0, 10.0, 11.0]


def test_a_wildcard_that_nobody_waits_for_does_not_hold_up_the_next():
    def answer():
        tags = (3, 1, 2)
        if dist.get_rank() == 0:
            x = torch.zeros(3, 1)
            # the one that is waited for is neither the first nor the last to be posted
            requests = [dist.irecv(x[i], None, tag=tag) for i, tag in enumerate(tags)]
            for i in (1, 0, 2):
                requests[i].wait()
            return x.flatten().tolist()
        requests = [dist.isend(torch.tensor([float(tag)]), 0, tag=tag) for tag in tags]
        for i in (1, 2, 0):
            requests[i].wait()
        return None

    assert values(play(answer, 2))[0] == [3.0, 1.0, 2.0]


def test_a_receive_behind_a_wildcard_is_posted_behind_it():
    recorder = Recorder(0, lambda event, flush: None)
    posting, go_on, answers = threading.Event(), threading.Event(), []

    def start(source):
        posting.set()
        go_on.wait()
        return None, source

    op = recorder.post("recv", "world", deferred=Deferred("world", 7, start))
    listener = threading.Thread(target=recorder.resolve, args=(op, 1))
    listener.start()
    posting.wait()
    # the wildcard is on its way to the transport; whoever asks now has to wait for that
    student = threading.Thread(
        target=lambda: answers.append(recorder.must_defer(False, "world", 7))
    )
    student.start()
    student.join(0.2)
    overtakes = bool(answers)
    go_on.set()
    listener.join()
    student.join()
    assert not overtakes
    assert answers == [False]


def test_a_write_at_the_moment_at_which_a_collective_ends_is_seen():
    """Between the last look at the buffer and what is remembered of it, contents tell nothing."""
    x = torch.ones(2)
    private = PrivateBuffers((x,), [x])
    assert not private.changed()
    private.deliver()
    private.remember()
    assert not private.changed()
    x.zero_()
    private.remember()
    assert private.changed()


def test_waiting_twice_returns_at_once():
    def answer():
        rank = dist.get_rank()
        x = torch.ones(1)
        request = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
        return [request.wait(), request.wait(), request.is_completed()]

    assert values(play(answer, 2)) == [[True, True, True]] * 2


def test_is_completed_becomes_true_without_a_wait():
    def answer():
        x = torch.full((1,), 5.0 * (dist.get_rank() == 0))
        request = dist.isend(x, 1) if dist.get_rank() == 0 else dist.irecv(x, 0)
        while not request.is_completed():
            pass
        return x.item()

    assert values(play(answer, 2)) == [5.0, 5.0]


def test_is_completed_of_a_wildcard():
    def answer():
        x = torch.zeros(1)
        if dist.get_rank() == 1:
            dist.send(x + 5, 0)
        else:
            request = dist.irecv(x, None)
            while not request.is_completed():
                pass
        return x.item()

    assert values(play(answer, 2))[0] == 5.0


def test_is_completed_of_a_send_to_a_wildcard():
    def answer():
        x = torch.full((1,), 5.0 * (dist.get_rank() == 0))
        if dist.get_rank() == 0:
            requests = [dist.isend(x, 1, tag=tag) for tag in range(2)]
            while requests:
                requests = [request for request in requests if not request.is_completed()]
        else:
            dist.recv(x, tag=1)
            dist.recv(x, tag=0)
        return x.item()

    assert values(play(answer, 2)) == [5.0, 5.0]


def test_a_rank_that_goes_on_asking_says_so_once(monkeypatch):
    take, polled = MessageMatcher.take, []

    def counting(matcher, rank, event):
        polled.append(isinstance(event, Polled))
        return take(matcher, rank, event)

    monkeypatch.setattr(MessageMatcher, "take", counting)

    def answer():
        x = torch.zeros(1)
        if dist.get_rank() == 1:
            dist.recv(x, 0, tag=1)
            dist.recv(x, 0)
            return None
        request = dist.isend(x, 1)
        completed = [request.is_completed() for _ in range(50)]
        dist.send(x, 1, tag=1)
        request.wait()
        return any(completed)

    assert values(play(answer, 2))[0] is False
    assert sum(polled) == 1


def test_a_request_says_whom_it_came_from():
    def answer():
        if dist.get_rank() == 1:
            dist.send(torch.ones(1), 0)
            return None
        request = dist.irecv(torch.zeros(1), None)
        request.wait()
        return request.source_rank()

    assert values(play(answer, 2))[0] == 1


def test_torchs_own_data_parallelism_is_recorded():
    def answer():
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(dist.get_rank())
        layers = [torch.nn.Linear(300, 300) for _ in range(3)]
        model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.4)
        # the same buffers again and again: each step must be over before the next one
        for _ in range(20):
            model.zero_grad()
            # the gradient of every bias is the number of rows
            model(torch.ones(1 + dist.get_rank(), 300)).sum().backward()
        return float(layers[2].bias.grad[0])

    outcome = play(answer, 2, allowed=None)
    assert values(outcome) == [1.5, 1.5]
    for operations in outcome.trace.operations:
        reductions = [op for op in operations if op.kind == "all_reduce"]
        assert sum(op.nbytes for op in reductions) == 20 * 3 * (300 * 300 + 300) * 4
        assert len(reductions) > 20


def _written_too_early(x):
    x /= 2


def _written_in_the_list(x):
    x[0] = 7.0


@pytest.mark.parametrize("touch", [_written_too_early, _written_in_the_list])
def test_a_buffer_changed_while_a_collective_is_in_flight(touch):
    def answer():
        x = torch.ones(4)
        request = dist.all_reduce(x, async_op=True)
        touch(x)
        request.wait()

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis is Diagnosis.BUFFER_RACE
    assert "while its all_reduce was in flight" in failure.message
    assert failure.site.line == line_in(answer, "request.wait()")


def test_an_input_changed_while_a_collective_is_in_flight():
    def answer():
        x, out = torch.ones(2), [torch.empty(2) for _ in range(2)]
        request = dist.all_gather(out, x, async_op=True)
        x.zero_()
        request.wait()

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis is Diagnosis.BUFFER_RACE
    assert "while its all_gather was in flight" in failure.message


def test_who_reads_a_collectives_buffer_too_early_reads_what_was_there():
    def answer():
        x = torch.full((3,), float(dist.get_rank()))
        parts = list(torch.zeros(2, 3))
        requests = [
            dist.all_reduce(x, async_op=True),
            dist.all_gather(parts, torch.ones(3), async_op=True),
        ]
        early = x.tolist(), [part.tolist() for part in parts]
        for request in requests:
            request.wait()
        return early, (x.tolist(), [part.tolist() for part in parts])

    found = values(play(answer, 2, allowed=None))
    for rank, (early, late) in enumerate(found):
        assert early == ([float(rank)] * 3, [[0.0] * 3] * 2)
        assert late == ([1.0] * 3, [[1.0] * 3] * 2)


def test_who_reads_a_receives_buffer_too_early_reads_what_was_there():
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.ones(2), 1)
            dist.send(torch.ones(2), 1, tag=1)
            return None
        x = torch.zeros(2)
        request = dist.irecv(x, 0)
        dist.recv(torch.empty(2), 0, tag=1)  # on the same connection, and so after the first
        early = x.tolist()
        request.wait()
        return early, x.tolist()

    assert values(play(answer, 2))[1] == ([0.0] * 2, [1.0] * 2)


@pytest.mark.parametrize("function", ["recv", "irecv"])
def test_autograd_knows_of_what_a_receive_overwrites(function):
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.zeros(2), 1)
            return
        weight, x = torch.ones(2, requires_grad=True), torch.ones(2)
        loss = (weight * x).sum()
        request = getattr(dist, function)(x, 0)
        if function == "irecv":
            request.wait()
        loss.backward()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "modified by an inplace operation" in failure.message


def test_a_collective_in_flight_keeps_strides_and_autograd_apart():
    def answer():
        x = torch.arange(6.0).reshape(2, 3).T.contiguous().requires_grad_()
        y = (x * 2).sum()
        dist.all_reduce(x.data, async_op=True).wait()
        y.backward()
        return x.tolist(), x.grad.tolist()

    doubled = (2 * torch.arange(6.0).reshape(2, 3).T).tolist()
    assert values(play(answer, 2, allowed=None)) == [(doubled, [[2.0, 2.0]] * 3)] * 2


class Recording:
    """A recorder's part in a request, held up where it reports completion."""

    def __init__(self):
        self.reporting, self.go_on = threading.Event(), threading.Event()

    def hold(self, op, request):
        pass

    def done(self, op):
        self.reporting.set()
        assert self.go_on.wait(30)


class Transport:
    """A transport's request, complete when the test says so."""

    def __init__(self):
        self.future = torch.futures.Future()

    def get_future(self):
        return self.future


def test_a_future_is_complete_only_after_its_operation_was_reported():
    """Who waits for it may use the buffer again, and nobody must see that too early."""
    recorder, transport = Recording(), Transport()
    future = Request(recorder, 0, transport).get_future()
    completing = threading.Thread(target=transport.future.set_result, args=(["sum"],))
    completing.start()
    assert recorder.reporting.wait(30)
    early = future.done()
    recorder.go_on.set()
    completing.join()
    assert not early
    assert future.wait() == ["sum"]


def test_a_world_of_one():
    def answer():
        return dist.get_rank(), dist.get_world_size(), dist.get_backend()

    assert values(play(answer, 1)) == [(0, 1, "gloo")]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: torch.ones(4, 4).t(), "contiguous"),
        (lambda: torch.ones(3).to_sparse(), "dense CPU tensor"),
        (lambda: torch.ones(3, device="meta"), "dense CPU tensor"),
    ],
)
def test_tensors_that_no_message_can_carry(make, text):
    def answer():
        if dist.get_rank() == 0:
            dist.send(make(), 1)
        else:
            dist.recv(torch.ones(3), 0)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert failure.rank == 0
    assert text in failure.message


# Subgroups. ----------------------------------------------------------------------


def test_subgroups_record_too():
    def answer():
        rank = dist.get_rank()
        odd, even = dist.new_group([1, 3]), dist.new_group([0, 2])
        group = odd if rank % 2 else even
        x = torch.full((1,), float(rank))
        if dist.get_group_rank(group, rank) == 0:
            dist.send(x, rank + 2, group=group)
        else:
            source = dist.recv(x, None, group=group)
            return x.item(), source
        return None

    outcome = play(answer, 4)
    assert values(outcome) == [None, None, (0.0, 0), (1.0, 1)]
    assert [(m.source, m.destination) for m in outcome.trace.messages] == [(0, 2), (1, 3)]


def test_ranks_may_make_their_own_groups_alone():
    def answer():
        rank, seen = dist.get_rank(), []
        for members in ([0, 1, 2], [rank], [0, 1, 2]):  # rank 3 makes its own only
            group = dist.new_group(members, use_local_synchronization=True)
            if rank in members:
                x = torch.tensor([rank + 1])
                dist.all_reduce(x, group=group)
                seen.append(x.item())
        return seen

    outcome = play(answer, 4, allowed=frozenset({"new_group", "all_reduce"}))
    assert values(outcome) == [[6, 1, 6], [6, 2, 6], [6, 3, 6], [4]]
    assert sorted(map(list, outcome.trace.groups.values())) == sorted(
        [[0, 1, 2, 3], [0, 1, 2], [0, 1, 2], [0], [1], [2], [3]]
    )


def test_a_gloo_subgroup_is_a_recording_group():
    def answer():
        group = dist.new_group([0, 1], backend="gloo")
        dist.all_reduce(torch.ones(1), group=group)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.FORBIDDEN_CALL


def test_a_group_that_not_all_ask_for_is_a_deadlock():
    def answer():
        if dist.get_rank() == 0:
            dist.new_group([0, 1])

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "new_group" in failure.message


def test_groups_made_in_different_order():
    def answer():
        if dist.get_rank() == 0:
            dist.new_group([0, 1])
            dist.new_group([0, 2])
        else:
            dist.new_group([0, 2])
            dist.new_group([0, 1])

    assert play(answer, 3).failure.diagnosis is Diagnosis.ORDER_MISMATCH


# Collectives. --------------------------------------------------------------------

import torch.distributed._functional_collectives as functional  # noqa: E402
import torch.distributed.nn  # noqa: E402


def _all_gather_into():
    out = torch.empty(2 * dist.get_world_size())
    dist.all_gather_into_tensor(out, torch.ones(2))
    return out


def _gather():
    parts = [torch.empty(2) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(torch.ones(2), parts, dst=0)


def _scatter():
    parts = [torch.ones(2) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.scatter(torch.empty(2), parts, src=0)


def _chunks():
    return [torch.ones(2) for _ in range(dist.get_world_size())]


COLLECTIVES = {
    "broadcast": lambda: dist.broadcast(torch.ones(2), 0),
    "all_reduce": lambda: dist.all_reduce(torch.ones(2)),
    "reduce": lambda: dist.reduce(torch.ones(2), 0),
    "all_gather": lambda: dist.all_gather(_chunks(), torch.ones(2)),
    "all_gather (into tensor)": _all_gather_into,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": lambda: dist.reduce_scatter(torch.empty(2), _chunks()),
    "reduce_scatter (tensor)": lambda: dist.reduce_scatter_tensor(
        torch.empty(2), torch.ones(2 * dist.get_world_size())
    ),
    "all_to_all": lambda: dist.all_to_all(_chunks(), _chunks()),
    "all_to_all (single)": lambda: dist.all_to_all_single(
        torch.empty(2 * dist.get_world_size()), torch.ones(2 * dist.get_world_size())
    ),
    "barrier": dist.barrier,
    "barrier (monitored)": dist.monitored_barrier,
    "all_gather (objects)": lambda: dist.all_gather_object([None] * dist.get_world_size(), "a"),
    "broadcast (objects)": lambda: dist.broadcast_object_list(["a"], 0),
    "all_reduce (functional)": lambda: functional.all_reduce(
        torch.ones(2), "sum", dist.group.WORLD
    ).sum(),
    "all_gather (functional)": lambda: functional.all_gather_tensor(
        torch.ones(2), 0, dist.group.WORLD
    ).sum(),
    "all_reduce (torch.ops)": lambda: torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD.group_name)
    ),
    "all_reduce (nn)": lambda: torch.distributed.nn.all_reduce(torch.ones(2)),
    "all_reduce (async)": lambda: dist.all_reduce(torch.ones(2), async_op=True).wait(),
    "all_reduce (the group's method)": lambda: dist.group.WORLD.allreduce(
        [torch.ones(2)], dist.AllreduceOptions()
    ).wait(),
    "all_reduce (the base class)": lambda: dist.ProcessGroup.allreduce(
        dist.group.WORLD, [torch.ones(2)]
    ).wait(),
    "all_reduce (the backend)": lambda: (
        dist.group.WORLD._get_backend(torch.device("cpu"))
        .allreduce([torch.ones(2)], dist.AllreduceOptions())
        .wait()
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_that_is_not_allowed_is_refused(name):
    call = COLLECTIVES[name]

    def answer():
        with contextlib.suppress(RuntimeError):  # swallowing the refusal does not help
            call()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.FORBIDDEN_CALL
    assert name.split(" ")[0] in failure.message


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COLLECTIVES)
def test_an_allowed_collective_works_and_is_recorded(name):
    call = COLLECTIVES[name]

    def answer():
        call()

    kind = name.split(" ")[0]
    outcome = play(answer, 2, allowed=frozenset({kind}))
    if outcome.failure and "Backend gloo does not support" in outcome.failure.message:
        pytest.skip(f"torch {torch.__version__}: {outcome.failure.message}")
    assert outcome.failure is None
    assert {op.kind for ops in outcome.trace.operations for op in ops} == {kind}


def test_a_collective_on_all_ranks_gives_the_right_values():
    def answer():
        x = torch.full((3,), float(dist.get_rank() + 1))
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        return x.tolist()

    assert values(play(answer, 4, allowed=None)) == [[4.0] * 3] * 4


# Ways around. --------------------------------------------------------------------


def _private_gloo():
    from datetime import timedelta

    store = dist.HashStore()
    dist.ProcessGroupGloo(store, 0, 1, timedelta(seconds=5))


def _dispatcher():
    torch.ops.c10d.barrier(torch.ones(1), dist.group.WORLD.boxed(), [0], False)


def _split():
    dist.group.WORLD.split_group([0, 1])


@pytest.mark.parametrize("call", [_private_gloo, _dispatcher, _split])
def test_a_way_around_is_refused(call):
    def answer():
        call()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.FORBIDDEN_CALL


@pytest.mark.parametrize(
    "call",
    [dist.destroy_process_group, lambda: dist.init_process_group("gloo")],
)
def test_the_process_group_is_not_the_students(call):
    def answer():
        call()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert failure.rank == 0


def test_other_backends_are_not_to_be_had():
    def answer():
        dist.new_group([0, 1], backend="nccl")

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "speaks gloo" in failure.message


@pytest.mark.parametrize("peer", [-1, 2, 99])
@pytest.mark.parametrize("call", ["send", "recv", "isend", "irecv"])
def test_a_rank_that_does_not_exist(call, peer):
    def answer():
        getattr(dist, call)(torch.ones(1), peer)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert f"there is no rank {peer} in a group of 2; its ranks are 0 to 1" in failure.message


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("call", ["send", "recv", "isend", "irecv"])
def test_nobody_talks_to_itself(call, n):
    def answer():
        getattr(dist, call)(torch.ones(1), dist.get_rank())

    failure = play(answer, n).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "same as the rank" in failure.message


def test_a_collective_that_raises_and_is_caught_is_no_forgotten_request():
    def answer():
        shorter = [torch.empty(1 + other) for other in range(2)]
        try:
            dist.all_gather(shorter, torch.ones(2))
        except (RuntimeError, ValueError) as error:
            return type(error).__name__
        return "no error"

    outcome = play(answer, 2, allowed=frozenset({"all_gather"}))
    assert outcome.failure is None
    assert [result.value for result in outcome.results] != ["no error"] * 2


def test_what_the_transport_refuses_does_not_keep_its_buffers():
    def fn():
        x, piece = torch.ones(2), torch.zeros(1)
        try:
            dist.reduce_scatter_tensor(piece, x)  # three ranks need three elements
        except RuntimeError:
            dist.all_reduce(x)
        return x.tolist()

    outcome = play(fn, 3, allowed=None)
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == [[3.0, 3.0]] * 3


def test_a_thread_of_an_earlier_call_does_not_speak_about_this_one():
    events = []
    recorder = Recorder(0, lambda event, flush: events.append(event))
    late = recorder.post("recv", "default", peer=1)
    recorder.begin(None, True)
    own = recorder.post("recv", "default", peer=1)
    events.clear()
    recorder.blocked(late)
    recorder.done(late)
    recorder.polled(late)
    assert events == []
    recorder.done(own)
    assert [event.op for event in events] == [0]
