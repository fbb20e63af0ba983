"""``python -m grader bench``, with real ranks, alone and under torchrun."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from PIL import Image

from grader.cli.main import main
from grader.course import costs
from grader.course.bench.command import footer, header, line, to_json
from grader.course.bench.plan import DTYPES, KIND_OF, BenchPlan, SizeRow, bytes_of
from grader.course.bench.rank import Buffers, wrong_elements
from support.processes import our_processes
from support.worlds import play

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = {path.name[:2]: path for path in (ROOT / "solutions").glob("[0-9][0-9]_*.py")}

#: As quick as a table can be.
QUICK = ("--ranks", "2", "--min-bytes", "64", "--max-bytes", "1K", "--iters", "2", "--warmup", "1")


#: One worker has the process below, and what the commands of one fixture have said.
pytestmark = pytest.mark.xdist_group("bench")

#: Carries out commands in forks of itself: each is a process of its own that has done nothing yet,
#: as a new interpreter is, but torch is imported once for all of them.
FORKING = """
import gc, json, os, sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from headcount.launch.launchers import use_one_thread
use_one_thread()
import grader.course.bench.rank, grader.cli.main, torch.distributed.run
programs = {"grader": grader.cli.main.main, "torchrun": torch.distributed.run.main}

def begin(program, arguments, out, err, environment):
    child = os.fork()
    if not child:
        os.environ.update(environment)
        for fd, path in enumerate((os.devnull, out, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), fd)
        sys.exit(programs[program](arguments))
    return child

gc.freeze()  # or each child would look through all of torch as it ends
print("ready", flush=True)
for line in sys.stdin:
    children = [begin(*command) for command in json.loads(line)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    print(json.dumps([os.waitstatus_to_exitcode(end) for end in ends]), flush=True)
"""


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Run commands at the same time, and return how they have ended, in their order."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as forking:
        assert forking.stdout.readline() == "ready\n"

        def run(*commands, **environment):
            folder = tmp_path_factory.mktemp("said")
            files = [(folder / f"{i}.out", folder / f"{i}.err") for i in range(len(commands))]
            told = [
                (program, [*map(str, arguments)], *map(str, paths), environment)
                for (program, *arguments), paths in zip(commands, files, strict=True)
            ]
            forking.stdin.write(json.dumps(told) + "\n")
            forking.stdin.flush()
            return [
                subprocess.CompletedProcess(command, status, out.read_text(), err.read_text())
                for command, status, (out, err) in zip(
                    commands, json.loads(forking.stdout.readline()), files, strict=True
                )
            ]

        yield run
        forking.stdin.close()


@pytest.fixture
def bench(together):
    """Run ``python -m grader bench``."""
    return lambda *arguments, **names: together(("grader", "bench", *arguments), **names)[0]


@pytest.fixture
def torchrun(together):
    """Run ``bench`` on two ranks of ``torchrun``'s."""
    # each run finds a free port by itself
    words = ("torchrun", "--standalone", "--nproc-per-node", "2", "-m", "grader", "bench")
    return lambda *arguments, **names: together((*words, *arguments), **names)[0]


def of_file(folder, source):
    path = folder / "answer.py"
    path.write_text("import os, signal\nimport torch\nimport torch.distributed as dist\n" + source)
    return "--file", path, *QUICK


# The arithmetic. ------------------------------------------------------------------


@pytest.mark.parametrize(
    "op, n, factor",
    [
        ("all_reduce", 4, 1.5),
        ("all_reduce", 1, 0.0),
        ("all_gather", 4, 0.75),
        ("reduce_scatter", 8, 0.875),
        ("all_to_all", 2, 0.5),
        ("scatter", 4, 0.75),
        ("gather", 4, 0.75),
        ("broadcast", 4, 1.0),
        ("reduce", 4, 1.0),
        ("send_recv", 2, 1.0),
    ],
)
def test_the_factors_are_those_of_nccl_tests(op, n, factor):
    assert costs.factor(op, n) == factor
    assert costs.bus_bandwidth(op, 1000, 0.5, n) == 2000 * factor


def test_a_part_is_a_share_of_the_whole_and_never_empty():
    assert costs.share("all_reduce", 1024, 4, 3) == (256, 1024)
    assert costs.share("all_gather", 1024, 4, 3) == (85, 1020)
    assert costs.share("all_gather", 1, 4, 3) == (1, 12)
    assert list(costs.sweep(1, 100, 4)) == [1, 4, 16, 64]


@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float64])
def test_sums_of_the_data_are_exact(dtype):
    n = 64
    expected = Buffers.make("all_reduce", 0, n, 500, dtype, torch.device("cpu")).expected()
    total = torch.zeros(500, dtype=torch.int64)
    for rank in range(n):
        buffers = Buffers.make("all_reduce", rank, n, 500, dtype, torch.device("cpu"))
        buffers.fill()
        total += buffers.part.long()
    assert torch.equal(expected.long(), total)


