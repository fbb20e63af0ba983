"""A person's own script on recorded ranks: right ones run as they do, wrong ones are named."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from headcount.core import source_locations
from headcount.core.semantics import Semantics
from headcount.core.source_locations import following_script, is_students
from headcount.core.verdict import PATH, Diagnosis
from headcount.launch import supervisor
from headcount.launch.launchers import default_launcher
from headcount.rank.script import Script
from headcount.script.command import RunFollower, run_on_ranks
from headcount.script.report import json_report, text_report
from headcount.script.tally import CallTally

SCRIPTS = Path(__file__).resolve().parent
RIGHT = sorted((SCRIPTS / "right").glob("*.py"))
WRONG = sorted((SCRIPTS / "wrong").glob("*.py"))


def header(path):
    return dict(re.findall(r"^# (\w+): (.+)$", path.read_text(), re.M))


def execute(path, folder, ranks, *arguments, seconds=60.0, judged=(), replicas=False, **more):
    """Run a script in a folder; return what it came to, and what its ranks printed.

    Args:
        judged: by whose rules, and whether strictly.
    """
    shutil.copy(path, folder)
    variables = {
        "PATH": os.environ["PATH"],
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    script = Script(
        path.name, False, list(map(str, arguments)), str(folder), variables,
        [one for one in sys.path if one], **more,
    )  # fmt: skip
    out = io.StringIO()
    launcher = default_launcher()
    try:
        ran, _ = run_on_ranks(
            script, ranks, launcher, out, seconds, None, *judged, replicas=replicas
        )
        return ran, out.getvalue()
    finally:
        launcher.settle()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_script_runs_and_is_not_accused(path, tmp_path):
    ran, printed = execute(path, tmp_path, int(header(path)["ranks"]), tmp_path / "made")
    assert ran.failure is None, f"{ran.failure.message}\n{printed}"
    assert ran.leftover is None
    assert ran.status() == 0


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_what_is_wrong_with_a_script_is_named_at_its_own_line(path, tmp_path):
    about = header(path)
    seconds = 2.0 if about["diagnosis"] == "timeout" else 60.0
    ran, printed = execute(path, tmp_path, int(about["ranks"]), seconds=seconds)
    assert ran.failure is not None, printed
    assert ran.failure.diagnosis == about["diagnosis"], ran.failure.message
    assert ran.status() == int(about["status"])
    lines = path.read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith("# here"))
    assert f"{path.name}:{line}" in ran.failure.message
    assert f"{path.name}:{line}" in text_report(ran, 1000)
    sites = [ran.failure.site, *(wait.site for wait in ran.failure.waits)]
    assert all(site.file == f"{PATH}{path.name}" for site in sites if site is not None)


def execute_text(text, folder, ranks=2, **more):
    (folder / "from").mkdir()
    path = folder / "from" / "train.py"
    path.write_text(text)
    return execute(path, folder, ranks, **more)


BESIDE = """\
import sys
import torch
import torch.distributed as dist
default, own = (None if name == "none" else name for name in sys.argv[1:])
dist.init_process_group(default)
group = dist.new_group(backend=own)
peer = 1 - dist.get_rank()
request = dist.isend(torch.ones(1), peer, group=group)
dist.recv(torch.ones(1), peer, group=group)
request.wait()
"""
HANGS = "this can hang (with messages too large for NCCL's buffers)"


@pytest.mark.parametrize(
    ("default", "own", "fault", "note"),
    [
        ("nccl", "none", HANGS, ""),
        ("gloo", "nccl", HANGS, ""),
        # whoever writes gloo alone asks what NCCL would make of it
        ("gloo", "none", HANGS, ""),
        ("nccl", "gloo", "", ""),
        ("cuda:nccl", "cpu:gloo", "", ""),
        ("none", "gloo", "", ""),
        ("none", "none", "", HANGS),
        ("nccl", "cpu:gloo,cuda:nccl", "", HANGS),
    ],
)
def test_nccls_rules_are_for_groups_that_speak_nccl(tmp_path, default, own, fault, note):
    path = tmp_path / "train.py"
    path.write_text(BESIDE)
    (tmp_path / "there").mkdir()
    ran, _ = execute(path, tmp_path / "there", 2, default, own, judged=(Semantics.NCCL,))
    assert fault in ran.failure.message if fault else ran.failure is None
    assert note in ran.remarks[0] if note else not any("not decided" in one for one in ran.remarks)
    assert ran.status() == (3 if fault else 0)


ASKS = """\
import sysconfig, torch
for place in (sysconfig.get_path("purelib") + "/accelerate", torch.__path__[0]):
    names = ("cuda.is_available()", "cuda.device_count()", "accelerator.is_available()")
    code = compile(f"[{', '.join('torch.' + one for one in names)}]", f"{place}/there.py", "eval")
    print(*eval(code))
