"""Chapter 18: where the time goes, and code of one's own."""

from __future__ import annotations

from collections.abc import Callable

from grader.core.verdict import Diagnosis
from grader.course.cases import Case
from grader.course.chapters import additions, kernels, profiles
from grader.course.chapters.kernels import answer, mean, median, timed, total
from grader.course.exercise import Evidence, Exercise, Gives, Mistake

# Taking the time of a kernel. -----------------------------------------------------


def _counted(e: Evidence) -> int:
    return int(e.actual[0]["calls of fn"])


def _right_count(c: Case) -> int:
    return int(c.warmup + c.iterations)


def _always_called(e: Evidence, count: Callable[[Case], int]) -> bool:
    """Whether fn was called so often in every case that came to an end."""
    return all(one.actual[0]["calls of fn"] == count(one.case) for one in e.judged if one.actual)


def _on_device(e: Evidence) -> bool:
    return _on_the_device(e.case)


def _on_the_device(c: Case) -> bool:
    return c.where in ("cuda", "second")


def _near(value: float, other: float) -> bool:
    return abs(value - other) <= 1e-6 * abs(other)


def _looks(e: Evidence, seconds: float) -> bool:
    return _on_device(e) and _near(e.actual[0]["result"], 1e3 * seconds)


def _somewhere(milliseconds: Callable[[Case], float]) -> tuple[Gives, ...]:
    """A wrong time everywhere; or on the CPU or the device alone, which have code of their own."""
    return (
        lambda c: answer(c, milliseconds(c)),
        lambda c: None if _on_the_device(c) else answer(c, milliseconds(c)),
        lambda c: answer(c, milliseconds(c)) if _on_the_device(c) else None,
    )