def test_wrong_elements_are_counted():
    want = torch.arange(6.0)
    assert wrong_elements(want, want.clone()) == 0
    assert wrong_elements(want, list(want.split(2))) == 0
    assert wrong_elements(want, torch.tensor([0.0, 9, 2, 9, 4, 5])) == 2
    assert wrong_elements(want, want.double()) == 6
    assert wrong_elements(want, [want, want]) == 6
    assert wrong_elements(want, None) == 6
    assert wrong_elements(None, None) == 0


@pytest.mark.parametrize(
    "text, nbytes", [("512", 512), ("64K", 65536), ("16m", 16 << 20), ("1G", 1 << 30)]
)
def test_units_of_sizes_are_binary(text, nbytes):
    assert bytes_of(text) == nbytes


def test_a_sweep_ends_with_the_largest_size():
    assert list(costs.sweep(1, 64, 4)) == [1, 4, 16, 64]
    assert list(costs.sweep(1, 63, 4)) == [1, 4, 16]


# Taking the time. -----------------------------------------------------------------


def test_the_time_is_the_slowest_ranks_mean_over_the_timed_calls():
    def answer(warmup, iterations):
        from types import SimpleNamespace

        from grader.course.bench import rank

        now, calls = 0.0, 0

        def call():
            nonlocal now, calls
            dist.broadcast(torch.zeros(1), 0)
            calls += 1
            now += 1000.0 if calls <= warmup else calls * (1 + dist.get_rank())

        # a clock that stands still but for these calls
        rank.time = SimpleNamespace(perf_counter=lambda: now)
        return rank.seconds_per_call(call, warmup, iterations, torch.device("cpu"))

    outcome = play(answer, 3, 2, 4, allowed=None)
    # calls 3 to 6 of the last rank, each three times as long as its number
    assert [result.value for result in outcome.results] == [3 * (3 + 4 + 5 + 6) / 4] * 3
    warm, timed = ["broadcast"] * 2, ["broadcast"] * 4
    for operations in outcome.trace.operations:
        assert [op.kind for op in operations] == [*warm, "barrier", *timed, "all_reduce"]


# The table. -----------------------------------------------------------------------