"""


def test_libraries_are_told_of_the_mapped_gpus_and_torch_is_not(tmp_path):
    _, printed = execute_text(ASKS, tmp_path, ranks=1, cuda="available")
    assert printed.splitlines() == ["[0] True 1 True", "[0] False 0 False"]


ONE_MORE = """\
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
sends, receives = map(int, sys.argv[1:])
for _ in range(receives if dist.get_rank() else sends):
    dist.recv(torch.ones(1), 0) if dist.get_rank() else dist.send(torch.ones(1), 1)
"""


@pytest.mark.parametrize(
    ("sends", "receives", "why"),
    [
        (2, 3, "rank 1 waits for its 3rd message from rank 0, which has sent 2"),
        (3, 2, "rank 0 waits with its 3rd message to rank 1, which has asked for 2"),
    ],
)
def test_the_message_that_has_no_other_end_is_counted(tmp_path, sends, receives, why):
    path = tmp_path / "train.py"
    path.write_text(ONE_MORE)
    (tmp_path / "there").mkdir()
    ran, _ = execute(path, tmp_path / "there", 2, sends, receives)
    assert why in ran.why()


AS_NCCL = """\
import sys
import torch
import torch.distributed as dist
dist.init_process_group(sys.argv[1])
rank, size = dist.get_rank(), dist.get_world_size()
out = torch.empty(2)
work = dist.reduce_scatter_tensor(out, torch.ones(2 * size), async_op=True)
assert work.get_future().then(lambda done: done.value()[0] * 2).wait().tolist() == [2.0 * size] * 2
parts = [torch.empty(other, 2) for other in range(size)]
dist.all_gather(parts, torch.full((rank, 2), float(rank)))
assert all(part.eq(other).all() for other, part in enumerate(parts))
"""


def test_collectives_have_futures_and_uneven_parts_as_on_nccl(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(AS_NCCL)
    for backend in ("nccl", "gloo"):
        (tmp_path / backend).mkdir()
        ran, printed = execute(path, tmp_path / backend, 3, backend)
        assert (ran.failure is None) is (backend == "nccl"), printed
    assert "getFuture not implemented" in ran.failure.message


WORKER = """\
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        raise ValueError("row " + 3000 * "x" + " is broken")
next(iter(DataLoader(Rows(), num_workers=1)))
"""


def test_an_exception_of_a_worker_is_told_in_a_line_and_at_its_place(tmp_path):
    ran, _ = execute_text(WORKER, tmp_path, ranks=1)
    assert ran.failure.site.line == 6
    assert [frame.site.line for frame in ran.failure.frames] == [7, 6]
    message = ran.failure.message
    assert message.startswith("rank 0, train.py:6: ValueError: Caught ValueError in DataLoader")
    assert message.endswith("xxx is broken")
    assert "Traceback" not in message


@pytest.mark.parametrize("call", ["", "dist.barrier()"])
def test_a_run_in_which_no_rank_communicates_says_so(tmp_path, call):
    text = f"import torch.distributed as dist\ndist.init_process_group('gloo')\n{call}\n"
    ran, _ = execute_text(text, tmp_path)
    assert ran.status() == 0
    assert ("the ranks never communicated" in text_report(ran, 200)) is (not call)


def test_what_is_left_over_is_the_headline_where_it_counts(tmp_path):
    text = (
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "if dist.get_rank() == 0:\n    dist.isend(torch.ones(2), 1)\n"
    )
    path = tmp_path / "train.py"
    path.write_text(text)
    (tmp_path / "there").mkdir()
    for strict, mark in ((False, "✓"), (True, "✗")):
        ran, _ = execute(path, tmp_path / "there", 2, judged=(Semantics.GLOO, strict))
        report = text_report(ran, 200)
        assert report.startswith(mark)
        assert report.count("which rank 1 never receives") == 1
        assert json.loads(json_report(ran))["ok"] is not strict


LOCKED = """\
import fcntl
import torch.distributed as dist
dist.init_process_group("gloo")
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    dist.barrier()
"""


def test_at_the_time_limit_ranks_that_wait_are_named_beside_those_that_do_not(tmp_path):
    ran, _ = execute_text(LOCKED, tmp_path, seconds=1.0)
    (running,) = re.findall(r"rank (\d) is still running at train.py:5", ran.failure.message)
    waiting = 1 - int(running)
    assert f"rank {waiting} waits in barrier at train.py:6" in " ".join(ran.failure.detail)


LOADED = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

class Shard(IterableDataset):
    def __iter__(self):
        assert dist.is_initialized()
        for i in range(dist.get_rank(), 8, dist.get_world_size()):
            yield torch.tensor(i)
        {}

dist.init_process_group("gloo")
print([batch.tolist() for batch in DataLoader(Shard(), 2, num_workers=1)])
"""


