"""``simulate``: from notebooks, from the command line, and in a check."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import grader
from grader.api import catalogue
from grader.api.simulate import cluster_of, simulate, simulate_answer
from grader.cli.main import main
from grader.course.costs import ring_all_reduce_seconds
from grader.judge.judge import Judge, Settings
from grader.judge.simulated_checks import grown
from grader.report.text import exercise_report
from grader.submission.submission import Submission
from headcount.core.errors import RequestError, RunFailed
from headcount.core.verdict import Diagnosis
from headcount.launch.frame_channel import FrameChannel
from headcount.launch.launchers import default_launcher
from headcount.report import plain
from headcount.simulation.clusters import Flat, Nodes

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = ROOT / "grader/course/answers/11_ring_all_reduce/right/ring_all_reduce_isend_recv.py"
TOO_MUCH = ROOT / "grader/course/answers/11_ring_all_reduce/ring_all_reduce_whole_on_many.py"
SIXTY_FOUR = (
    ROOT / "grader/course/answers/11_ring_all_reduce/ring_all_reduce_room_for_sixty_four.py"
)


@pytest.fixture
def command(capsys):
    """Serve a request of the command line: its exit status, and what it said."""

    def serve(*arguments):
        status = main(["simulate", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return serve


def pass_on():
    """Everybody's rank, one place to the right."""
    rank, n = dist.get_rank(), dist.get_world_size()
    got = torch.empty(1)
    request = dist.isend(torch.full((1,), float(rank)), (rank + 1) % n)
    dist.recv(got, (rank - 1) % n)
    request.wait()
    return int(got.item())


def test_results_in_rank_order_and_what_they_took():
    found = simulate(pass_on, 100, alpha=2e-6, beta=1e-9)
    assert list(found) == [(rank - 1) % 100 for rank in range(100)]
    assert (found.ranks, found.messages, found.bytes) == (100, 100, 400)
    assert found.seconds == 2.004e-6
    assert repr(found) == "100 simulated ranks: 2.004 µs, 100 messages, 400 bytes"


def test_it_is_exported():
    assert grader.simulate is simulate


def test_messages_of_few_ranks_are_recorded_and_of_many_if_asked():
    trace = simulate(pass_on, 16).trace
    assert [(m.source, m.destination) for m in trace.messages] == [
        (rank, (rank + 1) % 16) for rank in range(16)
    ]
    with pytest.raises(RequestError, match="record=True"):
        _ = simulate(pass_on, 17).trace
    assert simulate(pass_on, 17, record=True).trace.traffic.messages == 17
    with pytest.raises(RequestError, match="record=True"):
        _ = simulate(pass_on, 4, record=False).trace


def test_replay_and_timeline_take_it():
    found = simulate(pass_on, 4)
    assert "0→1" in repr(grader.replay(found))
    assert "send to 1" in repr(grader.timeline(found))


@pytest.mark.parametrize(("eager", "status"), [(-1, 1), (0, 1), (1000, 0)])
def test_an_answer_may_rely_on_eager_sends_and_on_none(command, tmp_path, eager, status):
    (tmp_path / "answer.py").write_text(
        "import torch\nimport torch.distributed as dist\n"
        "def exchange(x, peer):\n"
        "    got = x.clone()\n"
        "    if peer != dist.get_rank():\n"
        "        dist.send(x, peer)\n"
        "        dist.recv(got, peer)\n"
        "    return got\n"
    )
    arguments = (tmp_path / "answer.py", "exchange", "--ranks", 2, "--eager", eager)
    assert command(*arguments)[0] == status


def test_what_ranks_print_is_shown(capsys):
    def speak():
        print(f"I am {dist.get_rank()}")

    simulate(speak, 3)
    assert capsys.readouterr().out == "I am 0\nI am 1\nI am 2\n"


def test_a_failed_run_raises_unless_it_may_fail():
    def stuck():
        dist.recv(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())

    with pytest.raises(RunFailed, match=r"deadlock: .*rank 0 waits to receive from rank 1"):
        simulate(stuck, 3)
    failed = simulate(stuck, 3, may_fail=True)
    assert failed.failure.diagnosis is Diagnosis.DEADLOCK
    assert "deadlock" in repr(failed)
    with pytest.raises(RunFailed):
        list(failed)


def test_eager_sends_hide_a_deadlock():
    def head_to_head():
        peer, got = 1 - dist.get_rank(), torch.empty(4)
        dist.send(torch.ones(4), peer)
        dist.recv(got, peer)

    assert simulate(head_to_head, 2, may_fail=True).failure.diagnosis is Diagnosis.DEADLOCK
    assert simulate(head_to_head, 2, eager=16).failure is None
    assert simulate(head_to_head, 2, eager=15, may_fail=True).failure is not None


