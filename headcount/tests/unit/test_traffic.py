"""Matching, waits and rounds, on records made by hand: no process is started."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Expired,
    Failed,
    Grouped,
    Inspected,
    Polled,
    Posted,
    Signature,
)
from headcount.core.verdict import Diagnosis
from headcount.trace.deadlock import deadlock, quiescent, stuck
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.trace import Step, replay


class Script:
    """Feeds a matcher with events as ranks would send them."""

    def __init__(self, size):
        self.matcher = MessageMatcher(size)
        self.clock = 0
        self.counts = [0] * size

    def now(self):
        self.clock += 1
        return self.clock

    def post(
        self, rank, kind, peer=ANY, tag=0, group=WORLD, count=1, dtype="float32", detail="",
        signatures=(),
    ):  # fmt: skip
        op = self.counts[rank]
        self.counts[rank] += 1
        deferred = kind == "recv" and peer == ANY
        self.matcher.take(
            rank,
            Posted(
                op, kind, peer, tag, group, count, 4 * count, dtype, detail, False, deferred,
                "f.py", 10 * rank + op, self.now(), signatures=list(signatures),
            ),
        )  # fmt: skip
        return op

    def block(self, rank, op):
        self.matcher.take(rank, Blocked(op, "f.py", 10 * rank + op, self.now()))

    def send(self, rank, peer, **more):
        self.block(rank, self.post(rank, "send", peer, **more))

    def recv(self, rank, peer=ANY, **more):
        self.block(rank, self.post(rank, "recv", peer, **more))

    def call(self, rank, kind="all_reduce", **more):
        self.block(rank, self.post(rank, kind, **more))

    def done(self, rank, op):
        self.matcher.take(rank, Completed(op, self.now()))


# Matching. ------------------------------------------------------------------------


def test_the_kth_send_meets_the_kth_receive_of_its_channel():
    s = Script(2)
    for count in (1, 2, 3):
        s.post(0, "send", 1, count=count)
    for count in (1, 2, 3):
        s.post(1, "recv", 0, count=count)
    assert s.matcher.failures == []
    assert [op.partner.count for op in s.matcher.operations[0]] == [1, 2, 3]


def test_tags_and_groups_are_channels_of_their_own():
    s = Script(2)
    s.matcher.take(0, Grouped("team", [0, 1]))
    s.post(0, "send", 1, tag=1)
    s.post(0, "send", 1, group="team")
    s.post(1, "recv", 0, tag=0)
    assert not any(op.matched for op in s.matcher.operations[1])
    s.post(1, "recv", 0, tag=1)
    s.post(1, "recv", 0, group="team")
    assert [op.matched for op in s.matcher.operations[1]] == [False, True, True]


def test_a_wildcard_waits_for_a_choice_and_so_does_what_stands_behind_it():
    s = Script(3)
    s.post(0, "recv")
    s.post(0, "recv", 1)
    s.post(1, "send", 0)
    s.post(2, "send", 0)
    wildcard, behind = s.matcher.operations[0]
    assert (wildcard.matched, behind.matched) == (False, False)
    assert s.matcher.ready == [wildcard]
    assert s.matcher.candidates(wildcard) == [1, 2]
    s.matcher.resolve(wildcard, 2)
    assert (wildcard.peer, behind.peer) == (2, 1)
    assert (wildcard.matched, behind.matched) == (True, True)
    # only the wildcard of this script was posted as deferred
    assert [(r.op, r.source) for r in s.matcher.take_resolutions()] == [(0, 2)]
    assert s.matcher.take_resolutions() == []


def test_what_stands_before_a_wildcard_takes_its_message_first():
    s = Script(3)
    s.post(0, "recv", 1)
    s.post(0, "recv")
    s.post(1, "send", 0)
    named, wildcard = s.matcher.operations[0]
    assert named.matched
    assert s.matcher.candidates(wildcard) == []


@pytest.mark.parametrize(
    "change, word",
    [({"count": 2}, Diagnosis.SIZE_MISMATCH), ({"dtype": "int64"}, Diagnosis.DTYPE_MISMATCH)],
)
def test_both_ends_are_compared(change, word):
    s = Script(2)
    s.post(0, "send", 1)
    s.post(1, "recv", 0, **change)
    (failure,) = s.matcher.failures
    assert failure.diagnosis is word
    assert "line 0" in failure.message
    assert "line 10" in failure.message


def test_what_is_left_over():
    s = Script(2)
    s.post(0, "send", 1)
    s.post(1, "recv", 0)
    s.post(1, "send", 0)
    s.done(0, 0)
    assert [(op.rank, op.number) for op in s.matcher.unreceived()] == [(1, 1)]
    assert [(op.rank, op.number) for op in s.matcher.unwaited()] == [(1, 0), (1, 1)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_members_of_a_group_have_to_agree(order):
    s = Script(3)
    for rank in order:
        members = [rank, rank + 1]
        s.matcher.take(rank, Grouped("1", members))
        s.call(rank, "new_group", group="1", detail=str(members))
    (failure,) = s.matcher.failures
    assert failure.diagnosis is Diagnosis.ORDER_MISMATCH
    assert (failure.rank, failure.site.line) == (1, 10)
    assert failure.message == (
        "rank 0 calls new_group ([0, 1]) at line 0, while rank 1 calls new_group ([1, 2]) at"
        " line 10; every rank has to make the same groups in the same order"
    )


@given(st.permutations(range(6)))
def test_a_disagreement_reads_the_same_in_whatever_order_ranks_arrive(order):
    s = Script(3)
    posts = [
        (0, "all_reduce"), (1, "all_reduce"), (2, "broadcast"),
        (0, "broadcast"), (1, "barrier"), (2, "all_reduce"),
    ]  # fmt: skip
    later = []
    for index in order:  # any interleaving that keeps each rank's own order
        rank, kind = posts[index]
        if index >= 3 and s.counts[rank] == 0:
            later.append(posts[index])
        else:
            s.post(rank, kind)
    for rank, kind in later:
        s.post(rank, kind)
    assert len(s.matcher.failures) == 1
    message = s.matcher.failures[0].message
    assert message.startswith("rank 0 calls all_reduce at line 0, while rank 2 calls broadcast")


def signed(gives, takes, dtype="float32"):
    return [Signature(dtype, gives, takes)]


def disagreed(*calls, kind="all_to_all", peer=ANY):
    """What is said of one collective that rank i calls with the i-th signatures."""
    s = Script(len(calls))
    for rank, signatures in enumerate(calls):
        s.post(rank, kind, peer, signatures=signatures)
    found = s.matcher.failures
    assert all(op.doomed == bool(found) for ops in s.matcher.operations for op in ops)
    return found[0] if found else None


def test_what_one_gives_is_what_the_other_takes_and_no_more_is_asked():
    # rank i gives rank j what j takes from i: 2 rows this way, 3 that way
    assert disagreed(signed([1, 2], [1, 3]), signed([3, 4], [2, 4])) is None
    failure = disagreed(signed([1, 2], [1, 3]), signed([3, 4], [1, 4]))
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert failure.message == (
        "in all_to_all, rank 0 gives 2 float32 elements to rank 1 (line 0), and rank 1 takes"
        " 1 float32 element from rank 0 (line 10)"
    )


def test_the_first_pair_is_named_where_several_disagree():
    even, odd = signed([2], [2]), signed([3], [3])
    failure = disagreed(even, even, odd, odd, kind="all_reduce")
    assert failure.message == (
        "all_reduce of 2 float32 elements on rank 0 (line 0), of 3 float32 elements on"
        " rank 2 (line 20)"
    )


def test_ranks_that_exchange_nothing_need_not_agree():
    # a gather at rank 0, which knows that rank 2 gives more: ranks 1 and 2 never meet
    root, short, long = signed([1], [1, 1, 5]), signed([1], []), signed([5], [])
    assert disagreed(root, short, long, kind="gather", peer=0) is None
    failure = disagreed(root, long, short, kind="gather", peer=0)
    assert "rank 1 gives 5 float32 elements to rank 0" in failure.message


def test_a_dtype_that_differs_is_said_before_a_size():
    failure = disagreed(signed([2], [2]), signed([3], [3], "int32"), kind="all_gather")
    assert failure.diagnosis is Diagnosis.DTYPE_MISMATCH
    assert failure.message == (
        "all_gather of 2 float32 elements per rank on rank 0 (line 0), of 3 int32 elements"
        " per rank on rank 1 (line 10)"
    )


def test_tensors_that_are_coalesced_are_compared_one_by_one():
    one, other = signed([4], [4]) + signed([8], [8]), signed([8], [8]) + signed([4], [4])
    assert disagreed(one, one, kind="all_reduce") is None
    assert disagreed(one, other, kind="all_reduce").diagnosis is Diagnosis.SIZE_MISMATCH
    assert "of 2 tensors on rank 0" in disagreed(one, one[:1], kind="all_reduce").message


# Deadlock. ------------------------------------------------------------------------


def test_a_running_rank_keeps_those_that_wait_for_it_alive():
    s = Script(3)
    s.recv(0, 1)
    s.recv(1, 2)
    assert stuck(s.matcher) == []
    s.matcher.end(2)
    assert stuck(s.matcher) == [0, 1]


def test_a_matched_operation_is_no_wait():
    s = Script(2)
    s.send(0, 1)
    s.recv(1, 0)
    assert stuck(s.matcher) == []
    assert not quiescent(s.matcher)


def test_a_cycle_is_named_from_its_lowest_rank():
    s = Script(4)
    for rank in (2, 1, 3):
        s.send(rank, rank % 3 + 1)
    failure = deadlock(s.matcher)
    assert failure.cycle == (1, 2, 3)
    assert failure.message.startswith("rank 1 waits to send to rank 2 at line 10")
    assert [wait.peers for wait in failure.waits] == [(2,), (3,), (1,)]


def needs_buffers(script):
    failure = deadlock(script.matcher)
    assert "buffered" not in failure.message
    return any("only work where sends are buffered" in line for line in failure.detail)


def test_a_deadlock_that_buffers_would_dissolve_is_said_to_need_them():
    s = Script(4)
    s.send(0, 1)
    s.send(1, 2)
    s.send(2, 0)
    # rank 0, once it goes on, may send what rank 3 waits for
    s.recv(3, 0)
    assert needs_buffers(s)


def test_a_deadlock_that_needs_more_than_buffers_does_not_speak_of_them():
    s = Script(3)
    s.send(0, 1)
    s.send(1, 2)
    s.recv(2, 0)  # and nobody knows whether rank 0 would ever send
    assert not needs_buffers(s)


def test_a_deadlock_that_outlives_its_sends_does_not_speak_of_buffers():
    s = Script(4)
    s.send(0, 1)
    s.send(1, 0)
    s.recv(2, 3)
    s.recv(3, 2)
    assert not needs_buffers(s)


def test_buffers_do_not_help_where_nobody_sends():
    s = Script(2)
    s.recv(0, 1)
    s.recv(1, 0)
    assert not needs_buffers(s)


def test_buffers_do_not_help_a_send_to_a_rank_that_has_returned():
    s = Script(2)
    s.matcher.end(1)
    s.send(0, 1)
    assert not needs_buffers(s)


def test_buffers_do_not_help_a_send_on_another_tag():
    s = Script(2)
    s.send(0, 1, tag=1)
    s.recv(1, 0, tag=2)
    assert not needs_buffers(s)


def test_a_cycle_through_a_second_peer_is_found():
    s = Script(4)
    s.call(0)  # waits for 1, 2 and 3; of these, only 3 waits for 0
    s.recv(1, 2)
    s.matcher.end(2)
    s.recv(3, 0)
    assert deadlock(s.matcher).cycle == (0, 3)


def test_nobody_goes_on_in_a_group_whose_ranks_have_disagreed():
    s = Script(2)
    s.post(0, "broadcast", peer=0)
    s.call(1, "all_reduce")
    s.done(1, 0)
    s.call(0, "all_reduce")
    s.call(1, "all_reduce")
    assert [f.diagnosis for f in s.matcher.failures] == [Diagnosis.ORDER_MISMATCH]
    assert stuck(s.matcher) == [0, 1]


def test_a_rank_lives_while_one_of_its_threads_does():
    s = Script(3)
    s.recv(0, 1)
    s.matcher.take(0, Blocked(s.post(0, "recv", 2), "f.py", 1, s.now(), thread=7))
    s.recv(1, 0)
    assert stuck(s.matcher) == []
    s.matcher.end(2)
    assert stuck(s.matcher) == [0, 1]


def test_a_wait_with_a_time_limit_ends_by_itself():
    s = Script(2)
    op = s.post(0, "recv", 1)
    s.matcher.take(0, Blocked(op, "f.py", 1, s.now(), limit=100))
    s.recv(1, 0)
    assert stuck(s.matcher) == []
    s.matcher.take(0, Expired(op, 0, s.now()))
    s.matcher.take(0, Blocked(op, "f.py", 1, s.now()))
    assert stuck(s.matcher) == [0, 1]


def test_a_deadlock_is_certain_when_all_of_its_ranks_have_told_of_their_threads():
    s = Script(2)
    s.recv(0, 1)
    s.recv(1, 0)
    s.matcher.take(0, Inspected(False, [], []))
    assert (stuck(s.matcher), stuck(s.matcher, certain=True)) == ([0, 1], [])
    s.matcher.take(1, Inspected(False, [], []))
    assert stuck(s.matcher, certain=True) == [0, 1]
    # whatever a rank says, it may say because a thread has gone on
    s.post(1, "send", 0, tag=1)
    assert stuck(s.matcher, certain=True) == []


def test_a_rank_with_a_thread_that_acts_is_not_stuck():
    s = Script(2)
    s.recv(0, 1)
    s.recv(1, 0)
    s.matcher.take(0, Inspected(True, [], []))
    assert stuck(s.matcher) == []


def test_a_wait_for_the_store_ends_when_any_other_rank_is_live_or_the_entry_is_there():
    s = Script(3)
    waits = Inspected(False, [], [], [(0, ["a", "b"], "f.py", 7)])
    s.matcher.take(0, waits)
    s.matcher.take(1, waits)
    assert stuck(s.matcher) == []
    s.matcher.end(2)
    assert stuck(s.matcher, certain=True) == [0, 1]
    s.matcher.stored = {"a"}
    assert stuck(s.matcher) == [0, 1]
    s.matcher.stored = {"a", "b"}
    assert stuck(s.matcher) == []


def test_a_callback_lives_while_all_of_its_operations_can_complete():
    s = Script(3)
    s.recv(0, 1)
    s.recv(1, 0)
    first, second = s.post(0, "recv", 2, tag=1), s.post(0, "recv", 2, tag=2)
    s.matcher.take(0, Inspected(False, [], [[first, second]]))
    assert stuck(s.matcher) == []
    s.post(2, "send", 0, tag=1)
    s.matcher.end(2)
    assert stuck(s.matcher) == [0, 1]
    s.matcher.take(0, Inspected(False, [], [[first]]))
    assert stuck(s.matcher) == []


def test_a_wait_that_begins_after_its_end_is_none():
    s = Script(1)
    op = s.post(0, "recv")
    s.done(0, op)
    s.block(0, op)
    assert not s.matcher.waits[0]


def test_a_chain_that_ends_in_a_rank_that_returned():
    s = Script(3)
    s.recv(0, 1)
    s.recv(1, 2)
    s.matcher.end(2)
    failure = deadlock(s.matcher)
    assert failure.cycle == ()
    assert "rank 2 has already returned and will never send" in failure.message


def test_a_rank_that_sent_with_another_tag_and_returned_is_not_said_to_send_nothing():
    s = Script(2)
    s.post(1, "send", 0, tag=1)
    s.recv(0, 1, tag=2)
    s.matcher.end(1)
    assert deadlock(s.matcher).message.endswith(
        "with tag 2, while rank 1 sends with tag 1; but rank 1 has already returned and will never"
        " send what fits"
    )


def test_a_wildcard_lives_while_anyone_else_does():
    s = Script(3)
    s.recv(0)
    s.recv(1, 0)
    assert stuck(s.matcher) == []
    s.matcher.end(2)
    assert stuck(s.matcher) == [0, 1]


def test_a_wildcard_with_a_message_in_sight_lives():
    s = Script(2)
    s.recv(0)
    s.send(1, 0)
    assert stuck(s.matcher) == []
    assert quiescent(s.matcher)


def test_a_collective_waits_for_all_of_its_group_and_for_no_one_else():
    s = Script(4)
    for rank in (0, 1):
        s.matcher.take(rank, Grouped("team", [0, 1]))
    s.call(0, group="team")
    s.recv(2, 3)
    s.recv(3, 2)
    assert stuck(s.matcher) == [2, 3]
    s.matcher.end(1)
    assert stuck(s.matcher) == [0, 2, 3]


def test_ranks_in_different_collectives_cannot_go_on():
    s = Script(2)
    s.call(0, "all_reduce")
    s.call(1, "barrier")
    assert stuck(s.matcher) == [0, 1]


def test_a_failed_operation_frees_its_own_rank_and_not_its_partner():
    s = Script(2)
    s.send(0, 1)
    s.recv(1, 0)
    s.matcher.take(0, Failed(0, s.now()))
    assert not s.matcher.waits[0]
    s.matcher.end(0)
    assert stuck(s.matcher) == [1]


def test_a_polling_rank_is_idle_but_not_waiting():
    s = Script(2)
    op = s.post(0, "recv")
    s.matcher.take(0, Polled(op, s.now()))
    s.recv(1, 0)
    assert quiescent(s.matcher)
    assert stuck(s.matcher) == []
    s.post(0, "send", 1)
    assert not quiescent(s.matcher)


def test_a_rank_that_polls_what_will_complete_is_not_idle():
    s = Script(3)
    first, second = s.post(0, "send", 1), s.post(0, "send", 2)
    s.matcher.take(0, Polled(first, s.now()))
    s.matcher.take(0, Polled(second, s.now()))
    s.matcher.take(1, Polled(s.post(1, "recv"), s.now()))
    s.recv(2, 1)
    assert quiescent(s.matcher)
    s.matcher.resolve(s.matcher.operations[1][0], 0)
    assert not quiescent(s.matcher)


programs = st.lists(
    st.lists(st.tuples(st.sampled_from(["send", "recv"]), st.integers(0, 3)), max_size=5),
    min_size=2,
    max_size=4,
)


@given(programs)
def test_deadlock_agrees_with_running_the_programs(raw):
    """Blocking programs: simulate them step by step, and compare who is left standing."""
    n = len(raw)
    programs = [
        [(kind, peer % n) for kind, peer in program if peer % n != rank]
        for rank, program in enumerate(raw)
    ]
    at = [0] * n
    moved = True
    while moved:
        moved = False
        for a in range(n):
            for b in range(n):
                if a == b or at[a] >= len(programs[a]) or at[b] >= len(programs[b]):
                    continue
                if programs[a][at[a]] == ("send", b) and programs[b][at[b]] == ("recv", a):
                    at[a] += 1
                    at[b] += 1
                    moved = True
    left = [rank for rank in range(n) if at[rank] < len(programs[rank])]

    s = Script(n)
    for rank in range(n):
        for i in range(at[rank]):
            kind, peer = programs[rank][i]
            s.post(rank, kind, peer)
            s.done(rank, i)
        if rank in left:
            kind, peer = programs[rank][at[rank]]
            s.block(rank, s.post(rank, kind, peer))
        else:
            s.matcher.end(rank)
    assert stuck(s.matcher) == left


# Rounds. --------------------------------------------------------------------------


def makespan(programs):
    start = replay(programs)
    return max(start.values(), default=-1) + 1


def post(end, *message):
    return Step("post", end, message)


def wait(end, *message):
    return Step("wait", end, message)


def blocking(end, *message):
    return [post(end, *message), wait(end, *message)]


def test_nothing_takes_no_time():
    assert makespan([[], []]) == 0


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_a_flat_broadcast(n):
    root = [step for dst in range(1, n) for step in blocking("send", 0, dst)]
    others = [blocking("recv", 0, dst) for dst in range(1, n)]
    assert makespan([root, *others]) == n - 1


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 9])
def test_a_binomial_broadcast(n):
    programs = [[] for _ in range(n)]
    step = 1
    while step < n:
        for src in range(min(step, n - step)):
            key = (src, src + step)
            programs[src] += blocking("send", *key)
            programs[src + step] += blocking("recv", *key)
        step *= 2
    assert makespan(programs) == math.ceil(math.log2(n))


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_a_shift_takes_one_round_and_in_turns_more(n):
    at_once = [
        [post("send", r, 0), post("recv", (r - 1) % n, 0), wait("recv", (r - 1) % n, 0)]
        for r in range(n)
    ]
    assert makespan(at_once) == 1
    in_turns = [
        blocking("send", r, 0) + blocking("recv", (r - 1) % n, 0)
        if r < n - 1
        else blocking("recv", (r - 1) % n, 0) + blocking("send", r, 0)
        for r in range(n)
    ]
    assert makespan(in_turns) == n


def all_to_all(n, order):
    programs = []
    for r in range(n):
        peers = order(r, n)
        programs.append([post("recv", p, r) for p in peers] + [post("send", r, p) for p in peers])
    return programs


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_an_all_to_all_whose_peers_rotate_is_the_fastest(n):
    def rotate(r, n):
        return [(r + i) % n for i in range(1, n)]

    def zero_first(r, n):
        return [p for p in range(n) if p != r]

    assert makespan(all_to_all(n, rotate)) == n - 1
    if n > 3:
        assert makespan(all_to_all(n, zero_first)) > n - 1


def test_ports_carry_one_message_each_way_at_a_time():
    # rank 0 sends to 1 while 2 sends to 0: both ports of rank 0 are busy, and that is fine
    programs = [
        [post("send", 0, 1), post("recv", 2, 0)],
        [post("recv", 0, 1)],
        [post("send", 2, 0)],
    ]
    assert makespan(programs) == 1
    two_into_one = [[post("recv", 1, 0), post("recv", 2, 0)], [post("send", 1, 0)],
                    [post("send", 2, 0)]]  # fmt: skip
    assert makespan(two_into_one) == 2


def test_an_unready_message_does_not_hold_up_the_port():
    # rank 0's first isend goes to rank 1, which first waits for rank 2, which
    # waits for rank 0's second isend
    programs = [
        [post("send", 0, 1), post("send", 0, 2)],
        [*blocking("recv", 2, 1), *blocking("recv", 0, 1)],
        [*blocking("recv", 0, 2), *blocking("send", 2, 1)],
    ]
    assert replay(programs) == {(0, 2): 0, (2, 1): 1, (0, 1): 2}


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_the_messages_of_a_batch_have_no_order_among_themselves(n):
    def batch(rank, peers):
        ends = [("send", rank, p) for p in peers] + [("recv", p, rank) for p in peers]
        return [Step("post", end, (one, two), batch=1) for end, one, two in ends]

    # on a chain the ports would send alternately up and down, and then wait for each other
    for peers in ([1, -1], [-1, 1]):
        orders = [[r + d for d in (peers if r % 3 else peers[::-1])] for r in range(n)]
        chain = [batch(r, [p for p in order if 0 <= p < n]) for r, order in enumerate(orders)]
        assert makespan(chain) == 2
    everyone = [batch(r, [p for p in range(n) if p != r]) for r in range(n)]
    assert makespan(everyone) == n - 1


def test_batches_keep_their_place_among_other_messages():
    # rank 0's batch is the second of what it posts, and its first message waits for the port of 1
    programs = [
        [post("send", 0, 1), Step("post", "send", (0, 2), 1), Step("post", "send", (0, 3), 1)],
        [post("recv", 2, 1), post("recv", 0, 1)],
        [post("send", 2, 1), post("recv", 0, 2)],
        [post("recv", 0, 3)],
    ]
    assert replay(programs)[0, 1] == 1


# What messages and calls carry, and between which ranks. ----------------------------


def per_member(gives, takes=()):
    return [Signature("float32", list(gives), list(takes))]


@pytest.mark.parametrize(
    ("kind", "gives", "root", "given", "sent"),
    [
        ("all_reduce", [8], ANY, [8] * 4, [2 * 3 * 8 // 4] * 4),
        ("all_reduce", [1], ANY, [1] * 4, [1] * 4),  # 1.5, rounded down
        ("reduce_scatter", [2], ANY, [8] * 4, [6] * 4),
        ("reduce_scatter", [1, 2, 2, 3], ANY, [8] * 4, [6] * 4),
        ("all_gather", [2], ANY, [2] * 4, [6] * 4),
        ("all_to_all", [2], ANY, [8] * 4, [6] * 4),
        ("all_to_all", [0, 1, 2, 5], ANY, [8] * 4, [8, 7, 6, 3]),
        ("reduce", [8], 2, [8] * 4, [8, 8, 0, 8]),
        ("gather", [2], 2, [2] * 4, [2, 2, 0, 2]),
        ("barrier", None, ANY, [0] * 4, [0] * 4),
    ],
)
def test_a_collective_counts_as_what_the_best_algorithm_sends(kind, gives, root, given, sent):
    s = Script(4)
    for rank in range(4):
        s.call(rank, kind, peer=root, signatures=per_member(gives) if gives else ())
    trace = s.matcher.trace()
    assert [trace.given(op) for (op,) in trace.operations] == given
    assert [trace.sent(op) for (op,) in trace.operations] == sent
    assert (trace.max_given_elements, trace.max_sent_elements) == (max(given), max(sent))


@pytest.mark.parametrize(
    ("kind", "gives", "given", "sent"), [("broadcast", [8], 8, 8), ("scatter", [2], 8, 6)]
)
def test_of_a_rooted_collective_that_hands_out_only_the_root_sends(kind, gives, given, sent):
    s = Script(4)
    for rank in range(4):
        s.call(rank, kind, peer=1, signatures=per_member(gives if rank == 1 else [], [8]))
    trace = s.matcher.trace()
    assert [trace.given(op) for (op,) in trace.operations] == [0, given, 0, 0]
    assert [trace.sent(op) for (op,) in trace.operations] == [0, sent, 0, 0]