@pytest.mark.parametrize("communicates", [False, True])
def test_a_loaders_worker_may_ask_for_its_rank_and_not_communicate(tmp_path, communicates):
    end = "dist.barrier()" if communicates else ""
    ran, printed = execute_text(LOADED.format(end), tmp_path)
    if communicates:
        assert "forked by a rank and is none itself (a DataLoader's worker" in ran.failure.message
    else:
        assert ran.failure is None
        assert "[1] [[1, 3], [5, 7]]" in printed


POLLED = """\
import time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    request = dist.irecv(torch.zeros(1), 0)
    while not request.is_completed():
        time.sleep(0.01)
"""


def test_at_the_time_limit_it_is_said_what_is_asked_about_in_vain(tmp_path):
    ran, _ = execute_text(POLLED, tmp_path, seconds=1.0)
    polls = "rank 1 waits to receive from rank 0 at train.py:6 (polling); rank 0 has ended"
    assert polls in ran.failure.detail
    found = ran.failure.hang
    assert (found.kind, found.culprits, found.held) == ("never entered", (0,), (1,))


def test_at_the_time_limit_ranks_that_poll_are_in_a_circle(tmp_path):
    ran, _ = execute_text(POLLED + "dist.barrier()\n", tmp_path, seconds=1.0)
    found = ran.failure.hang
    assert (found.kind, found.grade, {*found.culprits}) == ("a circle", "supported", {0, 1})