time_kernel = Exercise(
    signature="time_kernel(fn, *args, warmup: int, iterations: int) -> float",
    summary="milliseconds of one call: the median, by the clock of the device that works",
    world_sizes=(1,),
    inputs=kernels.kernels,
    adapter=kernels.time_in_rank,
    expected=lambda c: answer(c, median(timed(c))),
    relative=1e-9,
    hints=(
        "Which calls are there to be forgotten, and which are timed? What has to be kept of the"
        " timed ones for a median?",
        "Call fn(*args) warmup times, without a clock. Then time each of the iterations by itself:"
        " a median needs all of them.",
        "If any argument is a tensor with is_cuda, record one torch.cuda.Event before each call and"
        " one after it, and torch.cuda.synchronize() before you ask for elapsed_time, which is in"
        " milliseconds. Otherwise read time.perf_counter() before and after.",
        "This is the whole answer:\n"
        "    for _ in range(warmup):\n"
        "        fn(*args)\n"
        "    if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):\n"
        "        pairs = []\n"
        "        for _ in range(iterations):\n"
        "            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        "            begin.record()\n"
        "            fn(*args)\n"
        "            end.record()\n"
        "            pairs.append((begin, end))\n"
        "        torch.cuda.synchronize()\n"
        "        return statistics.median(begin.elapsed_time(end) for begin, end in pairs)\n"
        "    times = []\n"
        "    for _ in range(iterations):\n"
        "        started = time.perf_counter()\n"
        "        fn(*args)\n"
        "        times.append(1e3 * (time.perf_counter() - started))\n"
        "    return statistics.median(times)",
    ),
    mistakes=(
        Mistake(
            "fn is called as often as it is timed: the calls to warm up are missing. There are"
            " warmup of them, before the clock begins.",
            when=lambda e: e.case.warmup > 0 and _always_called(e, lambda c: c.iterations),
        ),
        Mistake(
            "fn is called too often or too rarely: warmup times without the clock, and then"
            " iterations times with it.",
            when=lambda e: _counted(e) != _right_count(e.case),
        ),
        Mistake(
            "fn has to be called with its arguments, as they are: fn(*args).",
            when=lambda e: e.actual[0]["with its arguments"] != _counted(e),
        ),
        Mistake(
            "elapsed_time is in milliseconds already: only the host's clock has to be multiplied.",
            when=lambda e: (
                _on_device(e) and _near(e.actual[0]["result"], 1e6 * median(timed(e.case)))
            ),
        ),
        Mistake(
            "These are seconds; milliseconds are asked for.",
            gives=_somewhere(lambda c: median(timed(c)) / 1e3),
        ),
        Mistake(
            "These are microseconds; milliseconds are asked for.",
            gives=_somewhere(lambda c: median(timed(c)) * 1e3)[:2],
        ),
        Mistake(
            "Where the first argument is on the device, all is well; here it is a number, and the"
            " tensor comes second. Ask all arguments, not only the first: any(...).",
            when=lambda e: e.case.where == "second" and _looks(e, kernels.LAUNCH),
        ),
        Mistake(
            "The host's clock has measured the launch: fn returns when the device has been told"
            " what to do, not when it is done. Record torch.cuda.Event before and after.",
            when=lambda e: _looks(e, kernels.LAUNCH),
        ),
        Mistake(
            "That is the host's clock around a launch and a synchronisation, and has both in it:"
            " let torch.cuda.Event take the time on the device.",
            when=lambda e: _looks(e, median(timed(e.case)) + kernels.NOTICE),
        ),
        Mistake(
            "That is the mean. One call that was disturbed spoils it; the median does not care.",
            gives=_somewhere(lambda c: mean(timed(c))),
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be forgotten.",
            gives=_somewhere(lambda c: median(c.seconds)),
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be forgotten.",
            gives=_somewhere(lambda c: mean(c.seconds)),
        ),
        Mistake(
            "That is the time of all calls together; the median of single ones is asked for.",
            gives=_somewhere(lambda c: total(c)),
        ),
        Mistake(
            "That is the fastest call; the median is asked for.",
            gives=_somewhere(lambda c: min(timed(c))),
        ),
        Mistake(
            "That is the slowest call; the median is asked for.",
            gives=_somewhere(lambda c: max(timed(c))),
        ),
        Mistake(
            "Of an even number of calls there are two in the middle, and the median is the mean of"
            " both: statistics.median does that, torch.median takes the lower one.",
            gives=_somewhere(lambda c: sorted(timed(c))[(c.iterations - 1) // 2]),
        ),
        Mistake(
            "Of an even number of calls there are two in the middle, and the median is the mean of"
            " both: statistics.median does that.",
            gives=_somewhere(lambda c: sorted(timed(c))[c.iterations // 2]),
        ),
        Mistake(
            "A middle one has to be looked for among times in order: sort them first.",
            gives=_somewhere(lambda c: timed(c)[c.iterations // 2]),
        ),
        Mistake(
            "An argument need not be a tensor: ask isinstance(arg, torch.Tensor) and arg.is_cuda.",
            when=lambda e: e.says("has no attribute 'is_cuda'"),
        ),
        Mistake(
            "There may be no argument at all: any(...) over all of args does not mind.",
            when=lambda e: e.case.where == "nowhere" and e.says("IndexError"),
        ),
        Mistake(
            "These tensors are on the CPU, where there is no event and nothing to synchronise: take"
            " time.perf_counter() there, and no torch.cuda.",
            when=lambda e: e.says("no CUDA device is available"),
        ),
        Mistake(
            "An event knows its time only when the device has come to it: torch.cuda.synchronize()"
            " comes before elapsed_time.",
            when=lambda e: e.says("device not ready"),
        ),
        Mistake(
            "Both events have to be made for it: torch.cuda.Event(enable_timing=True).",
            when=lambda e: e.says("enable_timing"),
        ),
    ),
    advice={
        Diagnosis.WRONG_VALUE: "Time every call by itself, in the order begin, fn(*args), end, with"
        " nothing else between; then statistics.median of these.",
        Diagnosis.WRONG_TYPE: "Return one float, in milliseconds; .item() makes one of a tensor of"
        " one element.",
    },
)

# Reading a profile. ---------------------------------------------------------------


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _miscounts(e: Evidence) -> bool:
    return len(e.actual[0]) != len(profiles.hottest(e.case)[0])


hottest_ops = Exercise(
    signature="hottest_ops(profile, k: int) -> list[str]",
    summary="the names of the k operators with the most time of their own",
    world_sizes=(1,),
    inputs=profiles.profiles,
    adapter=profiles.rank_in_profile,
    expected=profiles.hottest,
    hints=(
        "profile.key_averages() has one row for each operator, all its calls together. What are"
        " the columns of its table?",
        "Sort the rows by self_cpu_time_total, the largest first; the name is .key.",
        "This is the whole answer:\n"
        "    rows = profile.key_averages()\n"
        "    rows = sorted(rows, key=lambda row: row.self_cpu_time_total, reverse=True)\n"
        "    return [row.key for row in rows[:k]]",
    ),
    mistakes=(
        Mistake(
            "That is by total time, which counts what an operator calls as well, so that the"
            " outermost always wins. Its own time is self_cpu_time_total.",
            gives=lambda c: profiles.hottest(c, profiles.by_total(c)),
        ),
        Mistake(
            "That is by the time of one call. A cheap operator that is called very often costs"
            " more in the end: add all its calls up.",
            gives=lambda c: profiles.hottest(c, profiles.by_call(c)),
        ),
        Mistake(
            "The same operator stands there several times: events() has one entry for every call."
            " key_averages() puts them together.",
            when=lambda e: isinstance(e.actual[0], list) and _repeats(e.actual[0]),
        ),
        Mistake(
            "The coldest come first: sort with the largest time in front.",
            gives=lambda c: (
                None  # which of the two is colder?
                if "equally long" in c.name
                else [list(reversed(profiles.hottest_all(c)))[: c.k]] * c.n
            ),
        ),
        Mistake(
            "k names are asked for, and none if k is 0: rows[:k].",
            when=lambda e: isinstance(e.actual[0], list) and _miscounts(e),
        ),
        Mistake(
            "There may be fewer than k operators, or none at all: a slice, rows[:k], does not"
            " mind.",
            when=lambda e: e.says("IndexError"),
        ),
        Mistake(
            "key_averages() does not come in order of time: sort the rows by self_cpu_time_total,"
            " the largest first.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and bool(e.source)
                and not e.written("cpu_time")
            ),
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "Return a list of str: the .key of each row.",
        Diagnosis.WRONG_SHAPE: "k names are asked for, or as many as there are: rows[:k].",
        Diagnosis.WRONG_VALUE: "The names of the k rows of key_averages() with the largest"
        " self_cpu_time_total, the largest first.",
    },
)

# Code of one's own. ---------------------------------------------------------------


def _misfit(e: Evidence, *words: str) -> bool:
    return e.case.view == "misfit" and any(word in e.case.name for word in words)


VECTOR_ADD_CPP = Exercise(
    signature="VECTOR_ADD_CPP: str",
    compiled="vector_add(a: Tensor, b: Tensor) -> Tensor",
    summary="C++ source: the sum of two tensors that fit, and a refusal of all others",
    world_sizes=(1,),
    inputs=additions.additions,
    adapter=additions.add_in_rank,
    expected=additions.expected,
    hints=(
        "Check first, then compute: what has to be equal in a and b before you may go through"
        " both with one index? What would it mean for the memory if it were not?",
        "TORCH_CHECK(condition, message) raises. Compare a.sizes() and b.sizes(), and"
        " a.scalar_type() and b.scalar_type(); then a = a.contiguous(), and the same with b.",
        "This is the whole answer:\n"
        '    VECTOR_ADD_CPP = r"""\n'
        "    #include <torch/extension.h>\n"
        "\n"
        "    torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {\n"
        '      TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ");\n'
        '      TORCH_CHECK(a.scalar_type() == torch::kFloat32, "float32 is needed");\n'
        '      TORCH_CHECK(b.scalar_type() == torch::kFloat32, "float32 is needed");\n'
        "      a = a.contiguous();\n"
        "      b = b.contiguous();\n"
        "      torch::Tensor sum = torch::empty_like(a);\n"
        "      const float* x = a.data_ptr<float>();\n"
        "      const float* y = b.data_ptr<float>();\n"
        "      float* z = sum.data_ptr<float>();\n"
        "      for (int64_t i = 0; i < a.numel(); ++i) z[i] = x[i] + y[i];\n"
        "      return sum;\n"
        "    }\n"
        '    """',
    ),
    mistakes=(
        Mistake(
            "Equal numbers of elements are not enough: compare the shapes, a.sizes() == b.sizes().",
            when=lambda e: _misfit(e, "another shape"),
        ),
        Mistake(
            "The dtypes have to be compared, too: bits of another dtype would be read as floats, or"
            " be converted in silence.",
            when=lambda e: _misfit(e, "dtypes"),
        ),
        Mistake(
            "The shapes have to be compared, a.sizes() == b.sizes(), and TORCH_CHECK raises where"
            " they differ: otherwise the loop runs beyond the memory of one of them, or torch"
            " repeats the smaller one.",
            when=lambda e: _misfit(e, "shorter", "longer", "one element"),
        ),
        Mistake(
            "The memory of a transposed tensor, or of every other element, is not in the order of"
            " its elements: a = a.contiguous(), and the same with b, before you take data_ptr.",
            when=lambda e: e.case.view in ("transposed", "strided"),
        ),
    ),
    advice={
        Diagnosis.SYNTAX_ERROR: "The compiler's first error is shown, with its line in your text."
        " The others are often consequences of it. What Python calls is"
        " torch::Tensor vector_add(torch::Tensor a, torch::Tensor b): is it there, under this"
        " name?",
        Diagnosis.WRONG_TYPE: "VECTOR_ADD_CPP is a str; its vector_add returns a torch::Tensor.",
        Diagnosis.EXCEPTION: "These two fit, and must be added: any shape, also with no elements,"
        " and strides as well.",
        Diagnosis.CRASHED: "A crash in C++ is an index, or a pointer, beyond the memory that is"
        " there: compare the shapes before the loop, and let it end at numel().",
        Diagnosis.INPUT_CHANGED: "Write into a tensor of your own: torch::empty_like(a).",
        Diagnosis.ALIASED: "Write into a tensor of your own: torch::empty_like(a).",
        Diagnosis.TIMEOUT: "Does the loop end? int64_t i = 0; i < a.numel(); ++i",
    },
)
