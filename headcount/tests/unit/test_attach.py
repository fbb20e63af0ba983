"""What ``attach`` concludes from readings of a job, and what it takes from memory and files."""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from headcount.core.errors import RequestError
from headcount.script.attach import observation, recorder_memory, stacks
from headcount.script.attach.attach_report import attach_json, attach_text
from headcount.script.attach.command import attach_command
from headcount.script.attach.kernel import network_of, why_denied
from headcount.script.attach.process_memory import Memory, UnknownLayout
from headcount.script.attach.processes import LiveJob
from headcount.script.attach.reading_files import read_folder, write_readings
from headcount.script.attach.readings import FileLock, JobReadings, RankReading, StackFrame
from headcount.script.attach.recorder_memory import KnownRecorder, Layout, read_recorder
from headcount.script.attach.stacks import own_frame, torch_call, value_of
from headcount.script.attach.verdicts import verdicts_of
from headcount.script.attach.waits import waits_of
from headcount.trace.flight_recorder import DumpEntry
from support.growth import LIMIT, growth, steps_growth
from support.reports import told

TORCH = "/env/site-packages/torch/distributed/distributed_c10d.py"
NOW = 1_000_000.0


def calls(*names, open_last=True, group=("0", "default_pg"), begun=NOW - 100, every=1.0):
    """The calls of a rank, of which the last has not ended."""
    return [
        DumpEntry(
            f"gloo:{name}", group, collective_seq_id=place + 1, record_id=place,
            input_sizes=[[4]], retired=not open_last or place + 1 < len(names),
            time_created_ns=int((begun + every * place) * 1e9),
        )
        for place, name in enumerate(names)
    ]  # fmt: skip


def frames(line, *inner):
    own = StackFrame("/home/me/train.py", line, "main", {}, "the line itself")
    return [*(StackFrame(TORCH, 1, name, values) for name, values in inner), own]


def waiting(made, line=9, **more):
    """A rank in its last call, which gloo waits for on a futex."""
    last = made[-1].profiling_name.partition(":")[2]
    values = {"sleeps_in": "futex_do_wait", "state": "sleeping", **more}
    return RankReading(1, NOW, calls=made, frames=frames(line, (last, {})), **values)


def away(made, line=5, **more):
    """A rank that stands in a line of its own."""
    values = {"sleeps_in": "hrtimer_nanosleep", "state": "sleeping", **more}
    return RankReading(1, NOW, calls=made, frames=frames(line), **values)


def job(*ranks, world=None, started=None, members=None, before=()):
    """Both readings of a job, alike unless told otherwise, a second apart."""
    last = {
        rank: msgspec.structs.replace(one, pid=100 + rank)
        for rank, one in enumerate(ranks)
        if one is not None
    }
    first = {
        rank: msgspec.structs.replace(dict(before).get(rank, one), pid=100 + rank, taken=NOW - 1)
        for rank, one in last.items()
    }
    world = world or len(ranks)
    started = world if started is None else started
    return JobReadings("a job", world, started, first, last, members or {}, members or {})