def test_where_ranks_are_is_shown_when_nothing_happens_for_long(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(supervisor, "QUIET", 0.3)
    execute_text(LOCKED, tmp_path, seconds=2.5)
    said = capsys.readouterr().err.splitlines()
    assert 1 <= len(said) <= 3  # after twice as long each time
    assert re.search(
        r"nothing is proved: rank (\d) is still running at train.py:5; rank (?!\1)\d waits in"
        r" barrier at train.py:6 for rank \1",
        said[0],
    )


POOL = """\
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
pool = ThreadPoolExecutor(1)
pool.submit(dist.all_reduce, torch.ones(2)).result()
if dist.get_rank() == 0:
    pool.submit(dist.barrier).result()
"""


def test_a_call_in_a_pool_of_threads_has_the_line_that_handed_it_over(tmp_path):
    ran, _ = execute_text(POOL, tmp_path)
    assert ran.failure.diagnosis is Diagnosis.DEADLOCK
    assert re.search("rank 0 waits in its thread .* in barrier at train.py:8", ran.failure.message)


PAIRS = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
pairs = [dist.new_group([one, one + 1]) for one in range(3)]
if rank < 3:
    dist.all_reduce(torch.ones(1), group=pairs[rank])
if 0 < rank < 3:
    dist.all_reduce(torch.ones(1), group=pairs[rank - 1])
"""


def test_the_headline_is_about_the_rank_that_all_others_wait_for(tmp_path):
    ran, _ = execute_text(PAIRS, tmp_path, ranks=4)
    hang = ran.failure.hang
    assert (hang.kind, hang.grade, hang.fate) == ("never entered", "established", "ended")
    # rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3
    assert (hang.culprits, hang.held) == ((3,), (0, 1, 2))
    first, second, *_ = text_report(ran, 200).splitlines()
    assert first.endswith(", never entered (established): " + str(hang))
    assert str(hang) == "rank 3 has already ended, and holds up ranks 0-2"
    assert second == "  rank 3  last called new_group at train.py:5"


MOST = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.broadcast(torch.ones(1), 0) if dist.get_rank() == {odd} else dist.all_reduce(torch.ones(1))
"""


@pytest.mark.parametrize(("ranks", "odd", "few"), [(3, 0, (0,)), (3, 2, (2,)), (2, 0, (0, 1))])
def test_of_different_calls_those_that_the_fewest_have_made_come_first(tmp_path, ranks, odd, few):
    ran, _ = execute_text(MOST.format(odd=odd), tmp_path, ranks=ranks)
    hang = ran.failure.hang
    assert (hang.kind, hang.culprits) == ("entered differently", few)
    assert {*hang.culprits, *hang.held} == {*range(ranks)}


THREE = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    dist.all_reduce(torch.ones(1))
elif rank == 1:
    dist.barrier()
else:
    dist.broadcast(torch.ones(1), 0)
"""


def test_of_three_different_calls_each_is_shown_with_its_ranks(tmp_path):
    ran, _ = execute_text(THREE, tmp_path, ranks=4)
    assert (ran.failure.hang.culprits, ran.failure.hang.held) == ((0, 1), (2, 3))
    sides = {ranks: site.line for ranks, site in ran.failure.sides}
    assert sides == {(0,): 6, (1,): 8, (2, 3): 10}
    assert "\n  ranks 2, 3 train.py:10" in text_report(ran, 100)


CIRCLES = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if rank < 4:
    dist.recv(torch.ones(1), rank ^ 1)
elif rank < 7:
    dist.barrier()
"""


WAYS = ("0 → 1 → 0", "2 → 3 → 2")


def test_all_that_holds_up_ranks_is_told_what_holds_up_most_first(tmp_path):
    ran, _ = execute_text(CIRCLES, tmp_path, ranks=8)
    # the barrier waits for the circles as well
    first, second = (f"{way}, each waits for the next, and ranks 4-6 behind them" for way in WAYS)
    assert str(ran.failure.hang) == first
    assert ran.failure.detail[:2] == (
        f"a circle (established): {second}",
        "never entered (established): rank 7 has already ended, and holds up ranks 4-6",
    )


STEPS = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
for step in range(2 if dist.get_rank() == 0 else 3):
    dist.all_reduce(torch.ones(1))
"""


def test_ranks_that_are_equally_far_ahead_are_told_together(tmp_path):
    ran, _ = execute_text(STEPS, tmp_path, ranks=4)
    first, *_ = ran.why()
    assert first.startswith(
        "ranks 1, 2 and 3 are at their 3rd all_reduce at train.py:5, and rank 0"
    )


AROUND = """\
import torch
import torch.distributed as dist

def total(x):
    dist.all_reduce(x)

def validate():
    total(torch.ones({size}))

dist.init_process_group("gloo")
total(torch.ones(1))
if dist.get_rank() == 0:
    validate()
{other}
"""


@pytest.mark.parametrize(
    ("size", "other", "diagnosis"),
    [(1, "", Diagnosis.DEADLOCK), (2, "total(torch.ones(1))", Diagnosis.SIZE_MISMATCH)],
)
def test_a_call_in_a_function_of_the_scripts_own_is_named_with_its_callers(
    tmp_path, size, other, diagnosis
):
    ran, _ = execute_text(AROUND.format(size=size, other=other), tmp_path)
    assert ran.failure.diagnosis is diagnosis
    called = "train.py:5 is called from train.py:8, which is called from train.py:13"
    assert f"rank 0: {called}" in ran.failure.detail
    # not in a function: nothing to add
    assert not any("train.py:15 is called" in line for line in ran.failure.detail)


ONE_JOINS = """\
import os
import torch.distributed as dist
if os.environ["RANK"] == "0":
    dist.init_process_group("nccl"{more})
"""


@pytest.mark.parametrize("more", ["", ", device_id=0"])
def test_a_group_of_nccl_waits_for_its_ranks_where_it_connects_them_at_once(tmp_path, more):
    ran, _ = execute_text(ONE_JOINS.format(more=more), tmp_path)
    if more:
        said = "rank 0 waits in init_process_group at train.py:4 for rank 1"
        assert ran.failure.message.startswith(said)
    else:
        assert ran.failure is None


def test_a_default_group_is_made_as_often_as_all_ranks_make_it(tmp_path):
    text = "import torch.distributed as dist\nfor _ in range(3):\n    dist.init_process_group()\n"
    ran, _ = execute_text(text + "    dist.barrier()\n    dist.destroy_process_group()\n", tmp_path)
    assert ran.failure is None


HANDLES = """\
import signal
import torch
import torch.distributed as dist

# as a job does that its scheduler warns by this signal
signal.signal(signal.SIGUSR1, lambda *_: print("saves a checkpoint"))
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
while True:
    pass  # and calls nothing, which a profiler of the tests would see
"""


def test_a_script_that_hangs_gets_no_signal_that_it_may_handle_itself(tmp_path):
    ran, printed = execute_text(HANDLES, tmp_path, seconds=2.0)
    assert re.search(r"rank 1 is still running at train.py:1[01]$", ran.failure.message)
    assert "checkpoint" not in printed


ON_A_MESH = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
rows = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
columns = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
for group in (rows[rank // 2], columns[rank % 2])[rank == 3:]:
    dist.all_reduce(torch.ones(1), group=group)
"""


def test_a_wait_on_a_mesh_is_named_with_its_group(tmp_path):
    ran, _ = execute_text(ON_A_MESH, tmp_path, 4)
    # each in the call of the same line, and each for another reason
    assert "rank 0: this all_reduce is in the group of ranks 0 and 2" in ran.failure.detail
    assert "rank 2: this all_reduce is in the group of ranks 2 and 3" in ran.failure.detail


NAMED_MESH = """\
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
if rank in absent:
    dist.recv(torch.ones(1), rank - 1)
dist.all_reduce(torch.ones(1), group=mesh.get_group("tp"))
"""


@pytest.mark.parametrize(
    ("absent", "said"),
    [
        ("(3,)", "rank 2: this all_reduce is in the group mesh_tp of ranks 2 and 3"),
        ("(1, 3)", "ranks 0 and 2: this all_reduce is in the groups mesh_tp, each in its own"),
    ],
)
def test_groups_have_the_names_that_the_script_gives_them(tmp_path, absent, said):
    ran, _ = execute_text(f"absent = {absent}\n{NAMED_MESH}", tmp_path, 4)
    assert said in ran.failure.detail


SLIPPED = """\
import os
import torch
import torch.distributed as dist
x = torch.ones(1)
if os.environ["RANK"] == "0":
    dist.init_process_group("gloo")
    dist.broadcast(x, 0)
    dist.all_reduce(x)
else:
    dist.init_process_group("gloo")
    dist.broadcast(x, 0)
for _ in range(3):
    dist.all_reduce(x)
"""


def test_a_hang_is_traced_to_the_first_call_of_different_lines(tmp_path):
    ran, _ = execute_text(SLIPPED, tmp_path)
    last, first = ran.why()
    assert last.startswith("the last call that all ranks made together was all_reduce at")
    assert first == (
        "the first that all ranks made together from different lines was all_reduce at train.py:8"
        " on rank 0, for the 1st time, all_reduce at train.py:13 on rank 1, for the 1st time"
    )


LOST = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
try:
    if dist.get_rank() == 1:
        raise ValueError("bad sample \\udc80 4711")
    dist.all_reduce(torch.ones(1))
finally:
    dist.barrier()
"""


def test_an_exception_that_a_call_in_finally_holds_up_is_not_lost(tmp_path):
    ran, _ = execute_text(LOST, tmp_path)
    assert ran.failure.diagnosis is Diagnosis.ORDER_MISMATCH
    (said,) = (line for line in ran.failure.detail if "ValueError" in line)
    assert said == (
        "rank 1 makes its call while handling ValueError: bad sample ? 4711, raised at train.py:6"
    )


def test_an_exception_that_has_been_handled_is_not_told_of_a_later_call(tmp_path):
    handled = LOST.replace(
        "finally:\n    dist.barrier()", "except ValueError:\n    dist.all_reduce(torch.ones(1))"
    )
    ran, _ = execute_text(handled + "if dist.get_rank() == 1:\n    dist.barrier()\n", tmp_path)
    assert ran.failure.diagnosis is Diagnosis.DEADLOCK
    assert not any("ValueError" in line for line in ran.failure.detail)


OTHER_GROUP = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
pairs = dist.new_group([0, 1]), dist.new_group([1, 2])
for step in range(4):
    group = pairs[rank == 2 or (rank == 1 and step > 0)]
    if rank < 2 or step > 0:
        dist.all_reduce(torch.ones(1), group=group)
"""


def test_calls_at_one_line_in_several_groups_are_not_counted_against_each_other(tmp_path):
    ran, _ = execute_text(OTHER_GROUP, tmp_path, ranks=3)
    assert ran.failure.diagnosis is Diagnosis.DEADLOCK
    assert not any("before it ended" in line for line in ran.why())


def test_a_line_that_is_printed_as_ctrl_c_comes_is_not_printed_again():
    class Interrupted(io.StringIO):
        def flush(self):
            raise KeyboardInterrupt

    out = Interrupted()
    follower = RunFollower(1, CallTally(1), out)
    for data in (b"begins\n", b"tidies up\n"):
        with pytest.raises(KeyboardInterrupt):
            follower.printed(0, data)
    assert out.getvalue() == "[0] begins\n[0] tidies up\n"


COLLECTS = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, channel):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    {more}
    channel.{send}(rank)

