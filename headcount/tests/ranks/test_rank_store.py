"""The store through which the ranks of a world find each other."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from torch.distributed import DistStoreError
from torch.distributed import distributed_c10d as c10d

from headcount.core.verdict import Diagnosis
from headcount.core.wire import BrokenFrame, FrameReader, Put, Refused, StoreLookup, framed
from headcount.rank import rank_store
from headcount.rank.rank_store import RankStore, RankStoreServer
from support.worlds import play


def _to(judge, rank):
    """What a rank sends with."""

    def send(message):
        (judge.look if isinstance(message, StoreLookup) else judge.take)(rank, message)

    return send


@pytest.fixture
def stores():
    """Three ranks' stores, told at once."""
    made = []
    judge = RankStoreServer(
        lambda told: [store.receive(told) for store in made],
        lambda rank, seen: made[rank].receive_seen(seen),
    )
    made += [RankStore(rank, _to(judge, rank)) for rank in range(3)]
    return judge, made


def test_what_one_puts_there_all_find(stores):
    _, (first, second, third) = stores
    first.set("address", b"lo:1")
    assert second.get("address") == third.get("address") == b"lo:1"
    assert third.check(["address"])
    assert not third.check(["address", "other"])


@pytest.mark.parametrize(
    ("look", "found"),
    [
        (lambda store: store.check(["key"]), True),
        (lambda store: store.get("key"), b"second"),
        (lambda store: store.wait(["key"], timedelta(0)), None),
    ],
)
def test_what_was_put_there_before_a_lookup_is_found_however_late_it_comes(look, found):
    coming = []  # to the second rank, whose listening thread has not had its turn

    def answer(_, seen):
        for told in coming:
            second.receive(told)
        second.receive_seen(seen)

    def tell(told):
        first.receive(told)
        coming.append(told)

    judge = RankStoreServer(tell, answer)
    first, second = (RankStore(rank, _to(judge, rank)) for rank in range(2))
    first.set("key", "first")
    first.set("key", "second")
    assert look(second) == found


def test_a_rank_that_looks_without_end_is_told_to_wait(stores, monkeypatch):
    monkeypatch.setattr(rank_store, "LOOKUPS", 3)
    judge, (first, *_) = stores
    for _ in range(3):
        assert not first.check(["never"])
    with pytest.raises(RuntimeError, match="look into the store 3 times in one call"):
        first.check(["never"])
    with pytest.raises(BrokenFrame, match="more than 3 lookups"):
        judge.look(0, StoreLookup(4))
    judge.forget()
    first.forget()
    assert not first.check(["never"])


def test_counting_is_common(stores):
    _, (first, second, third) = stores
    assert [first.add("n", 1), second.add("n", 2), third.add("n", -1)] == [1, 3, 2]
    assert first.get("n") == b"2"


def test_the_first_of_several_that_compare_and_set_decides(stores):
    _, (first, second, third) = stores
    assert first.compare_set("decision", "", "mine") == b"mine"
    assert second.compare_set("decision", "", "yours") == b"mine"
    assert third.compare_set("decision", b"mine", b"ours") == b"ours"
    assert third.compare_set("decision", "mine", "again") == first.get("decision") == b"ours"
    # as torch's TCPStore answers
    assert first.compare_set("nothing", "something", "new") == b"something"
    assert not second.check(["nothing"])


def test_a_wait_with_a_time_limit_ends(stores):
    _, (first, second, _) = stores
    first.set("there", b"")
    second.wait(["there"], timedelta(milliseconds=1))
    with pytest.raises(DistStoreError, match="wait timeout after 1ms, keys: there, absent"):
        second.wait(["there", "absent"], timedelta(milliseconds=1))


def test_a_key_is_told_as_the_program_has_named_it(stores):
    _, (first, *_) = stores
    with pytest.raises(DistStoreError, match=r"keys: list$"):
        c10d.PrefixStore("0/", first).wait(["list"], timedelta(milliseconds=1))


def test_a_rank_that_is_held_stops_between_looking_and_setting(stores, monkeypatch):
    stops = []
    monkeypatch.setattr(rank_store.time, "sleep", stops.append)
    _, (first, *_) = stores
    first.forget(0.4)
    first.set("x", "1")  # nothing was looked up
    assert stops == []
    assert not first.check(["list"])
    first.set("list", "mine")
    assert stops == [0.4]
    first.add("n", 1)  # it has stopped before
    first.compare_set("list", "mine", "ours")  # one step, in which nothing can happen
    assert stops == [0.4]
    assert not first.check(["decision"])
    first.set("decision", "mine")
    assert stops == [0.4, 0.4]


def test_who_looks_waits_until_it_is_there(stores):
    _, (first, second, _) = stores
    found = []
    waiter = threading.Thread(target=lambda: found.append(second.get("late")))
    waiter.start()
    first.set("late", b"x")
    waiter.join(10)
    assert found == [b"x"]


def test_only_to_a_number_can_be_added(stores):
    judge, (first, *_) = stores
    first.set("text", b"x")
    with pytest.raises(BrokenFrame, match="no number"):
        judge.take(0, Put("text", b"", 1, 1))


@pytest.mark.parametrize(
    "put",
    [
        Put("k" * 513, b"", None, 1),
        Put("k", b"v" * 65537, None, 1),
        Put("k", b"", None, 1, expected=b"v" * 65537),
    ],
    ids=["key", "value", "expected"],
)
def test_an_entry_has_a_largest_size(put):
    with pytest.raises(BrokenFrame, match=r"Expected `.*` of length <= "):
        list(FrameReader().feed(b"".join(framed(put))))


def test_entries_are_counted(stores, monkeypatch):
    judge, (first, *_) = stores
    monkeypatch.setattr(rank_store, "MANY", 2)
    first.set("a", b"")
    first.set("a", b"again")
    with pytest.raises(BrokenFrame, match="more than 2"):
        judge.take(0, Put("c", b"", None, 9))


def test_a_rank_has_an_allowance_of_bytes_in_each_call():
    judge = RankStoreServer(lambda told: None, lambda *_: None, lambda rank: 100 * rank)
    judge.take(0, Put("key", b"x" * 40, None, 1))  # an address, as it joins
    for _ in range(2):
        judge.forget()
        judge.take(1, Put("key", b"x" * 40, None, 1))
    with pytest.raises(Refused, match="more into the store than the addresses") as refused:
        judge.take(1, Put("key", b"", None, 1, expected=b"x" * 60))
    assert refused.value.diagnosis is Diagnosis.FORBIDDEN_CALL
    with pytest.raises(Refused):
        judge.take(0, Put("key", b"", None, 2))


def test_subgroups_meet_there():
    def answer():
        import torch
        import torch.distributed as dist

        group = dist.new_group([0, 2])
        x = torch.tensor([float(dist.get_rank())])
        if dist.get_rank() != 1:
            dist.all_reduce(x, group=group)
        return x

    outcome = play(answer, 3, allowed=None)
    assert outcome.failure is None
    assert [float(result.value) for result in outcome.results] == [2.0, 1.0, 2.0]
