"""check and run in a real Jupyter kernel."""

from __future__ import annotations

import re
import time

import psutil
import pytest

from tests.kernels import start_kernel

IMPORTS = """
import torch, torch.distributed as dist
from grader import check, hint, run
"""

BROADCAST = """
def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
"""


#: One worker has the kernel.
pytestmark = pytest.mark.xdist_group("kernel")


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_kernel()
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


class Kernel:
    def __init__(self, manager, client):
        self.manager = manager
        self.client = client
        self.process = psutil.Process(manager.provisioner.pid)

    def execute(self, code, **settings):
        """Run a cell; its printed text, its value by mime type, its error."""
        found = {"stream": "", "data": {}, "error": None, "shown": []}

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                found["stream"] += content["text"]
            elif message["msg_type"] in (
                "execute_result",
                "display_data",
                "update_display_data",  # what takes long is shown in the place of its count
            ):
                found["data"] = content["data"]
                found["shown"].append((message["msg_type"], content["data"].get("text/plain")))
            elif message["msg_type"] == "error":
                found["error"] = content

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=60, **settings)
        assert reply["content"]["status"] != "aborted", reply  # as after an error in another cell
        return found

    def wait_until_idle(self, request):
        """Wait until a cell is over; until then, a cell sent after one that failed is aborted."""
        while True:
            message = self.client.get_iopub_msg(timeout=30)
            state = message["content"].get("execution_state")
            if message["parent_header"].get("msg_id") == request and state == "idle":
                return

    def ranks(self):
        """Descendants of the kernel's fork server."""
        return [
            p
            for p in self.process.children(recursive=True)
            if p.ppid() != self.process.pid and p.status() != psutil.STATUS_ZOMBIE
        ]


def test_a_verdict_is_shown_as_html_and_as_the_same_text(kernel):
    kernel.execute(IMPORTS)
    found = kernel.execute(BROADCAST + "check(broadcast)")
    assert found["error"] is None
    assert found["stream"] == ""
    assert "✓ broadcast passed: 60 cases" in found["data"]["text/plain"]
    assert "<strong>broadcast</strong> passed: 60 cases" in found["data"]["text/html"]


ALWAYS_RANK_0 = """
def broadcast(x, src):
    if dist.get_rank() == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)
"""


def test_wrong_values_are_shown_where_they_go_wrong_and_the_same_every_time(kernel):
    kernel.execute(IMPORTS)
    found = [kernel.execute(ALWAYS_RANK_0 + "check(broadcast, seed=1)")["data"] for _ in range(2)]
    html = found[0]["text/html"]
    assert html == found[1]["text/html"]
    assert "holds A0, in the solution B0" in html  # for those who do not see the picture
    assert html.count("data:image/svg+xml") == 1
    assert "Show the answer" in html
    # a verdict is kept in the notebook, so that it must not be large
    assert len(html.encode()) < 60_000


#: It takes longer than the count waits: half a second at the least.
SLOW = "import time\n" + BROADCAST + "    time.sleep(0.15)\n"


def test_a_long_check_counts_its_cases_and_leaves_the_verdict_alone(kernel):
    kernel.execute(IMPORTS)
    found = kernel.execute(SLOW + "check(broadcast, world_sizes=[2])")
    first, *further = found["shown"]
    assert first[0] == "display_data"  # the one output that is saved
    assert {kind for kind, _ in further} == {"update_display_data"}
    counts = [text for _, text in found["shown"][:-2]]
    assert all(re.fullmatch(r"broadcast: (starting|\d+ of 10 cases)", text) for text in counts)
    assert found["shown"][-2][1] is None  # nothing is left where the value is not displayed
    assert found["shown"][-1][1].startswith("✓ broadcast passed: 10 cases")


def test_a_count_is_taken_away_where_the_verdict_is_not_displayed(kernel):
    kernel.execute(IMPORTS)
    found = kernel.execute(SLOW + "kept = check(broadcast, world_sizes=[2])")
    assert found["shown"][-1] == ("update_display_data", None)
    ((kind, text),) = kernel.execute("kept")["shown"]
    assert kind == "execute_result"
    assert text.startswith("✓ broadcast passed")


def test_a_notebook_that_a_program_runs_shows_no_count(kernel):
    """Its outputs are kept and compared: nbval, nbclient and nbgrader take no input."""
    kernel.execute(IMPORTS)
    found = kernel.execute(SLOW + "check(broadcast, world_sizes=[2])", allow_stdin=False)
    assert [kind for kind, _ in found["shown"]] == ["execute_result"]


def test_lines_are_those_of_the_cell(kernel):
    kernel.execute(IMPORTS)
    code = "def broadcast(x, src):\n    y = 1\n    raise ValueError('here')\n\ncheck(broadcast)"
    found = kernel.execute(code)
    assert "rank 0, line 3: ValueError: here" in found["data"]["text/plain"]