if __name__ == "__main__":
    spawns = mp.get_context("spawn")
    channel, end = {made}
    ranks = [spawns.Process(target=work, args=(rank, channel)) for rank in range(2)]
    for one in ranks:
        one.start()
    end.{receive}()
    end.{receive}()
    for one in ranks:
        one.join()
"""
QUEUE = {"made": "[spawns.Queue()] * 2", "send": "put", "receive": "get"}


@pytest.mark.parametrize(
    "words",
    [
        QUEUE,
        {**QUEUE, "made": "[spawns.SimpleQueue()] * 2"},
        {"made": "reversed(spawns.Pipe(duplex=False))", "send": "send", "receive": "recv"},
    ],
    ids=["queue", "simple queue", "pipe"],
)
def test_a_script_ends_where_it_would_collect_the_results_of_other_ranks(tmp_path, words):
    ran, _ = execute_text(COLLECTS.format(more="", **words), tmp_path, seconds=20.0)
    assert ran.failure is None
    (remark,) = (one for one in ran.remarks if "gather_object" in one)
    assert remark.startswith("ranks 0 and 1, train.py:18: the script waits here for what the other")


LOGS = """\
import multiprocessing
import torch
import torch.distributed as dist

def log(lines):
    while (line := lines.get()) is not None:
        print("logged", line, flush=True)