def test_collectives_run_by_the_algorithm_that_is_named():
    def total():
        x = torch.ones(64)
        dist.all_reduce(x)
        return x[0].item()

    ring = simulate(total, 64, algorithms={"all_reduce": "ring"})
    assert set(ring) == {64.0}
    assert ring.seconds == pytest.approx(ring_all_reduce_seconds(64, 256, 1e-6, 1e-10), rel=1e-12)
    doubling = simulate(total, 64, algorithms={"all_reduce": "recursive_doubling"})
    assert doubling.messages == 64 * 6
    with pytest.raises(RequestError, match="recursive_doubling"):
        simulate(total, 4, algorithms={"all_reduce": "rings"})


def test_clusters_by_name_by_file_and_by_description(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"type": "flat", "alpha": 1.0, "beta": 0.0}')
    assert simulate(pass_on, 4, cluster=str(file)).seconds == 1.0
    assert simulate(pass_on, 4, cluster=Flat(2.0, 0.0)).seconds == 2.0
    inside = Nodes(4, alpha_inside=1.0, beta_inside=0.0, alpha_between=8.0, beta_between=0.0)
    assert simulate(pass_on, 4, cluster=inside).seconds == 1.0
    assert simulate(pass_on, 8, cluster=inside).seconds == 8.0
    assert simulate(pass_on, 16, cluster="dgx-h100").seconds > 0


@pytest.mark.parametrize(
    ("ranks", "options", "text"),
    [
        (0, {}, "1 to 65,536 ranks, not 0"),
        (True, {}, "not True"),
        (2.0, {}, "not 2.0"),
        (2, {"cluster": "dgx-h100", "alpha": 1.0}, "has its own alpha and beta"),
        (2, {"cluster": "dgx-h10"}, "did you mean dgx-h100"),
        (2, {"alpha": -1.0}, "at least 0"),
    ],
)
def test_requests_that_make_no_sense(ranks, options, text):
    with pytest.raises(RequestError, match=text):
        simulate(pass_on, ranks, **options)


def test_an_answer_on_the_command_line(command):
    status, said, _ = command(ACCEPTED, "ring_all_reduce", "--ranks", 32, "--seed", 5)
    assert status == 0
    assert said.startswith("ring_all_reduce on 32 simulated ranks, α = 1e-06 s, β = 1e-10 s/byte\n")
    assert "✓ SUM of one number a chunk: right" in said
    assert "elements sent by one rank: 62 (at most 62)" in said
    # one number of eight bytes a chunk
    assert "virtual time  62.05 µs" in said
    assert "messages      1,984" in said
    assert said.rstrip().endswith("(seed 5)")
    assert max(map(len, said.splitlines())) <= 80


def test_the_same_as_json(command):
    status, said, _ = command(
        *(ACCEPTED, "ring_all_reduce", "--ranks", 8, "--json", "--seed", 1),
        *("--alpha", 1, "--beta", 0.5),
    )
    found = json.loads(said)
    assert status == 0
    assert list(found) == [
        "schema_version", "grader_version", "exercise", "ranks", "seed", "cluster", "passed",
        "seconds", "messages", "bytes", "cases",
    ]  # fmt: skip
    assert found["cluster"] == {"type": "flat", "alpha": 1.0, "beta": 0.5}
    assert (found["passed"], found["ranks"], found["seed"]) == (True, 8, 1)
    assert found["seconds"] == 14 * (1 + 0.5 * 8)
    assert found["messages"] == 8 * 14
    assert {case["name"] for case in found["cases"]} == {
        "SUM of one number a chunk (simulated)",
        "messages to ranks that are not neighbours (simulated)",
        "elements sent by one rank (simulated)",
    }


def test_a_wrong_answer_on_the_command_line(command):
    status, said, _ = command(TOO_MUCH, "ring_all_reduce", "--ranks", 32)
    assert status == 1
    assert "✗ elements sent by one rank: too many bytes" in said
    status, said, _ = command(SIXTY_FOUR, "ring_all_reduce", "--ranks", 65)
    assert status == 1
    assert "exception" in said
    assert "IndexError" in said
    assert "virtual time" not in said
    failed = json.loads(command(SIXTY_FOUR, "ring_all_reduce", "--ranks", 65, "--json")[1])
    assert (failed["passed"], failed["seconds"]) == (False, None)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((ACCEPTED, "ring_all_redcue", "--ranks", 4), "ring_all_reduce"),
        ((ACCEPTED, "broadcast", "--ranks", 4), "does not define broadcast"),
        (("nowhere.py", "broadcast", "--ranks", 4), "nowhere.py"),
        ((ACCEPTED, "ring_all_reduce"), "--ranks"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", "many"), "'many'"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", 4, "--algorithm", "ring"), "COLLECTIVE=NAME"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", 4, "--algorithm", "a=ring"), "all_reduce"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", 99999), "65,536"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", 4, "--eager", "-5"), "from -1 on"),
        ((ACCEPTED, "ring_all_reduce", "--ranks", 4, "--eager", "all"), "'all'"),
    ],
)
def test_requests_of_the_command_line_that_make_no_sense(command, arguments, text):
    status, said, complaint = command(*arguments)
    assert (status, said) == (2, "")
    assert text in complaint
    assert len(complaint.splitlines()) == 1


