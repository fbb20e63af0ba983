"""Dumps of PyTorch's flight recorder: read, explained, and written so that torch reads them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from headcount import run
from headcount.cli import main
from headcount.core.errors import RequestError
from headcount.script.explain import explain, explanation_json, explanation_text
from headcount.trace.flight_recorder import read_dumps, write_dumps
from support.worlds import line_in

#: Under plain torchrun, with torch's own recorder: rank 1 leaves out a broadcast.
PLAIN = """
import os
from datetime import timedelta
os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(6))
try:
    if rank == 0:
        work = dist.broadcast(torch.ones(3), src=0, async_op=True)
    work = dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2), async_op=True)
    work.wait(timedelta(seconds=1))
except RuntimeError:
    pass
with open(f"{os.environ['FOLDER']}/trace_{rank}", "wb") as file:
    file.write(_dump_fr_trace())
os._exit(0)
"""


def recorded(function, size, folder):
    """Run a function, and write the dumps of its ranks."""
    done = run(function, size, may_fail=True)
    write_dumps(done.trace, folder)
    return explain(read_dumps([folder]))


@pytest.mark.exhaustive
def test_torchs_own_dumps_are_explained(tmp_path):
    (tmp_path / "train.py").write_text(PLAIN)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         "train.py"],
        cwd=tmp_path, env={**os.environ, "FOLDER": str(dumps)}, check=True, capture_output=True,
    )  # fmt: skip
    found = explain(read_dumps([dumps]))
    (fault,) = found.faults
    lines = PLAIN.splitlines()
    first, second = (
        next(number for number, line in enumerate(lines, 1) if text in line)
        for text in ("dist.broadcast", "dist.all_gather")
    )
    assert fault.text.startswith(
        "the default group, call 2: rank 0 calls broadcast of [[3]] Float at "
    )
    assert f"train.py:{first}, while rank 1 calls all_gather of [[2]] Float at " in fault.text
    assert fault.text.endswith(f"train.py:{second}")


@pytest.mark.parametrize(
    ("name", "hang", "text"),
    [
        (
            "uneven",
            "never entered (supported): rank 2 holds up ranks 0, 1",
            "the default group, call 4: ranks 0, 1 wait in all_reduce at /job/train.py:17; rank 2"
            " has not called it: the last call of rank 2 was number 3, all_reduce at"
            " /job/train.py:17, which is complete",
        ),
        (
            "different",
            "entered differently (established): rank 1 is in another call than ranks 0, 2",
            "the default group, call 2: rank 1 calls broadcast of [[2]] Float at /job/train.py:21,"
            " while ranks 0, 2 call all_gather of [[2]] Float at /job/train.py:22",
        ),
    ],
)
def test_dumps_that_torch_2_11_has_written_are_explained(name, hang, text):
    """They are files that gloo's recorder has left of three ranks, and hold no path but theirs."""
    folder = Path(__file__).parents[1] / "support" / "dumps" / "torch-2.11" / name
    found = explain(read_dumps([folder]))
    (fault,) = found.faults
    assert (f"{found.hang.label}: {found.hang}", fault.text) == (hang, text)


def steps():
    for _ in range(3 - dist.get_rank()):
        dist.all_reduce(torch.ones(1))


def crossed():
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    for group in groups if dist.get_rank() == 0 else reversed(groups):
        dist.all_reduce(torch.ones(1), group=group)


def cyclic():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.send(torch.ones(1), (rank + 1) % size)
    dist.recv(torch.ones(1), (rank - 1) % size)


def right():
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 0:
        dist.send(torch.ones(1), 1)
    elif dist.get_rank() == 1:
        dist.recv(torch.ones(1), 0)


def test_a_rank_that_is_behind_is_named_with_its_last_call(tmp_path):
    found = recorded(steps, 2, tmp_path)
    line = line_in(steps, "all_reduce")
    (fault,) = found.faults
    assert fault.text.startswith("the default group, call 3: rank 0 waits in all_reduce at ")
    assert (
        "rank 1 has not called it: the last call of rank 1 was number 2, all_reduce" in fault.text
    )
    assert [(wait.rank, wait.peers, wait.site.line) for wait in found.waits] == [(0, (1,), line)]