def test_a_run_that_raises_quotes_every_line_on_the_way_from_the_cells(kernel):
    kernel.execute(IMPORTS)
    kernel.execute("def helper(x):\n    return {}['no <b>']")
    found = kernel.execute("def f():\n    return helper(1)\n\nrun(f, 2)")
    head, *frames = found["data"]["text/plain"].splitlines()
    assert head == "✗ exception: rank 0, line 2: KeyError: 'no <b>'"
    assert [re.sub(r"\d+\]", "*]", frame) for frame in frames] == [
        "    In [*], line 2, in f:  return helper(1)",
        "    In [*], line 2, in helper:  return {}['no <b>']",
    ]
    numbers = [int(re.search(r"\[(\d+)\]", frame)[1]) for frame in frames]
    assert numbers[0] == numbers[1] + 1

    shown = kernel.execute("run(f, 2, may_fail=True)")["data"]
    assert "line 2, in helper:  return {}['no <b>']" in shown["text/plain"]
    assert "line 2, in helper:  return {}[&#x27;no &lt;b&gt;&#x27;]" in shown["text/html"]


def test_a_failed_run_is_the_same_card_whether_it_may_fail_or_not(kernel):
    kernel.execute(IMPORTS)
    kernel.execute("def f():\n    dist.recv(torch.ones(1), 1 - dist.get_rank())")
    shown = kernel.execute("run(f, 2, may_fail=True)")["data"]
    assert "<img" in shown["text/html"]  # who waits for whom
    found = kernel.execute("print('before'); run(f, 2)")
    assert found["data"] == shown
    assert [kind for kind, _ in found["shown"]] == ["display_data"]
    # the cell has failed, and says no more than that
    assert found["error"]["traceback"] == ["RunFailed: deadlock, as shown above"]
    assert "rank 0 waits to receive from rank 1" in found["error"]["evalue"]
    for asked in ("failed[0]", "replay(lambda: [][0], 2)"):
        kernel.execute("from grader import replay\nfailed = run(f, 2, may_fail=True)")
        found = kernel.execute(asked)
        assert "✗" in found["data"]["text/plain"]
        assert found["error"]["traceback"][0].endswith(", as shown above")
    # who catches it shows it as they like
    found = kernel.execute("try:\n    run(f, 2)\nexcept Exception as error:\n    print(error)")
    assert found["shown"] == []
    assert found["stream"].startswith("deadlock: rank 0 waits to receive")


def test_a_deadlock_in_a_cell_quotes_its_lines(kernel):
    kernel.execute(IMPORTS)
    code = (
        "def f():\n    x, other = torch.ones(1), 1 - dist.get_rank()\n"
        "    dist.recv(x, other)\n\nrun(f, 2, may_fail=True)"
    )
    shown = kernel.execute(code)["data"]
    assert "    line 3:  dist.recv(x, other)" in shown["text/plain"].splitlines()
    assert "line 3:  dist.recv(x, other)</pre>" in shown["text/html"]


def test_errors_have_no_traceback_of_ours(kernel):
    kernel.execute(IMPORTS)
    found = kernel.execute("def nothing(): ...\ncheck(nothing)")
    assert found["error"]["traceback"] == [
        "UnknownExercise: there is no exercise named 'nothing'; `python -m grader list` shows"
        " them all."
    ]


def test_stop_leaves_no_process_and_the_next_check_works(kernel):
    kernel.execute(IMPORTS + BROADCAST)
    children = kernel.process.children()
    server = next(p for p in children if "headcount.server.fork_server" in p.cmdline())
    request = kernel.client.execute(
        "def forever():\n    while True: pass\nrun(forever, 3, seconds=100)"
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        spinning = [p for p in kernel.ranks() if p.cpu_times().user > 0.2]
        if len(spinning) == 3:
            break
        time.sleep(0.02)
    assert len(spinning) == 3
    everyone = [*kernel.ranks(), server]

    kernel.manager.interrupt_kernel()
    reply = kernel.client.get_shell_msg(timeout=30)
    assert reply["content"]["ename"] == "Stopped"
    assert reply["content"]["traceback"] == ["Stopped: every rank has been ended"]
    kernel.wait_until_idle(request)
    _, alive = psutil.wait_procs(everyone, timeout=10)
    assert alive == []

    found = kernel.execute("check(broadcast, world_sizes=[2])")
    assert found["error"] is None
    assert "✓ broadcast" in found["data"]["text/plain"]
    assert kernel.ranks() == []


@pytest.mark.slow
def test_shutting_the_kernel_down_ends_its_server():
    manager, client = start_kernel()
    kernel = Kernel(manager, client)
    kernel.execute(IMPORTS + "run(dist.get_rank, 2)")
    everyone = kernel.process.children(recursive=True)
    assert everyone
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    _, alive = psutil.wait_procs(everyone, timeout=10)
    assert alive == []


def test_the_first_check_does_not_wait_for_the_import_to_begin(kernel):
    """The server starts with the import: by the first cell that checks, it is there."""
    kernel.execute("%reset -f")
    found = kernel.execute(
        "import grader, headcount.launch.launchers as launch\nlaunch._current is not None"
    )
    assert found["data"]["text/plain"] == "True"