def test_every_collective_of_torch_in_the_layout_of_nccl_tests(tmp_path):
    table, picture = tmp_path / "table.csv", tmp_path / "picture.png"
    # in a new interpreter, as all of them run outside of the tests
    before = our_processes()
    files = ("--csv", str(table), "--plot", str(picture))
    done = subprocess.run(
        [sys.executable, "-m", "grader", "bench", *costs.FACTORS, *QUICK, *files],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\S\n\Z", done.stdout)
    tables = done.stdout.split("\n\n")
    assert len(tables) == len(costs.FACTORS)
    for op, text in zip(costs.FACTORS, tables, strict=True):
        about, counts, names, units, *rows, wrong, average = text.splitlines()
        assert about == f"# {op}, torch's own; ranks: 2, backend: gloo"
        assert counts == "# warmup iters: 1, iters: 2"
        assert names.split() == [
            "#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
        ]  # fmt: skip
        assert units.split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"]
        assert [int(row.split()[0]) for row in rows] == [64, 256, 1024]
        assert {tuple(row.split()[i] for i in (2, 8)) for row in rows} == {("float", "0")}
        adds = op in ("all_reduce", "reduce", "reduce_scatter")
        rooted = op in ("broadcast", "reduce", "scatter", "gather")
        said = ("sum" if adds else "none", "0" if rooted else "-1")
        assert {tuple(row.split()[3:5]) for row in rows} == {said}
        assert wrong == "# Out of bounds values : 0 OK"
        assert re.fullmatch(r"# Avg bus bandwidth    : [\d.e-]+", average)
    with table.open() as file:
        found = list(csv.DictReader(file))
    assert [row["op"] for row in found] == [op for op in costs.FACTORS for _ in range(3)]
    for row in found:
        numbers = (int(row["nbytes"]), float(row["seconds"]))
        assert float(row["algbw"]) == costs.algorithm_bandwidth(*numbers)
        assert float(row["busbw"]) == costs.bus_bandwidth(row["op"], *numbers, 2)
    with Image.open(picture) as image:
        assert min(image.size) > 400
    assert our_processes() == before


def a_row(**others):
    usual = SizeRow(
        "ring_reduce_scatter", "reduce_scatter", 1 << 30, 1 << 28,
        "bfloat16", "sum", -1, 60.0, 2e12, 9999e5, 0,
    )  # fmt: skip
    return replace(usual, **others)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_table_fits_a_terminal_of_80_columns(dtype):
    plan = BenchPlan((), (), warmup=1000, iterations=100_000, backend="gloo", file="answer.py")
    rows = [
        a_row(dtype=dtype),
        a_row(dtype=dtype, redop="none", wrong=99_999_999, seconds=9999.99e-6, algbw=0.1),
    ]
    lines = [*header(plan, rows[0].name, rows[0].op, 64).splitlines(), *map(line, rows)]
    lines += footer(rows).splitlines()
    assert max(map(len, lines)) == 80
    # each name stands over the ends of its numbers
    ends = [match.end() for match in re.finditer(r"\S+", lines[2][1:])]
    for text in lines[4:6]:
        assert [match.end() for match in re.finditer(r"\S+", text[1:])] == ends


def test_a_row_is_in_microseconds_and_decimal_gigabytes():
    texts = line(a_row(seconds=0.0012345, algbw=2.5e9, busbw=1.25e8, wrong=3)).split()
    assert texts[5:] == ["1234.50", "2.50", "0.1250", "3"]
    assert line(a_row(seconds=0.0123456)).split()[5] == "12346"


def test_the_average_is_that_of_the_bus_bandwidths():
    rows = [a_row(busbw=1e9), a_row(busbw=4e9, algbw=0.0)]
    assert footer(rows).endswith(" 2.5")
    plan = BenchPlan((), ())
    found = json.loads(to_json(plan, [*rows, a_row(name="other", busbw=7e9)], 4))
    assert found["average_busbw"] == {"ring_reduce_scatter": 2.5e9, "other": 7e9}


def test_a_number_too_long_for_its_column_stands_apart():
    texts = line(a_row(nbytes=10**20, count=10**20, wrong=10**20)).split()
    assert [texts[0], texts[1], texts[8]] == [str(10**20)] * 3


@pytest.mark.parametrize("chapter", ["01", "02", "03", "04", "05", "06", "07", "08", "11", "12"])
def test_the_exercises_of_a_chapter(bench, chapter, tmp_path):
    import ast

    path = SOLUTIONS[chapter]
    defined = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
    names = [name for name in KIND_OF if name in defined]
    assert names
    done = bench(*names, "--file", path, *QUICK, "--ranks", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["ranks"], found["file"]) == (3, str(path))
    assert list(found["average_busbw"]) == names
    assert len(found["rows"]) == 3 * len(names)
    assert {row["op"] for row in found["rows"]} == {KIND_OF[name] for name in names}
    assert not any(row["wrong"] for row in found["rows"])


def test_sizes_that_are_rounded_to_the_same_are_measured_once(bench):
    sizes = ("--min-bytes", "1", "--max-bytes", "64", "--factor", "2")
    done = bench("all_gather", *QUICK, *sizes, "--dtype", "float64", "--json")
    assert [row["nbytes"] for row in json.loads(done.stdout)["rows"]] == [16, 32, 64]


def test_a_function_of_another_name_and_another_dtype(bench, tmp_path):
    options = of_file(tmp_path, "def mine(x, op):\n    print(1)\n    dist.all_reduce(x, op)\n")
    done = bench("mine", "--like", "all_reduce", "--dtype", "bfloat16", *options)
    assert done.returncode == 0
    assert "# mine (all_reduce), of the file; ranks: 2, backend: gloo\n" in done.stdout
    assert "bfloat16" in done.stdout
    assert "\n1\n" not in done.stdout  # what ranks print is no part of the table


def test_wrong_elements_are_shown_and_fail(bench, tmp_path):
    done = bench("all_gather", *of_file(tmp_path, "def all_gather(x):\n    return [x, x + 1]\n"))
    assert done.returncode == 1
    # rank 0 holds x and x + 1, and so does rank 1: its own part stands in the wrong place
    wrong = [int(row.split()[-1]) for row in done.stdout.splitlines() if row[:1] == " "]
    assert len(wrong) == 3
    assert min(wrong) > 0
    assert f"# Out of bounds values : {sum(wrong)} FAILED" in done.stdout


#: Each gives the result of the first call of its size again and again.
STALE = """
kept = {}

def all_gather(x):
    if len(x) not in kept:
        kept[len(x)] = [torch.empty_like(x), torch.empty_like(x)]
        dist.all_gather(kept[len(x)], x)
    return kept[len(x)]

def all_reduce_rooted(x, op):
    if len(x) not in kept:
        kept[len(x)] = x.clone()
        dist.all_reduce(kept[len(x)], op)
    x.copy_(kept[len(x)])

def scatter(x, parts, src):
    if len(x) not in kept:
        kept[len(x)] = x
        dist.scatter(x, parts, src)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, held", [("all_gather", 2), ("all_reduce_rooted", 2), ("scatter", 1)]
)
def test_a_result_of_an_earlier_call_is_wrong_in_every_element(bench, tmp_path, name, held):
    done = bench(name, *of_file(tmp_path, STALE), "--json")
    assert (done.returncode, done.stderr) == (1, "")
    for row in json.loads(done.stdout)["rows"]:
        # ``held`` times the whole tensor is what the ranks hold together
        assert row["wrong"] == held * row["nbytes"] // 4


# What goes wrong in a rank. -------------------------------------------------------

FAILURES = [
    ("if dist.get_rank() == 1:\n        raise ValueError('no')", "rank 1, line 6: ValueError: no"),
    ("raise NotImplementedError", "rank 0, line 5: still raises NotImplementedError"),
    ("if dist.get_rank() == 1:\n        os._exit(3)", "rank 1: the process exits with status 3"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "rank 0: the process is killed by SIGSEGV"),
    ("x.fill_(undefined)", "rank 0, line 5: NameError: name 'undefined' is not defined"),
]


@pytest.fixture(scope="module")
def failed(together, tmp_path_factory):
    """Failing commands by what each is to say.  They wait for other causes at the same time."""
    commands = []
    for body, _ in FAILURES:
        source = f"def broadcast(x, src):\n    {body}\n    dist.broadcast(x, src)\n"
        options = of_file(tmp_path_factory.mktemp("failing"), source)
        commands.append(("grader", "bench", "broadcast", *options))
    said = [said for _, said in FAILURES]
    return dict(zip(said, together(*commands), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("said", [said for _, said in FAILURES])
def test_a_failure_names_rank_and_line(failed, said):
    done = failed[said]
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.rstrip() == f"grader: {said}"


@pytest.mark.slow
def test_a_hang_names_where_every_rank_is(bench, tmp_path):
    source = (
        "def broadcast(x, src):\n"
        "    if dist.get_rank() == 1:\n"
        "        while True:\n"
        "            pass\n"
        "    dist.broadcast(x, src)\n"
        "    dist.barrier()\n"
    )
    before = our_processes()
    # less than the minute that is usual: it is --timeout that counts
    done = bench("broadcast", *of_file(tmp_path, source), "--timeout", "3")
    assert done.returncode == 1
    found = re.fullmatch(
        r"grader: no end of broadcast of 64 bytes after 3 s:"
        r" rank 0 is at line [89], rank 1 is at line [67]\n",
        done.stderr,
    )
    assert found, done.stderr
    assert our_processes() == before


@pytest.mark.slow
def test_ranks_that_cannot_meet_say_why(bench, torchrun):
    nowhere = {"GLOO_SOCKET_IFNAME": "nowhere0"}
    why = "Unable to find address for: nowhere0 (GLOO_SOCKET_IFNAME is nowhere0)\n"
    for done in (
        bench("all_reduce", *QUICK, **nowhere),
        torchrun("all_reduce", *QUICK[2:], **nowhere),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert re.search(
            rf"^grader: rank \d: cannot reach the other ranks: .*{re.escape(why)}",
            done.stderr,
            re.M,
        )
        assert "grader/course/bench" not in done.stderr


#: Two ranks; rank 1 is late in joining.
LATE = """
import gc, os, sys, time
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
import torch.distributed as dist
from grader.course.bench.plan import plan_of
from grader.course.bench.rank import take_part

path, marker, meeting = sys.argv[1:]
gc.freeze()
child = os.fork()
rank = "0" if child else "1"
os.environ.update(RANK=rank, WORLD_SIZE="2", LOCAL_RANK=rank)
join = dist.init_process_group

def late(*arguments, **names):
    join(*arguments, **names)
    if rank == "1":
        time.sleep(0.5)
        open(marker, "w").close()

dist.init_process_group = late
plan = plan_of(["broadcast"], [64], file=path, like=None, timeout=50.0, iterations=1)
store = dist.FileStore(meeting, 2)
take_part(plan, lambda row: None, lambda complaint: sys.exit(str(complaint)), store)
if child:
    sys.exit(os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.slow
def test_nobody_begins_before_all_have_joined(tmp_path):
    """Or the first to fail would break what others are still setting up, and they complain."""
    marker = tmp_path / "joined"
    source = f"""
def broadcast(x, src):
    if not os.path.exists({str(marker)!r}):
        raise RuntimeError("too early")
    dist.broadcast(x, src)
"""
    _, path, *_ = of_file(tmp_path, source)
    done = subprocess.run(
        [sys.executable, "-c", LATE, path, marker, tmp_path / "store"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")


# Under torchrun. ------------------------------------------------------------------


def test_under_torchrun_rank_0_prints_one_table(torchrun):
    done = torchrun("all_reduce", *QUICK[2:], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["ranks"], len(found["rows"])) == (2, 3)
    assert not any(row["wrong"] for row in found["rows"])


def test_under_torchrun_a_failure_is_one_line_without_a_traceback_of_ours(torchrun, tmp_path):
    source = (
        "def reduce(x, dst, op):\n    if dist.get_rank() == 1:\n        raise ValueError('no')\n"
    )
    _, path, *_ = of_file(tmp_path, source)
    done = torchrun("reduce", "--file", path, *QUICK[2:])
    assert done.returncode == 1
    assert "grader: rank 1, line 6: ValueError: no\n" in done.stderr
    assert "grader/course/bench" not in done.stderr


def test_under_torchrun_a_wrong_request_is_said_once(torchrun):
    done = torchrun("reduse", *QUICK[2:])
    assert done.returncode != 0
    assert done.stderr.count("grader: 'reduse' is nothing to measure") == 1


# Requests that are wrong. ---------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, text",
    [
        ([], "NAME"),
        (["reduse"], "'reduse' is nothing to measure; known are all_reduce"),
        (["ring_all_reduce"], "say whose with --file FILE"),
        (["all_reduce", "--like", "broadcast"], "--file FILE"),
        (["broadcast", "--file", "none.py"], "none.py does not exist"),
        (["gather", "--file", "answer.py"], "answer.py does not define gather"),
        (["reduce", "--file", "broken.py"], "line 1"),
        (["mine", "--file", "answer.py"], "--like"),
        (["all_reduce", "--ranks", "0"], "not '0'"),
        (["all_reduce", "--ranks", "65"], "1 to 64, not 65"),
        (["all_reduce", "--min-bytes", "0"], "not '0'"),
        (["all_reduce", "--max-bytes", "1T"], "such as 512, 64K, 16M or 1G, not '1T'"),
        (["all_reduce", "--min-bytes", "2K", "--max-bytes", "1K"], "no size to measure"),
        (["all_reduce", "--factor", "1"], "--factor must be 2 or more"),
        (["all_reduce", "--dtype", "float8"], "invalid choice: 'float8'"),
        (["all_reduce", "--backend", "nccl"], "torchrun"),
        (["all_reduce", "--csv", "."], "cannot be written"),
        (["all_reduce", "--plot", "none/a.png"], "cannot be written"),
        (["all_reduce", "--plot", "a.gif"], "no picture"),
        (["send_recv", "--ranks", "1"], "needs two ranks"),
    ],
)
def test_a_wrong_request_gets_one_clear_line(tmp_path, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answer.py").write_text("def mine(x, op):\n    pass\n")
    (tmp_path / "broken.py").write_text("def reduce(x:\n")
    assert main(["bench", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("grader: ")
    assert said.err.count("\n") == 1
    assert text in said.err


def test_a_machine_without_a_gpu_says_so(monkeypatch, capsys):
    if torch.cuda.is_available():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert main(["bench", "all_reduce", "--backend", "nccl"]) == 2
    assert "nccl needs a GPU" in capsys.readouterr().err