def judged(path, **settings):
    exercise = catalogue()["ring_all_reduce"]
    submission = Submission.from_file(path, catalogue())
    judge = Judge(default_launcher(), Settings(3, **settings))
    return judge.judge(exercise, submission)


@pytest.mark.exhaustive
def test_a_check_goes_on_to_many_simulated_ranks():
    verdict = judged(ACCEPTED)
    assert verdict.passed
    simulated = [case for case in verdict.cases if case.simulated]
    assert [case.world_size for case in simulated] == [67] * 4
    bounds = {case.name: case.bounds[0].measured for case in simulated if case.bounds}
    assert "rounds" not in bounds
    assert bounds["elements sent by one rank"] == 132
    report = plain(exercise_report(verdict))
    assert "8 ranks, and 67" in " ".join(report.split())
    assert "On 67 simulated ranks: " in report


def test_only_sizes_that_were_asked_for_are_judged():
    verdict = judged(ACCEPTED, world_sizes=(2,))
    assert {case.world_size for case in verdict.cases} == {2}


def test_what_fails_on_many_ranks_only():
    verdict = judged(TOO_MUCH)
    assert verdict.diagnosis is Diagnosis.TOO_MANY_BYTES
    assert verdict.message.startswith("67 simulated ranks, SUM of one number a chunk: ")
    assert all(case.passed for case in verdict.cases if not case.simulated)
    assert 0 < verdict.score < verdict.max_score


def test_a_check_takes_no_longer_frames_from_many_ranks_than_from_few(monkeypatch):
    taken = []
    monkeypatch.setattr(FrameChannel, "limit", lambda self, longest, *_: taken.append(longest))
    exercise = catalogue()["ring_all_reduce"]
    program = Submission.from_file(ACCEPTED).program
    settings = Settings(3, answer=1 << 20)
    verdicts = grown(default_launcher(), exercise, program, settings, 60.0, None)
    assert all(verdict.passed for verdict in verdicts)
    assert max(taken) < 64 << 20


def test_what_fails_on_real_ranks_is_not_simulated():
    wrong = ROOT / "grader/course/answers/11_ring_all_reduce/ring_all_reduce_rooted_no_answer.py"
    verdict = judged(wrong)
    simulated = [case for case in verdict.cases if case.simulated]
    assert len(simulated) == 4
    assert all(case.message.startswith("not run: ") for case in simulated)


@pytest.mark.exhaustive
def test_as_many_cases_whether_it_is_right_or_not():
    wrong = ROOT / "grader/course/answers/11_ring_all_reduce/ring_all_reduce_rooted_no_answer.py"
    assert len(judged(wrong).cases) == len(judged(ACCEPTED).cases)


@pytest.mark.parametrize("record", [True, False])
def test_a_port_sends_first_what_was_posted_first(record):
    def two_at_once():
        rank = dist.get_rank()
        if rank == 0:
            # rank 1 runs before rank 2, and must not get its message first for that
            requests = [dist.isend(torch.zeros(1), 2), dist.isend(torch.zeros(1), 1)]
            for request in requests:
                request.wait()
        else:
            dist.recv(torch.zeros(1), 0)
        return time.perf_counter()

    assert list(simulate(two_at_once, 3, alpha=1.0, beta=0.0, record=record)) == [2.0, 2.0, 1.0]


# Any exercise, as `python -m grader simulate` takes them. ------------------------------


def simulated(name, ranks):
    exercise = catalogue()[name]
    solution = ROOT / "solutions" / f"{exercise.chapter}.py"
    flat = cluster_of(None, None, None)
    grown = simulate_answer(str(solution), exercise, catalogue(), ranks, flat, seed=1)
    return [verdict.message for verdict in grown.verdicts if not verdict.passed]


@pytest.mark.parametrize(
    ("name", "ranks", "why"),
    [
        ("ring_all_reduce_seconds", 4, "runs on one rank"),
        ("barrier", 4, "judged by what real ranks do, and when"),
        ("sum_of_survivors", 4, "judged by what becomes of real ranks"),
        ("train", 6, "has no input for 6 ranks; it has for 1, 2, 8"),
    ],
)
def test_what_simulated_ranks_cannot_show_is_refused(name, ranks, why):
    with pytest.raises(RequestError, match=why):
        simulated(name, ranks)


def test_limits_that_need_the_record_of_real_ranks_are_left_to_check():
    assert simulated("ping_pong", 2) == simulated("DiLoCo", 3) == []


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_courses_own_answers_are_right_on_simulated_ranks_or_refused():
    wrong = {}
    for name in catalogue():
        with contextlib.suppress(RequestError):
            wrong[name] = simulated(name, 6)
    assert len(wrong) > 40
    assert {name: messages for name, messages in wrong.items() if messages} == {}