def work(rank, lines):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    lines.put(rank)

if __name__ == "__main__":
    forks = multiprocessing.get_context("fork")
    lines = forks.Queue()
    ranks = [forks.Process(target=work, args=(rank, lines)) for rank in range(2)]
    for one in ranks:
        one.start()
    logger = forks.Process(target=log, args=(lines,))
    logger.start()
    for one in ranks:
        one.join()
    lines.put(None)
    logger.join()
"""


def test_another_process_of_the_script_receives_what_ranks_send(tmp_path):
    ran, printed = execute_text(LOGS, tmp_path, seconds=20.0)
    assert ran.failure is None, printed
    assert not any("gather_object" in one for one in ran.remarks)
    assert all(f"logged {rank}\n" in printed for rank in range(2))


def test_a_deadlock_of_ranks_is_named_before_that_their_parent_waits_in_vain(tmp_path):
    more = "rank and dist.barrier()"
    ran, _ = execute_text(COLLECTS.format(more=more, **QUEUE), tmp_path, seconds=20.0)
    assert ran.failure.diagnosis is Diagnosis.DEADLOCK
    assert "rank 1 waits in barrier at train.py:8 for rank 0" in ran.failure.message


MONITORED = """\
from datetime import timedelta
import pickle
import torch.distributed as dist
dist.init_process_group("gloo")
try:
    if dist.get_rank() == 0:
        dist.monitored_barrier(timeout=timedelta(seconds=0.1))
    else:
        dist.recv_object_list([None], 0)
except RuntimeError as error:
    print("caught", repr(pickle.loads(pickle.dumps(error))))
    raise ValueError("gives up") from error
"""


def test_an_exception_of_gloo_is_printed_as_torchs_own(tmp_path):
    ran, printed = execute_text(MONITORED, tmp_path)
    said = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 100 ms"
    assert f'[0] caught RuntimeError("{said}' in printed.replace("'", '"')
    assert f"[0] RuntimeError: {said}" in printed
    assert "headcount" not in printed
    assert f"caused by RuntimeError: {said}" in " ".join(ran.failure.detail)


SPAWNS_TWICE = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, turn):
    torch.set_default_device(f"cuda:{rank}")
    dist.init_process_group("nccl", rank=rank, world_size=2)
    x = torch.ones(1)
    dist.all_reduce(x)
    print("turn", turn, x.item())

if __name__ == "__main__":
    for turn in range(2):
        mp.spawn(work, args=(turn,), nprocs=2)
"""


def test_a_process_group_ends_with_the_process_that_a_rank_stands_for(tmp_path):
    ran, printed = execute_text(SPAWNS_TWICE, tmp_path)
    assert ran.failure is None, printed
    assert [printed.count(f"turn {turn} 2.0") for turn in range(2)] == [2, 2]


IN_TURN = """\
import multiprocessing as mp
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing

def work(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    x = torch.ones(1)
    dist.all_reduce(x)
    print("sum", x.item())

if __name__ == "__main__":
    way, *sizes = sys.argv[1:]
    for size in map(int, sizes):
        if way == "spawn":
            torch.multiprocessing.spawn(work, args=(size,), nprocs=size)
        elif way == "plain":
            dist.init_process_group("gloo", world_size=size)
            dist.destroy_process_group()
        else:
            ranks = [mp.Process(target=work, args=(rank, size)) for rank in range(size)]
            for one in ranks:
                one.start()
            for one in ranks:
                one.join()
            print([one.exitcode for one in ranks])
"""


def in_turn(folder, ranks, *arguments):
    path = folder / "train.py"
    path.write_text(IN_TURN)
    (folder / "there").mkdir()
    return execute(path, folder / "there", ranks, *arguments)


@pytest.mark.parametrize("way", ["spawn", "processes", "plain"])
def test_one_number_of_ranks_is_for_all_of_a_script(tmp_path, way):
    ran, _ = in_turn(tmp_path, 3, way, 3, 2)
    message = ran.failure.message
    assert "2 ranks: before, it asked for 3, and `run` has one number of ranks" in message
    assert "--ranks" not in message
    (tmp_path / "first").mkdir()
    ran, _ = in_turn(tmp_path / "first", 2, way, 3, 2)
    assert ran.failure.message.endswith("3 ranks: 2 run, so run it with --ranks 3")


def test_processes_that_are_started_later_do_their_part_as_well(tmp_path):
    ran, printed = in_turn(tmp_path, 2, "processes", 2, 2)
    assert ran.failure is None, printed
    assert printed.count("sum 2.0") == printed.count("[0, 0]") == 4


