"""What chapter 18 says of torch's profiler, and of mistakes that its exercises must tell apart."""

from __future__ import annotations

import json
import statistics

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from benchmarks import kernels as record
from grader.api import catalogue
from grader.course.chapters.ch18_profiling import LAUNCH, self_times

PLAN = schedule(wait=1, warmup=3, active=2, repeat=1)


def test_a_schedule_records_two_of_six_steps():
    names = ["NONE", "WARMUP", "WARMUP", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    assert [PLAN(step).name for step in range(8)] == names
    with profile(activities=[ProfilerActivity.CPU], schedule=PLAN) as prof:
        for _ in range(6):
            torch.nn.functional.layer_norm(torch.ones(4, 4), (4,))
            prof.step()
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts["aten::layer_norm"] == counts["aten::native_layer_norm"] == 2


def test_a_layer_norm_calls_the_native_one_which_allocates_what_backward_wants(tmp_path):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        torch.nn.functional.layer_norm(torch.ones(1000, 1000), (1000,))
    inner = next(event for event in prof.events() if event.name == "aten::native_layer_norm")
    assert inner.cpu_parent.name == "aten::layer_norm"
    memory = {row.key: row.cpu_memory_usage for row in prof.key_averages()}
    assert memory["aten::native_layer_norm"] == 4 * 1000 * 1000 + 2 * 4 * 1000
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    spans = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"name", "ts", "dur", "tid"} <= set(next(s for s in spans if s.get("cat") == "cpu_op"))


@pytest.mark.parametrize("seed", range(5))
def test_no_two_ways_to_average_give_the_same(seed):
    for case in catalogue()["time_kernel"].cases(seed, 1):
        times = case.seconds[case.warmup :]
        if len(times) > 1:
            ways = (statistics.median, statistics.mean, min, max, sum)
            assert len({way(times) for way in ways}) == len(ways)
        assert min(times) > LAUNCH


@pytest.mark.parametrize("seed", range(5))
def test_the_middle_of_times_that_are_not_sorted_is_nothing_else(seed):
    cases = catalogue()["time_kernel"].cases(seed, 1)
    # the times of the judge's own cases are drawn as the calls are made
    tried = [case for case in cases if case.iterations > 4 and case.where != "judge"]
    assert {case.where for case in tried} == {"cpu", "cuda", "last"}
    for case in tried:
        times = case.seconds[case.warmup :]
        others = [*map(statistics.median, (times, case.seconds)), min(times), max(times)]
        assert times[len(times) // 2] not in others


@pytest.mark.parametrize("seed", range(5))
def test_no_two_operators_are_equally_hot_unless_that_is_what_is_tried(seed):
    for case in catalogue()["hottest_ops"].cases(seed, 1):
        times = sorted(self_times(case).values(), reverse=True)
        # where the list ends, there must be no doubt
        if 0 < case.k < len(times):
            assert times[case.k - 1] > times[case.k]
        # one that is quicker than the clock takes 0 µs
        assert all(time >= 0 for time in times)


@pytest.mark.skipif(torch.cuda.is_available(), reason="it would record")
def test_nothing_is_recorded_without_a_gpu(capsys, monkeypatch, tmp_path):
    # not where the chapter looks: what was recorded on a GPU may be there
    monkeypatch.setattr(record, "RECORD", tmp_path / "recorded" / "kernels.json")
    assert record.main([]) == 1
    assert "nothing was recorded" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
