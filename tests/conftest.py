"""What the tests share."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator, Iterator

import psutil
import pytest
import torch
from hypothesis import settings

from support.processes import heed_interrupts, our_processes

# A deadline is wall clock, and a busy machine may take a turn away in the middle of an example.
# All else is as it was, under CI as well.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


# Several tests run at a time, and threads that wait for each other at the end of every small
# operation lose their turns to the other tests: a second of work became two minutes.
torch.set_num_threads(1)

heed_interrupts()


#: In those of the process that makes sandboxes, and of the sandboxes.
_NEST = "grader.sandbox.server"


def _makes_sandboxes(process: psutil.Process, command: str) -> bool:
    """Return whether a process makes sandboxes; what it has made is not idle."""
    return _NEST in command and (
        command.startswith("bwrap ") or psutil.Process(process.ppid()).name() == "bwrap"
    )


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """The test leaves no process behind."""
    before = set(our_processes(_makes_sandboxes))
    yield
    assert set(our_processes(_makes_sandboxes)) <= before


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among thousands of tests and the modules that they import.

    That would be a third of what collecting takes, and be done again while the tests run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: What ``make test`` leaves to CI, besides what is marked ``exhaustive`` where it stands: files of
#: tests that take long and concern one part alone.
EXHAUSTIVE = (
    *("browser/", "test_dask.py", "test_engines.py", "test_grade.py", "test_hostile.py"),
    *("test_bench.py", "test_hash_seeds.py", "test_kernel.py", "test_sandbox_pool.py"),
    *("test_sandbox_view.py", "test_ladders.py", "test_mpi.py", "test_native.py"),
    *("test_nbgrader.py", "test_release.py", "test_scoring.py", "test_skeleton.py"),
    "test_assignment.py::test_an_assignment_from",
    "test_assignment.py::test_exercises_on",
    "test_cli.py::test_an_answer_imports",
    "test_hangs.py::test_run_check_and_simulate_say_the_same",
    "test_install.py::test_a_wheel_runs",
    "test_instrumentation.py::test_what_was_compiled",
    "test_instrumentation.py::test_what_asks_for_more_of_the_compiler",
    "test_marking.py::test_a_kill_loses",
    "test_marking.py::test_a_verdict_is_repeated",
    "test_mutations.py::test_the_list_of_equivalent",
    "test_outputs_gradescope.py::test_a_submission_is_graded",
    "test_private_apis.py::test_every_entry",
    "test_progress.py::test_a_kernel",
    "test_quick.py::test_a_chapter_is_judged",
    "test_servers.py::test_the_install_cell_in",
    "test_sources.py::test_rounds_are_not_seconds",
    "test_store.py::test_a_change_in_any_module",
    "test_tasks.py::test_answers_are_scored",
)

#: Of these, what is run all the same: a sample of each part.
SAMPLES = (
    *("browser/test_lab.py::test_a_wrong_answer_turns_red", "browser/test_pages.py"),
    *("test_grade.py::test_everybody_gets", "test_hostile.py::test_a_file_that_is_hard_to_read"),
    "test_bench.py::test_the_exercises_of_a_chapter[02]",
    "test_kernel.py::test_a_deadlock_in_a_cell",
    "test_nbgrader.py::test_every_notebook_is_valid",
    "test_native.py::test_a_text",
    "test_scoring.py::test_every_exercise_asks",
)


#: What CI in turn leaves to ``make test-all``, besides what is marked ``nightly`` where it stands.
NIGHTLY = (
    "test_hangs.py::test_run_check_and_simulate_say_the_same",
    "test_ladders.py::test_the_whole_answer",
    "test_skeleton.py::test_it_passes_the_proof_of_the_course_and_is_in_style[09_barrier]",
)

#: Of these, what CI runs all the same.
SAMPLES_OF_NIGHT = (
    "test_hangs.py::test_run_check_and_simulate_say_the_same_of_every_program[public_issues]",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is left to CI, and what is left to ``make test-all``."""
    place = re.sub(r"^tests/(\w+/)", "", item.nodeid)  # its room is its file's matter
    if place.startswith(NIGHTLY) and not place.startswith(SAMPLES_OF_NIGHT):
        item.add_marker("nightly")
    elif place.startswith(EXHAUSTIVE) and not place.startswith(SAMPLES):
        item.add_marker("exhaustive")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of a group are to run on one worker, where they share what takes long to make."""
    if not getattr(config.option, "loadgroup", False):  # set on the workers, by pytest-xdist
        return
    for item in items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(
                f"pytest {pytest.__version__} and this pytest-xdist lose groups of tests, such as"
                f" that of {item.nodeid}; install what pyproject.toml asks for"
            )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI a skipped test is a failure: there, everything is installed."""
    if not os.environ.get("GRADER_NO_SKIPS"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    for report in skipped:
        print(f"\nskipped where nothing may be: {report.nodeid}: {report.longrepr}")
    if skipped and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