BOTH_BACKENDS = """\
import threading
import torch
import torch.distributed as dist
dist.init_process_group("cpu:gloo,cuda:nccl")
rank = dist.get_rank()
group = dist.new_group() if {own} else None
reduced, gathers = threading.Event(), threading.Event()

class Told:
    def __reduce__(self):
        gathers.set()
        return int, (rank,)

def save():
    if rank == 0:
        reduced.wait()
    found = [None, None]
    dist.all_gather_object(found, Told(), group=group)
    print("saved", found)

thread = threading.Thread(target=save)
thread.start()
if rank == 1:
    gathers.wait()
{call}
reduced.set()
thread.join()
"""


@pytest.mark.parametrize("own", [False, True])
def test_threads_may_use_the_two_backends_of_a_group_in_any_order(tmp_path, own):
    call = 'dist.all_reduce(torch.ones(1, device="cuda"), group=group)'
    text = BOTH_BACKENDS.format(own=own, call=call)
    ran, printed = execute_text(text, tmp_path)
    assert ran.failure is None, printed
    assert printed.count("saved [0, 1]") == 2


@pytest.mark.parametrize(
    ("device", "first"), [("", ""), (", device_id=torch.device('cuda', 0)", "reduced.set(); ")]
)
def test_a_barrier_is_in_one_order_with_objects_where_torch_sends_it_on_the_cpu(
    tmp_path, device, first
):
    """The thread of rank 1 gathers first; rank 0, in its barrier, has yet to gather."""
    call = f"if rank == 0: {first}dist.barrier()\nelse: thread.join(); dist.barrier()"
    text = BOTH_BACKENDS.format(own=False, call=call)
    ran, printed = execute_text(text.replace('nccl")', f'nccl"{device})'), tmp_path)
    if device:
        assert ran.failure is None, printed
    else:
        assert ran.failure.diagnosis is Diagnosis.ORDER_MISMATCH
        said = "rank 1 calls all_gather at train.py:18 in its thread Thread-1 (save)"
        assert said in ran.failure.message


OBJECT_BESIDE_TENSOR = """\
import torch
import torch.distributed as dist
dist.init_process_group("cpu:gloo,cuda:nccl")
x = torch.full((4,), 1.0 - dist.get_rank(), device="cuda")
if dist.get_rank() == 0:
    request = dist.isend(x, 1)
    dist.send_object_list(["object"], 1)
else:
    objects = [None]
    dist.recv_object_list(objects, 0)
    request = dist.irecv(x, 0)
    print(*objects)
request.wait()
print(int(x.sum()))
"""


def test_objects_and_tensors_are_messages_of_the_two_backends_of_a_group(tmp_path):
    ran, printed = execute_text(OBJECT_BESIDE_TENSOR, tmp_path)
    assert ran.failure is None, printed
    assert sorted(printed.splitlines()) == ["[0] 4", "[1] 4", "[1] object"]


NAMES = """\
import sys
import torch
import torch.distributed as dist
default, own, more = (None if name == "none" else name for name in sys.argv[1:])
dist.init_process_group(default, **{"device_id": torch.device("cuda", 0)} if more else {})
for group in (dist.group.WORLD, dist.new_group(backend=own)):
    print(dist.get_backend(group), dist.get_backend_config(group), repr(group).partition(" at")[0])
try:
    dist.monitored_barrier()
    print("gloo has a barrier")
except ValueError as error:
    print(error)
"""
PLAIN = "<torch.distributed.distributed_c10d.ProcessGroup object"
GLOO, NCCL = f"gloo cpu:gloo,cuda:gloo {PLAIN}", f"nccl cuda:nccl {PLAIN}"
BOTH = f"cpu:gloo,cuda:nccl cpu:gloo,cuda:nccl {PLAIN}"


@pytest.mark.parametrize(
    ("default", "own", "more", "said"),
    [
        ("gloo", "nccl", "none", [GLOO, NCCL, "gloo has a barrier"]),
        ("NCCL", "none", "none", [NCCL, NCCL]),
        ("none", "gloo", "device", [NCCL, GLOO]),
        ("none", "none", "none", [f"undefined cpu:gloo {PLAIN}"] * 2),
        ("cpu:gloo,cuda:nccl", "none", "none", [BOTH, BOTH]),
    ],
)
def test_groups_say_which_backend_the_script_has_asked_for(tmp_path, default, own, more, said):
    """In the words of torch where the script runs on GPUs."""
    path = tmp_path / "train.py"
    path.write_text(NAMES)
    (tmp_path / "there").mkdir()
    ran, printed = execute(path, tmp_path / "there", 2, default, own, more)
    assert ran.failure is None, printed
    said = [*said, "monitored_barrier is only implemented for GLOO backend."][:3]
    lines = printed.splitlines()
    for rank in range(2):
        assert [line[4:] for line in lines if line.startswith(f"[{rank}]")] == said


GPUS = SCRIPTS / "gpus"