def judged(readings):
    found = waits_of(readings)
    verdicts = verdicts_of(readings, found)
    text = attach_text(readings, found, verdicts, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert told(msgspec.json.decode(attach_json(readings, found, verdicts)))
    return verdicts, text


def test_who_made_fewer_calls_than_the_others_wait_for_is_named():
    ahead, behind = calls("all_reduce", "all_reduce"), calls("all_reduce", open_last=False)
    (one,), text = judged(job(waiting(ahead), away(behind), waiting(ahead)))
    assert (one.kind, one.culprits, one.held) == ("never entered", (1,), (0, 2))
    assert (one.is_fault, one.grade) == (True, "supported")
    assert text.startswith("✗ never entered (supported): rank 1 holds up ranks 0, 2")
    lines = text.splitlines()
    assert next(line for line in lines if line.startswith("  rank")).startswith("  rank 1 ")
    assert "train.py:5: the line itself; sleeps" in text


@pytest.mark.parametrize(
    ("begun", "every", "is_fault"),
    [(NOW - 5, 1.0, False), (NOW - 15, 1.0, True), (NOW - 30, 14.0, False), (NOW - 96, 14.0, True)],
)
def test_a_rank_is_slow_until_others_wait_far_longer_than_the_job_ever_paused(
    begun, every, is_fault
):
    ahead = calls("all_reduce", "all_reduce", begun=begun, every=every)
    behind = away(calls("all_reduce", open_last=False))
    (one,), text = judged(job(waiting(ahead), behind))
    assert one.is_fault == is_fault
    assert text.startswith("✗" if is_fault else "? never entered (open): rank 1 holds up rank 0")
    assert ("ask again" in text) != is_fault


@pytest.mark.parametrize(("inner", "is_fault"), [([("matmul", {})], False), ([], True)])
def test_a_rank_that_works_is_given_more_time_than_one_in_a_loop_of_its_own(inner, is_fault):
    ahead = calls("all_reduce", "all_reduce", begun=NOW - 31)
    busy = RankReading(1, NOW, "running", cpu=9.0, calls=[], frames=frames(5, *inner))
    before = {1: msgspec.structs.replace(busy, cpu=8.0)}
    (one,), text = judged(job(waiting(ahead), busy, before=before))
    assert one.is_fault == is_fault
    assert "train.py:5: the line itself; runs" in text


def test_an_edge_that_was_not_there_before_does_not_count():
    made, later = calls("all_reduce"), calls("all_reduce", "all_reduce")
    behind = away(calls("all_reduce", open_last=False), switches=1)
    before = {0: waiting(made), 1: msgspec.structs.replace(behind, switches=0)}
    verdicts, text = judged(job(waiting(later), behind, before=before))
    assert verdicts == []
    assert text.startswith("✓ the job moves: no rank waits")


def test_a_call_in_flight_of_a_rank_that_does_something_else_is_no_wait():
    made = calls("all_reduce")
    (one,), _ = judged(job(away(made), waiting(calls("all_reduce", "all_reduce"))))
    assert (one.kind, one.culprits, one.held) == ("never entered", (0,), (1,))


def test_the_fewest_who_made_another_call_come_first():
    few, many = calls("barrier"), calls("all_reduce")
    (one,), text = judged(job(waiting(many), waiting(few, 7), waiting(many)))
    assert (one.kind, one.culprits, one.held) == ("entered differently", (1,), (0, 2))
    assert (one.grade, one.is_fault) == ("established", True)
    assert "there is no telling which of them is wrong" in " ".join(text.split())


def test_three_groups_in_a_circle_and_a_rank_behind_them():
    def entry(group, number=1, record=0):
        one = calls("all_reduce", group=(group, f"pair {group}"))[0]
        return msgspec.structs.replace(one, collective_seq_id=number, record_id=record)

    pairs = {"1": [0, 1], "2": [1, 2], "3": [2, 0]}
    members = {name: dict(enumerate(ranks)) for name, ranks in pairs.items()}
    ranks = [waiting([entry(group)], 10 + int(group)) for group in pairs]
    ranks.append(waiting(calls("barrier")))
    (one,), text = judged(job(*ranks, members=members))
    assert (one.kind, sorted(one.culprits), one.held) == ("a circle", [0, 1, 2], (3,))
    assert (
        "a circle (established): 0 → 1 → 2 → 0, each waits for the next, and rank 3 behind them"
        in " ".join(text.split())
    )


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_rank_that_is_stopped_or_gone_is_accused_at_once(is_stopped):
    ahead = calls("all_reduce", "all_reduce", begun=NOW - 2)
    behind = away(calls("all_reduce", open_last=False), state="stopped") if is_stopped else None
    (one,), text = judged(job(waiting(ahead), behind, world=2))
    assert (one.kind, one.culprits, one.is_fault) == ("never entered", (1,), True)
    assert ("is stopped" if is_stopped else "rank 1 is gone") in text


def test_a_rank_on_another_machine_is_not_taken_for_gone():
    ahead = calls("all_reduce")
    (one,), text = judged(job(waiting(ahead), None, world=2, started=1))
    assert (one.is_fault, one.grade) == (False, "open")
    assert "attach --write DIR there" in " ".join(text.split())


def test_of_a_rank_whose_recorder_was_not_read_nobody_says_that_it_did_not_call():
    unread = RankReading(
        1, NOW, "sleeping", unread={"calls": "not allowed", "lines": "not allowed"}
    )
    (one,), text = judged(job(waiting(calls("all_reduce")), unread))
    assert (one.kind, one.culprits, one.is_fault) == ("all entered and none left", (0,), False)
    assert "rank 1, calls and lines: not allowed" in text


def test_all_entered_and_none_left_is_no_fault_of_the_script():
    made = calls("all_reduce")
    (one,), text = judged(job(waiting(made), waiting(made)))
    assert (one.kind, one.culprits) == ("all entered and none left", (0, 1))
    assert "the network or a device" in " ".join(text.split())


def test_a_receive_counts_if_its_rank_has_not_been_awake_between_the_readings():
    def receiving(source, switches=0):
        stack = frames(3, ("recv", {"src": str(source)}))
        return RankReading(1, NOW, "sleeping", "futex_wait", 0.0, switches, [], stack)

    (one,), _ = judged(job(receiving(1), receiving(0)))
    # a message may be on its way: one second proves nothing
    assert (one.kind, one.culprits, one.grade) == ("a circle", (0, 1), "open")
    moved = {0: receiving(1, 7), 1: receiving(0, 8)}
    verdicts, text = judged(job(receiving(1, 9), receiving(0, 9), before=moved))
    assert verdicts == []
    assert text.startswith("✓ the job moves")


def test_the_holder_of_a_file_lock_is_waited_for():
    lock = FileLock("/tmp/cache", 100)
    ahead = waiting(calls("all_reduce", "all_reduce"))
    behind = away(calls("all_reduce", open_last=False), lock=lock, sleeps_in="locks_lock")
    (one,), text = judged(job(ahead, behind))
    assert (one.kind, one.culprits) == ("a circle", (0, 1))
    other = msgspec.structs.replace(behind, lock=FileLock("/tmp/cache", 7))
    (one,), text = judged(job(ahead, other))
    assert (one.kind, one.culprits) == ("never entered", (1,))
    assert "waits for the lock of /tmp/cache, which process 7 holds" in " ".join(text.split())


@pytest.mark.parametrize("arrived", [{"0": {0: 0}}, {}])
def test_a_rank_that_is_late_in_the_making_of_the_group_is_missed_by_the_store_or_by_stacks(
    arrived,
):
    coming = RankReading(1, NOW, "sleeping", calls=[], frames=frames(3, ("init_process_group", {})))
    (one,), text = judged(job(coming, away([]), members=arrived))
    assert (one.kind, one.culprits) == ("never entered", (1,))
    assert "waits in init_process_group for rank 1" in " ".join(text.split())


def test_a_new_group_waits_for_its_members_alone():
    inner = [
        ("_new_process_group_helper", {"group_name": "'5'", "global_ranks_in_group": "[0, 2]"}),
        ("new_group", {}),
    ]
    making = RankReading(1, NOW, "sleeping", calls=[], frames=frames(3, *inner))
    (one,), _ = judged(job(making, away([]), away([], 6), members={"5": {0: 0}}))
    assert (one.culprits, one.held) == ((2,), (0,))


def test_stacks_alone_still_speak():
    stack = frames(9, ("all_reduce", {"group": "None"}))
    ahead = RankReading(1, NOW, "sleeping", "futex_wait", frames=stack)
    behind = RankReading(1, NOW, "sleeping", "hrtimer_nanosleep", frames=frames(5))
    (one,), text = judged(job(ahead, behind, ahead))
    assert (one.culprits, one.held, one.grade) == ((1,), (0, 2), "open")
    assert "as its stack says" in " ".join(text.split())


@pytest.mark.parametrize("names", [["all_reduce"] * 2, ["all_reduce", "broadcast"]])
def test_of_calls_in_groups_that_no_stack_names_nothing_is_concluded(names):
    ranks = [
        RankReading(1, NOW, "sleeping", "futex_wait", frames=frames(9, (name, {"group": "<G>"})))
        for name in names
    ]
    verdicts, text = judged(job(*ranks, away(None)))
    assert not verdicts
    assert text.startswith("? ranks wait, and whom they wait for is not known")
    assert f"waits in {names[1]} of some group, as its stack says" in " ".join(text.split())
    # where the store knows of one group alone, it is that
    verdicts, _ = judged(job(*ranks, away(None), members={"0": {0: 0, 1: 1, 2: 2}}))
    assert verdicts[0].culprits == (2,)


def test_a_job_that_moves_is_seen_to_by_its_calls():
    made = calls("all_reduce", open_last=False)
    for known, mark in ((made, "✓ the job moves"), (None, "? no rank is seen to wait")):
        later = away(known, switches=9)
        _, text = judged(job(later, before={0: away(known, switches=3)}.items()))
        assert text.startswith(mark)


def test_a_barrier_that_no_recorder_notes_is_seen_by_stacks():
    made = calls("all_reduce", open_last=False)
    stack = frames(9, ("monitored_barrier", {"group": "None"}))
    ahead = RankReading(1, NOW, "sleeping", "futex_wait", calls=made, frames=stack)
    (one,), text = judged(job(ahead, away(made), ahead))
    assert (one.kind, one.culprits, one.held) == ("never entered", (1,), (0, 2))
    assert "waits in monitored_barrier, as its stack says, for rank 1" in " ".join(text.split())


def test_a_rank_that_has_ended_and_waits_for_its_threads_is_said_to():
    behind = away(calls("all_reduce", open_last=False), sleeps_in="futex_do_wait")
    behind.frames = [StackFrame("/lib/python3.11/threading.py", 1590, "_shutdown")]
    _, text = judged(job(waiting(calls("all_reduce", "all_reduce")), behind))
    said = "rank 1 has come to the end of its program, and waits for threads of its own"
    assert said in " ".join(text.split())


def test_the_root_is_said_where_the_stack_has_it():
    made = calls("broadcast")
    ranks = [waiting(made), waiting(made)]
    for root, rank in enumerate(ranks):
        rank.frames = frames(9, ("broadcast", {"group_src": str(root)}))
    _, text = judged(job(*ranks))
    assert "waits in broadcast of [[4]], root 0, call 1" in " ".join(text.split())
    assert "waits in broadcast of [[4]], root 1, call 1" in " ".join(text.split())


def test_of_64_ranks_the_one_comes_first_and_the_others_are_folded():
    ahead, behind = calls("all_reduce", "barrier"), calls("all_reduce", open_last=False)
    ranks = [away(behind) if rank == 37 else waiting(ahead) for rank in range(64)]
    (one,), text = judged(job(*ranks))
    assert (one.culprits, len(one.held)) == ((37,), 63)
    assert "ranks 0-36, 38-63" in text
    assert len(text.splitlines()) < 12


def test_of_64_ranks_that_stand_in_lines_of_their_own_the_first_are_shown():
    ahead, behind = calls("all_reduce", "barrier"), calls("all_reduce", open_last=False)
    verdicts, text = judged(
        job(*[away(behind, rank) if rank else waiting(ahead) for rank in range(64)])
    )
    assert len(verdicts) == 63
    assert "also … and 51 more, as --json lists" in " ".join(text.split())


def test_the_verdict_is_linear_in_the_calls():
    def work(size):
        ahead = waiting(calls(*["all_reduce"] * size))
        readings = job(ahead, away(ahead.calls[:-1]), ahead)
        return lambda: verdicts_of(readings, waits_of(readings))

    assert growth(work, 300) < LIMIT


@pytest.mark.parametrize("kind", ["records", "stacks", "different", "init_process_group"])
def test_the_verdict_is_linear_in_the_ranks_of_which_one_is_late(kind):
    made = None if kind == "stacks" else []
    if kind in ("records", "different"):
        made = calls("all_reduce", "all_reduce")
    name = "init_process_group" if kind == "init_process_group" else "all_reduce"
    stack = frames(9, (name, {"group": "None"}))
    ahead = RankReading(1, NOW, "sleeping", "futex_wait", calls=made, frames=stack)
    late = away(made and made[:1])
    if kind == "different":
        late = waiting(calls("all_reduce", "barrier"))

    def work(size):
        readings = job(*[late if rank == 3 else ahead for rank in range(size)])
        return lambda: verdicts_of(readings, waits_of(readings))

    (one,) = work(16)()
    assert one.culprits == (3,)
    assert steps_growth(work, 24) < 4.5


# What is read. --------------------------------------------------------------------


def test_texts_and_lists_are_read_from_memory_within_their_block_and_beyond():
    far = ctypes.create_string_buffer(b"a text that is elsewhere")
    block = ctypes.create_string_buffer(64)
    start = ctypes.addressof(block)
    struct.pack_into("<QQ", block, 0, ctypes.addressof(far), 24)
    struct.pack_into("<QQ8s", block, 16, start + 32, 5, b"")
    block[32:37] = b"short"
    struct.pack_into("<QI", block, 40, start + 0, 2)
    with Memory(os.getpid()) as memory:
        data = memory.read(start, 64)
        assert memory.text(data, 0, start) == "a text that is elsewhere"
        assert memory.text(data, 16, start) == "short"
        assert memory.numbers(data, 40, start) == [ctypes.addressof(far), 24]
        struct.pack_into("<QQ", block, 0, 0, 24)
        with pytest.raises(UnknownLayout, match="is no address"):
            memory.text(memory.read(start, 64), 0, start)
        struct.pack_into("<QQ", block, 0, start, 1 << 40)
        with pytest.raises(UnknownLayout, match="no text has"):
            memory.text(memory.read(start, 64), 0, start)


def test_a_ring_that_moves_is_read_once_it_stands_still_and_each_call_once(monkeypatch, tmp_path):
    def entry(record, number=1):
        block = bytearray(Layout().length)
        struct.pack_into("<Q", block, 0, record)
        struct.pack_into("<Q", block, Layout().number, number)
        return bytes(block)

    half_written = entry(2, 1 << 60)
    after = [(entry(1), half_written), *[(entry(1), entry(2))] * 2, *[(entry(2), entry(3))] * 2]
    rings = iter([*after, *((entry(n), entry(n + 1)) for n in range(9))])
    ring = ctypes.create_string_buffer(2 * Layout().length)
    first, head = ctypes.addressof(ring), ctypes.create_string_buffer(96)
    struct.pack_into("<B47xQQ8xQ", head, 0, 1, first, first + len(ring), 2)
    variable = ctypes.create_string_buffer(struct.pack("<Q", ctypes.addressof(head)), 8)
    read, number, decoded = Memory.read, Memory.numbers, []

    def moved(memory, address, length):
        if address == first:
            ring[:] = b"".join(next(rings))
        return read(memory, address, length)

    def counted(memory, block, at, start):
        decoded.append(struct.unpack_from("<Q", block)[0])
        return number(memory, block, at, start)

    monkeypatch.setattr(Memory, "read", moved)
    monkeypatch.setattr(Memory, "numbers", counted)
    library = tmp_path / "lib" / "libtorch_cpu.so"
    library.parent.mkdir()
    library.touch()
    (tmp_path / "version.py").touch()
    place = ctypes.addressof(variable), library
    monkeypatch.setattr(recorder_memory, "library_of", lambda pid, name: place)
    known, seen = KnownRecorder(Layout(), 0, library), {}
    for expected in ([1, 2], [2, 3]):
        found = read_recorder(os.getpid(), known, seen)
        assert [one.record_id for one in found] == expected
    assert decoded == [1, 1, 2, 2, 3, 3]  # the dimensions of each, and its sizes
    with pytest.raises(UnknownLayout, match="moves too fast to be read"):
        read_recorder(os.getpid(), known, seen)


def test_of_threads_the_main_one_counts_or_the_one_that_communicates_if_it_waits_for_a_thread(
    monkeypatch,
):
    def thread(number, file):
        return {"os_thread_id": number, "frames": [{"name": "f", "filename": file, "line": 3}]}

    pid = os.getpid()
    talks, joins = thread(2, TORCH), thread(pid, "/lib/python3/threading.py")
    monkeypatch.setattr(stacks, "py_spy", lambda: "py-spy")
    for main, other, expected in (
        (joins, talks, TORCH),
        (joins, thread(2, "/home/me/other.py"), "/lib/python3/threading.py"),
        (thread(pid, "/home/me/train.py"), talks, "/home/me/train.py"),
    ):
        done = subprocess.CompletedProcess((), 0, msgspec.json.encode([other, main]))
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        assert stacks.stack_of(pid)[0].file == expected


def test_a_store_of_another_network_is_not_read(monkeypatch):
    """Its address may be that of another job's store."""
    rank = psutil.Process()
    found = LiveJob("a job", {0: rank}, 1, ("localhost", 29500), 1)
    monkeypatch.setattr(observation, "OwnTorch", UnreadTorch)
    monkeypatch.setattr(observation, "find_job", lambda pids: found)
    monkeypatch.setattr(observation, "stack_of", lambda pid: [])
    networks = iter(["net:[1]", "net:[2]"])
    monkeypatch.setattr(observation, "network_of", lambda pid: next(networks))
    readings = observation.Observer([rank.pid]).look()
    assert readings.members == {}
    assert f"nsenter -t {rank.pid} -n" in readings.notes[0]
    assert network_of(0) is None


class UnreadTorch:
    """Torch's process, which knows no recorder and is asked for no store."""

    def known_recorder(self):
        raise UnknownLayout("unknown")


def test_a_stack_says_which_call_and_which_line():
    stack = frames(4, ("recv", {"src": "2"}), ("wrapper", {}))
    assert torch_call(stack).name == "wrapper"
    assert own_frame(stack).line == 4
    assert value_of(stack, "recv", "src") == 2
    assert value_of(stack, "recv", "dst") is None
    assert torch_call(frames(4)) is None
    assert (torch_call(None), own_frame(None)) == (None, None)


def test_files_of_two_machines_are_judged_together(tmp_path):
    ahead, behind = calls("all_reduce", "all_reduce"), calls("all_reduce", open_last=False)
    here = job(waiting(ahead), None, world=2, started=1)
    there = job(None, away(behind), world=2, started=1)
    write_readings(here, tmp_path / "all").rename(tmp_path / "all" / "here.json")
    write_readings(there, tmp_path / "all")
    (one,), text = judged(read_folder(tmp_path / "all"))
    assert (one.kind, one.culprits) == ("never entered", (1,))
    assert "missing" not in text


def test_what_is_no_file_of_attach_is_listed_or_refused(tmp_path):
    whole = msgspec.json.encode(job(waiting(calls("all_reduce")), away([])))
    hostile = whole.replace(b"the line itself", b"\\u001b[2J" * 9)
    for number, data in enumerate(
        (
            b"",
            b"{",
            whole[: len(whole) // 2],
            b"[" * 100_000,
            b"null",
            whole.replace(b":1,", b":-5,"),
        )
    ):
        (tmp_path / f"bad{number}.json").write_bytes(data)
    with pytest.raises(RequestError, match=r"holds no readings: bad0.json is no file of attach"):
        read_folder(tmp_path)
    (tmp_path / "good.json").write_bytes(hostile)
    _, text = judged(read_folder(tmp_path))
    assert text.count("is no file of attach --write") >= 5
    assert "\x1b" not in text
    (tmp_path / "other.json").write_bytes(whole.replace(b"a job", b"another"))
    with pytest.raises(RequestError, match="give the files of one job"):
        read_folder(tmp_path)
    with pytest.raises(RequestError, match="is no folder"):
        read_folder(tmp_path / "nowhere")


def test_readings_that_lack_a_first_one_are_taken_as_they_are(tmp_path):
    readings = job(waiting(calls("all_reduce", "all_reduce")), away(calls("all_reduce")))
    readings.first.clear()
    write_readings(readings, tmp_path)
    assert read_folder(tmp_path).first.keys() == {0, 1}


def test_what_may_not_be_read_says_what_would_let_it(monkeypatch):
    process = psutil.Process()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert why_denied(process) == f"it is {process.username()}'s: attach as that user, or by sudo"
    monkeypatch.setattr(psutil.Process, "uids", lambda self: argparse.Namespace(effective=12345))
    for scope, said in (
        ("1\n", "kernel.yama.ptrace_scope is 1: attach by sudo"),
        ("", "the system refuses it: attach by sudo; a container needs the capability SYS_PTRACE"),
    ):
        monkeypatch.setattr(Path, "read_text", lambda path, scope=scope: scope)
        assert said in why_denied(process)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert why_denied(process) == (
        "the system refuses it: a container needs the capability SYS_PTRACE"
    )


def test_other_systems_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    request = argparse.Namespace(pids=[1], job=None, write=None, store=None)
    with pytest.raises(RequestError, match="this is not Linux"):
        attach_command(request)
    request.job = Path("here")
    with pytest.raises(RequestError, match="give the number of a process of the job, or --job"):
        attach_command(request)