@pytest.mark.parametrize(
    ("function", "size", "faults", "circle"), [(crossed, 2, 2, (0, 1)), (cyclic, 3, 3, (0, 1, 2))]
)
def test_ranks_that_wait_for_each_other_are_a_circle(tmp_path, function, size, faults, circle):
    found = recorded(function, size, tmp_path)
    assert len(found.faults) == faults
    assert found.cycle == found.hang.culprits == circle
    # a message may have been on its way when the dumps were written
    grade = "supported" if function is cyclic else "established"
    assert (found.hang.kind, found.hang.grade) == ("a circle", grade)
    assert not found.gaps


def test_calls_in_a_group_are_numbered_from_one(tmp_path):
    found = recorded(crossed, 2, tmp_path)
    assert all(", call 1: " in fault.text for fault in found.faults)
    assert not read_dumps([tmp_path]).cut


def test_a_right_run_shows_no_fault(tmp_path):
    found = recorded(right, 3, tmp_path)
    assert (found.faults, found.waits, found.cycle) == ((), (), ())
    assert json.loads(explanation_json(found))["ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="attach reads what Linux shows")
def test_the_recorder_of_this_torch_is_read_rightly():
    """Else ``attach`` would go by stacks alone."""
    code = "from headcount.script.attach.recorder_memory import check_layout; check_layout()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.exhaustive
def test_torch_reads_what_is_written(tmp_path):
    recorded(steps, 2, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "missing ranks: {1}" in said, said


def dumped(folder, rank, entries, groups, is_p2p=("send", "recv")):
    """Write a dump as NCCL's recorder does: of each entry its name, group, number and state."""
    config = {
        name: {"name": name, "desc": described, "ranks": str(members)}
        for name, (described, members) in groups.items()
    }
    made = [
        {
            "record_id": first + number,
            "profiling_name": f"nccl:{name}",
            "process_group": (group, groups[group][0]),
            "collective_seq_id": number,
            "p2p_seq_id": number,
            "is_p2p": name.startswith(is_p2p),
            "input_sizes": [[4]],
            "input_dtypes": ["Float"],
            "state": state if isinstance(state, str) else "completed" if state else "started",
            "frames": [{"filename": "/home/me/train.py", "line": 7, "name": "main"}],
        }
        for first, name, group, number, state in entries
    ]
    (folder / f"trace_{rank}.json").write_text(json.dumps({"entries": made, "pg_config": config}))


def test_groups_of_a_mesh_that_share_a_description_are_different_groups(tmp_path):
    for rank in range(4):
        name, members = ("1", [0, 1]) if rank < 2 else ("2", [2, 3])
        what = "all_reduce" if rank < 2 else "broadcast"
        dumped(tmp_path, rank, [(-1, what, name, 1, True)], {name: ("mesh_dp", members)})
    dumps = read_dumps([tmp_path])
    assert sorted(map(list, dumps.groups.values())) == [[0, 1], [0, 1, 2, 3], [2, 3]]
    assert explain(dumps).faults == ()


def test_messages_are_not_counted_where_a_buffer_has_lost_some(tmp_path):
    world = {"0": ("default_pg", [0, 1])}
    dumped(tmp_path, 0, [(8, "send 0->1", "0", n, n == 1) for n in (1, 2)], world)
    dumped(tmp_path, 1, [(-1, "recv 1<-0", "0", 1, False)], world)
    found = explain(read_dumps([tmp_path]))
    assert found.faults == ()
    assert found.cycle == ()  # the message is on its way


def test_a_long_run_is_dumped_with_the_numbers_that_its_calls_have(tmp_path):
    done = run(steps, 2, may_fail=True)
    # as a record that has lost the first call of rank 0 and the first two of rank 1
    shorter = replace(
        done.trace, operations=(done.trace.operations[0][1:], done.trace.operations[1][2:])
    )
    write_dumps(shorter, tmp_path)
    dumps = read_dumps([tmp_path])
    assert [call.number for call in dumps.calls[0]] == [2, 3]
    assert dumps.cut == {0}
    (fault,) = explain(dumps).faults
    assert "call 3: rank 0 waits in all_reduce" in fault.text


def test_a_rank_without_a_dump_is_what_the_others_wait_for(tmp_path):
    recorded(steps, 2, tmp_path)
    whole = (tmp_path / "rank_1").read_bytes()
    for data in (b"", whole[: len(whole) // 2], None):
        if data is None:
            (tmp_path / "rank_1").unlink()
        else:
            (tmp_path / "rank_1").write_bytes(data)
        dumps = read_dumps([tmp_path])
        found = explain(dumps)
        (fault,) = found.faults
        assert "rank 0 waits in all_reduce" in fault.text
        assert "rank 1 left no dump that can be read" in fault.text
        assert (found.hang.culprits, found.hang.held, found.hang.fate) == ((1,), (0,), "silent")
        assert len(found.gaps) == (data is not None)
        text = explanation_text(found, dumps, 80)
        # a path is not broken
        assert max(len(line) for line in text.splitlines() if "/" not in line) <= 80


def test_the_rank_that_waits_for_nobody_comes_first_of_64(tmp_path):
    """Tensor parallelism of 8, data parallelism of 8: rank 37 is missing at one call."""
    world = range(64)
    for rank in world:
        tp = [one for one in world if one // 8 == rank // 8]
        dp = [one for one in world if one % 8 == rank % 8]
        groups = {"1": ("dp", dp), "2": ("tp", tp)}
        calls = [(-1, "all_reduce", "2", number, True) for number in range(1, 5)]
        if rank != 37:
            late = tp == [*range(32, 40)]
            calls += [(-1, "all_gather", "2", 5, not late)]
            calls += [] if late else [(-1, "all_reduce", "1", 1, False)]
        dumped(tmp_path, rank, calls, groups)
    dumps = read_dumps([tmp_path])
    found = explain(dumps)
    assert (found.hang.culprits, len(found.hang.held)) == ((37,), 63)
    text = " ".join(explanation_text(found, dumps, 1000).split())
    # the groups of rank 37 alone are causes, and the seven others wait behind them
    assert text.startswith("✗ never entered (supported): rank 37 holds up ranks 0-36, 38-63 (")
    assert found.causes == 2
    assert len(found.faults) == 2 + 7
    assert all(37 in fault.awaited for fault in found.faults[: found.causes])


def test_ranks_that_wait_and_ranks_without_a_dump_come_after_culprits_that_are_known(tmp_path):
    """4 × 4 ranks: 6 and 13 are missing at one call of their rows; the file of 9 is gone."""
    for rank in range(16):
        row = [one for one in range(16) if one // 4 == rank // 4]
        column = [one for one in range(16) if one % 4 == rank % 4]
        calls = [(-1, "all_reduce", "2", 1, True)]
        if rank not in (6, 13):
            late = {6, 13} & {*row}
            calls += [(-1, "all_gather", "2", 2, not late)]
            calls += [] if late else [(-1, "all_reduce", "1", 1, False)]
        dumped(tmp_path, rank, calls, {"1": ("dp", column), "2": ("tp", row)})
    (tmp_path / "trace_9.json").unlink()
    found = explain(read_dumps([tmp_path]))
    assert found.hang.culprits == (6, 13)
    first, second = found.faults[:2]
    assert {first.awaited, second.awaited} == {(6,), (13,)}


def test_what_comes_after_a_call_that_all_have_made_is_queued_behind_it(tmp_path):
    groups = {"0": ("default_pg", [0, 1])}
    first = [(-1, "all_reduce", "0", 1, state) for state in ("started", "scheduled")]
    dumped(tmp_path, 0, [first[0], (-1, "all_reduce", "0", 2, "scheduled")], groups)
    dumped(tmp_path, 1, [first[1]], groups)
    (fault,) = explain(read_dumps([tmp_path])).faults
    assert explain(read_dumps([tmp_path])).hang.kind == "all entered and none left"
    assert "call 1: all members have called all_reduce" in fault.text
    assert "it has started on rank 0 and not on rank 1" in fault.text


def test_where_ranks_wait_and_nothing_differs_there_is_no_tick(tmp_path):
    entry = {
        "profiling_name": "gloo:all_reduce",
        "process_group": ("1", "undefined"),
        "collective_seq_id": 1,
        "state": "scheduled",
    }
    for rank in range(2):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps({"entries": [entry]}))
    dumps = read_dumps([tmp_path])
    text = explanation_text(explain(dumps), dumps, 80)
    assert text.startswith("? 2 dumps with 2 calls: nothing differs")
    assert "ranks 0, 1 wait in all_reduce of group 1" in text
    assert "no dump describes group 1" in text


BATCH = [("send 0->1", "recv 0<-1"), ("recv 1<-0", "send 1->0")]


def batches(rank, states):
    """Batches of a message in each direction: the whole of each is recorded after its parts."""
    for number, state in enumerate(states, 1):
        yield from ((-1, part, "0", number, "scheduled") for part in BATCH[rank])
        yield -1, "coalesced", "0", number, state


@pytest.mark.parametrize("second", [True, False])
def test_a_batch_of_messages_is_one_call(tmp_path, second):
    world = {"0": ("default_pg", [0, 1])}
    is_p2p = ("send", "recv", "coalesced")
    for rank in range(2):
        states = [True, True] if second else [True, False] if rank == 0 else [True]
        dumped(tmp_path, rank, list(batches(rank, states)), world, is_p2p)
    dumps = read_dumps([tmp_path])
    assert [len(calls) for calls in dumps.calls.values()] == [2, 2 if second else 1]
    found = explain(dumps)
    assert found.cycle == ()
    if second:
        assert (found.faults, found.waits) == ((), ())
        return
    (wait,) = found.waits
    assert wait.text == "waits in a batch of 2 messages at /home/me/train.py:7 for rank 1"
    assert {fault.awaited for fault in found.faults} == {(1,)}


def test_a_call_that_all_have_made_is_no_cause_where_an_earlier_one_is_open(tmp_path):
    """On rank 0 the pair's call is queued behind one that rank 2 has not made."""
    groups = {"0": ("default_pg", [0, 1, 2]), "1": ("pair", [0, 1])}
    pair = (-1, "broadcast", "1", 1, "scheduled")
    dumped(tmp_path, 0, [(-1, "all_reduce", "0", 1, "started"), pair], groups)
    dumped(tmp_path, 1, [pair], groups)
    dumped(tmp_path, 2, [], {"0": groups["0"]})
    found = explain(read_dumps([tmp_path]))
    assert [fault.group for fault in found.faults[: found.causes]] == ["the default group"]
    assert found.hang.culprits == (2,)


def test_shapes_of_equal_sizes_agree_and_sizes_that_differ_hold_nobody_up_once_they_are_over(
    tmp_path,
):
    groups = {"0": ("default_pg", [0, 1])}
    for rank, sizes in enumerate(([[2, 4]], [[8]])):
        dumped(tmp_path, rank, [(-1, "all_reduce", "0", 1, "started")] * (rank + 1), groups)
        path = tmp_path / f"trace_{rank}.json"
        path.write_text(path.read_text().replace("[[4]]", str(sizes)))
    (fault,) = explain(read_dumps([tmp_path])).faults
    assert "all members have called all_reduce" in fault.text
    for state, faults in (("completed", 0), ("started", 1)):
        for rank in range(2):
            dumped(tmp_path, rank, [(-1, "all_gather", "0", 1, state)], groups)
        path.write_text(path.read_text().replace("[[4]]", "[[5]]"))
        assert len(explain(read_dumps([tmp_path])).faults) == faults


def test_a_message_of_a_rank_without_a_dump_is_waited_for(tmp_path):
    groups = {"0": ("default_pg", [0, 1])}
    dumped(tmp_path, 0, [(-1, "recv 0<-1", "0", 1, "started")], groups)
    found = explain(read_dumps([tmp_path]))
    (fault,) = found.faults
    assert (
        "rank 0 waits in recv at /home/me/train.py:7 for rank 1; rank 1 left no dump" in fault.text
    )
    assert found.hang.culprits == (1,)


def test_of_a_group_that_a_buffer_has_lost_nobody_knows_who_has_called(tmp_path):
    groups = {"0": ("default_pg", [0, 1]), "1": ("pair", [0, 1])}
    dumped(tmp_path, 0, [(-1, "all_reduce", "1", 1, "started")], groups)
    dumped(tmp_path, 1, [(8, "all_reduce", "0", 3, True)], groups)
    found = explain(read_dumps([tmp_path]))
    assert found.faults == ()
    assert found.waits[0].peers == ()
    assert any("the buffer of rank 1 holds no call of it any more" in gap for gap in found.gaps)


def test_a_call_that_has_started_on_some_ranks_alone_says_where(tmp_path):
    groups = {"0": ("default_pg", [0, 1])}
    for rank, state in enumerate(["started", "scheduled"]):
        dumped(tmp_path, rank, [(-1, "all_reduce", "0", 1, state)], groups)
    (fault,) = explain(read_dumps([tmp_path])).faults
    assert "it has started on rank 0 and not on rank 1" in fault.text


def test_of_a_group_that_no_dump_describes_nobody_says_that_all_have_called(tmp_path):
    entry = {
        "profiling_name": "gloo:all_reduce",
        "process_group": ("1", "undefined"),
        "collective_seq_id": 1,
        "state": "scheduled",
        "retired": False,
    }
    config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    for rank in range(2):
        dump = {"entries": [entry], "pg_config": config}
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps(dump))
    found = explain(read_dumps([tmp_path]))
    assert found.faults == ()
    assert found.gaps[0].startswith("gloo's recorder notes no messages")


#: By rank, the number of the last call in the second of two dumps, and whether it has ended.
TWICE = {
    "stuck": ([(3, True), (3, True), (4, False)], "ranks 0-2 have not gone on"),
    "slow": (
        [(6, True), (6, True), (7, False)],
        "ranks 0-2 have gone on, by 3 calls",
    ),
    "stuck_later": (
        [(3, True), (6, True), (4, False)],
        "rank 1 has gone on, by 3 calls; ranks 0, 2 have not gone on",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_of_two_dumps_it_is_said_which_ranks_have_gone_on(tmp_path, name):
    groups = {"0": ("default_pg", [0, 1, 2])}

    def dump(folder, lasts, noted=True):
        """By rank, its last call; the end of the one before may not have been noted yet."""
        (tmp_path / folder).mkdir()
        for rank, (last, over) in enumerate(lasts):
            calls = [
                (-1, "all_reduce", "0", number, noted or number < last - 1)
                for number in range(1, last)
            ]
            calls.append((-1, "all_reduce", "0", last, over))
            dumped(tmp_path / folder, rank, calls, groups)
        return read_dumps([tmp_path / folder])

    before = dump("before", [(3, True), (3, True), (4, False)], noted=False)
    lasts, said = TWICE[name]
    after = dump("after", lasts)
    assert explain(after).faults
    found = explain(after, before)
    assert found.since.startswith(said)
    assert bool(found.faults) is (name != "slow")
    text = " ".join(explanation_text(found, after, 80).split())
    assert said in text
    assert ("? 3 dumps" in text and "the job goes on" in text) is (name == "slow")
    if name == "slow":
        with pytest.raises(RequestError, match="rank 0 was further on in the dumps of --before"):
            explain(before, after)


#: Nanoseconds of an hour.
HOUR = 3600 * 10**9


def timed(folder, rank, times, world=(0, 1)):
    """Write a dump of all_reduces, of each of which it is known when it began and when it ended."""
    calls = [(-1, "all_reduce", "0", n, bool(ended)) for n, (_, ended) in enumerate(times, 1)]
    dumped(folder, rank, calls, {"0": ("default_pg", list(world))})
    path = folder / f"trace_{rank}.json"
    dump = json.loads(path.read_text())
    for entry, (began, ended) in zip(dump["entries"], times, strict=True):
        entry |= {"time_created_ns": began, "time_discovered_completed_ns": ended}
    path.write_text(json.dumps(dump))


def test_a_dump_of_an_earlier_run_leaves_the_verdict_open(tmp_path):
    """Rank 1 was killed; what lies there of it is from before the job was started anew."""
    timed(tmp_path, 0, [(5 * HOUR, 5 * HOUR + 1), (5 * HOUR + 2, None)])
    timed(tmp_path, 1, [(HOUR, HOUR + 1)])
    found = explain(read_dumps([tmp_path]))
    assert found.hang.grade == "open"
    assert found.gaps[0] == (
        "all_reduce, call 1 of the default group, had ended on rank 1 240 min before rank 0 called"
        " it: is the dump of rank 1 of an earlier run?"
    )
    # gloo's recorder notes no time at which a call has ended
    timed(tmp_path, 1, [(HOUR, None), (HOUR + 2, None)])
    path = tmp_path / "trace_1.json"
    path.write_text(path.read_text().replace("started", "completed", 1))
    assert "had ended on rank 1 240 min before rank 0" in explain(read_dumps([tmp_path])).gaps[0]
    # what has only been called long before another rank calls it is waited for
    timed(tmp_path, 1, [(HOUR, 5 * HOUR + 1)])
    assert explain(read_dumps([tmp_path])).hang.grade == "supported"


def test_dumps_of_two_jobs_are_refused(tmp_path):
    timed(tmp_path, 0, [(1, 2), (3, None)])
    timed(tmp_path, 1, [(1, 2)], world=(0, 1, 2))
    with pytest.raises(RequestError, match="default_pg has 3 members in"):
        read_dumps([tmp_path])
    (tmp_path / "before").mkdir()
    timed(tmp_path, 1, [(1, 2)])
    for began, is_same in ((1, True), (2, False)):
        timed(tmp_path / "before", 0, [(began, 9)])
        before = read_dumps([tmp_path / "before"])
        if is_same:
            assert explain(read_dumps([tmp_path]), before).since
        else:
            with pytest.raises(RequestError, match="the dumps of --before are of another job"):
                explain(read_dumps([tmp_path]), before)


def test_parts_of_a_batch_that_is_not_closed_are_of_one_job(tmp_path):
    """Torch gives them one number, and each its time."""
    timed(tmp_path, 0, [(1, 2), (3, None)])
    path = tmp_path / "trace_0.json"
    path.write_text(path.read_text().replace('"collective_seq_id": 2', '"collective_seq_id": 1'))
    dumps = read_dumps([tmp_path])
    assert explain(dumps, dumps).since


def test_the_cause_that_holds_up_most_ranks_is_the_headline(tmp_path):
    """Rank 6 has ended, and one rank waits for it; for the circle of 0 and 1 four others wait."""
    groups = {
        "0": ("default_pg", list(range(8))), "1": ("a", [0, 1]), "2": ("b", [0, 1]),
        "3": ("c", [0, 2, 3, 4, 5]), "4": ("d", [6, 7]),
    }  # fmt: skip
    waits = {0: "1", 1: "2", 2: "3", 3: "3", 4: "3", 5: "3", 7: "4"}
    for rank in range(8):
        calls = [(-1, "all_reduce", waits[rank], 1, "started")] if rank in waits else []
        dumped(tmp_path, rank, calls, groups)
    found = explain(read_dumps([tmp_path]))
    assert (found.hang.kind, found.hang.culprits) == ("a circle", (0, 1))
    assert found.hang.held == (2, 3, 4, 5)
    assert any("group 4" in fault.text for fault in found.faults[: found.causes])


def test_dumps_are_given_as_files_and_patterns_and_folders(tmp_path):
    recorded(right, 3, tmp_path)
    (tmp_path / "notes.txt").write_text("no dump, and of no rank")
    files = [tmp_path / f"rank_{rank}" for rank in range(3)]
    for places in ([tmp_path], files, [str(tmp_path / "rank_*")], [tmp_path, files[0]]):
        assert [*read_dumps(places).calls] == [0, 1, 2]
    for places, said in (
        ([tmp_path / "none"], "there is no such folder or file"),
        ([""], "there is no such folder or file"),
        (["a" * 5000], "cannot be read: File name too long"),
        ([tmp_path / "notes.txt"], "its name does not end in the number of a rank"),
    ):
        with pytest.raises(RequestError, match=said):
            read_dumps(places)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("notes.txt", b"", "no dumps are there"),
        ("rank_0", b"nothing", "is no dump of a flight recorder"),
        ("rank_0", pickle.dumps({"version": "2"}), "is no dump of a flight recorder"),
        ("rank_0", pickle.dumps({"entries": [3]}), "Expected `object`, got `int` - at"),
        ("rank_0", b'{"entries": [{"record_id": Infinity}]}', "is no dump of a flight recorder"),
        ("rank_0", b"null", "Expected `object`, got `null`"),
        (
            "rank_0",
            b'{"entries": [], "pg_config": {"0": {"name": "0", "ranks": "[0, 99999999999]"}}}',
            "is no dump of a flight recorder",
        ),
        ("rank_0", pickle.dumps(print), "a dump holds plain data, and this one builtins.print"),
    ],
)
def test_what_is_no_dump_is_refused(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RequestError, match=said):
        read_dumps([tmp_path])


def test_who_stands_in_a_call_that_all_have_made_may_go_on_in_a_moment(tmp_path):
    """Of a job that moves, one rank is a call further on than what the others have noted."""
    groups = {"0": ("default_pg", [0, 1, 2])}
    for rank in range(3):
        calls = [(-1, "all_reduce", "0", n, n == 1 or (n, rank) == (2, 0)) for n in (1, 2, 3)]
        dumped(tmp_path, rank, calls[: 3 - bool(rank)], groups)
    dumps = read_dumps([tmp_path])
    found = explain(dumps)
    assert (found.hang.kind, found.hang.grade, found.is_fault) == ("never entered", "open", False)
    assert explanation_text(found, dumps, 80).startswith("? never entered (open): ranks 1, 2 hold")


def test_dumps_are_not_compared_with_themselves(tmp_path, capsys):
    recorded(right, 2, tmp_path)
    assert main(["explain", str(tmp_path), "--before", str(tmp_path)]) == 2
    assert "--before names the same dumps" in capsys.readouterr().err