def test_a_script_that_refuses_to_run_without_gpus_is_told_that_there_are(tmp_path):
    path = GPUS / "refuses_without.py"
    ran, printed = execute(path, tmp_path, 2, cuda="available")
    assert ran.failure is None, printed
    assert any("mapped to the CPU" in text for text in ran.remarks)
    ran, printed = execute(path, tmp_path, 2)
    assert ran.status() == 1
    assert printed.count("no GPU") == 2
    ran, _ = execute(path, tmp_path, 2, "goes on")
    assert (
        "starts no process, for want of GPUs: run it with --cuda available" in ran.failure.message
    )


@pytest.mark.parametrize("cuda", ["map", "off"])
def test_a_bare_number_of_a_gpu_is_refused_with_what_to_write(tmp_path, cuda):
    ran, printed = execute_text("import torch\ntorch.device(5)\n", tmp_path, cuda=cuda)
    assert ran.failure.site.line == 2
    mend = "2 mapped GPUs, one for each rank: write torch.device('cuda', number)"
    assert ran.failure.message.endswith(mend) is (cuda == "map")
    assert printed.count(mend) == 2 * (cuda == "map")


def test_what_has_no_counterpart_on_the_cpu_is_named_at_its_line(tmp_path):
    ran, printed = execute(GPUS / "needs_a_kernel.py", tmp_path, 1)
    assert ran.failure.message.startswith("rank 0, needs_a_kernel.py:7: RuntimeError: this needs a")
    assert "headcount/" not in printed


def test_an_environment_in_the_scripts_folder_is_none_of_it():
    torchs = torch.autograd.graph.__file__
    environment = str(Path(torch.__file__).parents[1])
    with following_script(str(Path(environment).parents[3]), "/"):
        assert not is_students(torchs)
        assert not is_students("<frozen runpy>")
        # the command that has started the judge
        assert not is_students(os.path.join(sysconfig.get_path("scripts"), "gather-round"))
        assert is_students(__file__)
    # a script that is itself installed
    with following_script(str(Path(torch.__file__).parent), "/"):
        assert is_students(torchs)


def test_a_script_among_the_libraries_is_followed_by_both_names_of_its_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "real" / "package").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    monkeypatch.setattr(source_locations, "LIBRARIES", (f"{link}/",))
    with following_script(str(link / "package"), "/"):
        assert is_students(str(link / "package" / "train.py"))
        assert not is_students(str(link / "other" / "train.py"))


def test_the_documentation_lists_every_fault_with_what_is_said():
    tools = (SCRIPTS.parent.parent / "docs" / "script_faults.md").read_text()
    assert re.findall(r"^\| \[(\w+)\]", tools, re.M) == [path.stem for path in WRONG]
    text = (SCRIPTS.parent.parent / "docs" / "run.md").read_text()
    for path in WRONG:
        (row,) = re.findall(rf"^\| \[{path.stem}\]\(.*?\): .*? \| (.*) \|$", text, re.M)
        assert row == Diagnosis(header(path)["diagnosis"]).words, path.stem


def test_both_lines_of_calls_that_do_not_match_are_quoted_the_odd_one_first(tmp_path, monkeypatch):
    text = (
        "import torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 2:\n"
        "    dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX)  # alone\n"
        "dist.all_reduce(torch.ones(1))  # everybody\n"
    )
    ran, printed = execute_text(text, tmp_path, 3)
    assert ran.failure is not None, printed
    (odd, line), (_, other) = ran.failure.sides
    assert (odd, line.line, other.line) == ((2,), 5, 6)
    monkeypatch.chdir(tmp_path)  # names of files are relative
    shown = text_report(ran, 100)
    quoted = [one.strip() for one in shown.splitlines() if one.startswith("  rank")]
    assert quoted[0].startswith("rank 2  train.py:5: dist.all_reduce(")
    assert quoted[1] == "ranks 0, 1 train.py:6: dist.all_reduce(torch.ones(1))  # everybody"
    assert json.loads(json_report(ran))["failure"]["sides"] == [
        {"ranks": [2], "file": "train.py", "line": 5},
        {"ranks": [0, 1], "file": "train.py", "line": 6},
    ]


WORKERS = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank):
    start = "tcp://127.0.0.1:29505"
    dist.init_process_group("gloo", init_method=start, rank=rank, world_size=2)
    total = torch.ones(1)
    if rank == 0:
        dist.all_reduce(total)

if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool:
        pool.map(work, range(2))
"""


def test_a_rank_that_is_missing_among_the_workers_of_a_pool_is_named(tmp_path):
    ran, printed = execute_text(WORKERS, tmp_path, 2)
    assert ran.failure is not None, printed
    assert ran.failure.diagnosis is Diagnosis.DEADLOCK
    assert "rank 0 waits in all_reduce at train.py:10 for rank 1" in ran.failure.message
