"""The command line: ``python -m grader``.

Exit status: 0 all passed, 1 something failed, 2 the request itself was wrong, or cannot be served
on this machine as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import grader
from grader import __version__
from grader.bench.plan import add_options, count
from grader.classroom.exports import FORMATS, export
from grader.classroom.layouts import LAYOUTS
from grader.errors import MissingPackage
from headcount.core.errors import (
    HeadcountError,
    RequestError,
    is_shortage,
    require_temporary_folder,
    shortage,
)
from headcount.core.resource_limits import DEFAULTS, valid_sizes
from headcount.core.semantics import Semantics, add_semantics
from headcount.launch.backends import BACKENDS
from headcount.script.command import add_run_options

if TYPE_CHECKING:
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise
    from grader.judge.judge import Settings
    from grader.submission.submission import Submission
    from headcount.core.verdict import SubmissionVerdict
    from headcount.launch.launchers import Launcher

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """A parser that raises the error of a wrong request as one line."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message} (see {self.prog} --help)")


def _program() -> str:
    """Return how this program is called, by which its usage begins."""
    name = os.path.basename(sys.argv[0])
    return name if name == "gather-round" else "python -m grader"


#: How a command line names a student.
_STUDENT = "a student, by key, number, address or name"


def _world_sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"world sizes are numbers with commas, as in 2,3,4, not {text!r}"
        ) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0 is needed, not {text!r}")
    return seconds


def _eager(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or int(text) < -1:
        raise argparse.ArgumentTypeError(f"a whole number from -1 on is needed, not {text!r}")
    return int(text)


def _systems() -> str:
    *others, last = [form.system for form in FORMATS.values()]
    return f"{', '.join(others)} and {last}"


def _layout_help() -> str:
    layouts = ", ".join(f"{layout.name} ({layout.title})" for layout in LAYOUTS.values())
    return f"what SUBMISSIONS holds, where its names do not tell: {layouts}"


def _export_help() -> str:
    return "; ".join(f"{form.name}: {form.content}" for form in FORMATS.values())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_program(), description="The grader of Gather Round.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )

    listing = commands.add_parser("list", help="the exercises, by chapter")
    listing.set_defaults(serve=_list)
    listing.add_argument("--json", action="store_true", help="print one JSON array")

    tasks = commands.add_parser("tasks", help="the exercises as tasks, for programs that answer")
    tasks.set_defaults(serve=_tasks)
    tasks.add_argument(
        "exercises",
        metavar="EXERCISE",
        nargs="*",
        help="the exercises to show; all if none is named",
    )
    tasks.add_argument("--json", action="store_true", help="print one JSON object")

    score = commands.add_parser("score", help="the rewards of such answers, in a sandbox")
    score.set_defaults(serve=_score)
    score.add_argument(
        "answers",
        metavar="ANSWERS",
        help="a folder with EXERCISE.py for each answer, or a .jsonl file whose lines have task,"
        " answer and sample",
    )
    score.add_argument("--jobs", type=count, metavar="N", help="answers at a time")
    score.add_argument(
        "--seed",
        type=int,
        help="draw the inputs from this number; otherwise from one that nobody could know before",
    )
    score.add_argument(
        "--sandbox",
        choices=["auto", "bubblewrap", "none"],
        default="auto",
        help="auto is bubblewrap; none trusts every answer",
    )
    score.add_argument("--json", action="store_true", help="print one JSON object")

    check = commands.add_parser("check", help="judge a .py file or a notebook")
    check.set_defaults(serve=_check)
    check.add_argument("file", metavar="FILE", help="a .py file or a notebook")
    check.add_argument(
        "exercises",
        metavar="EXERCISE",
        nargs="*",
        help="the exercises to judge; if none is named, all that FILE defines",
    )
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument("--seed", type=int, help="repeat the inputs of an earlier check")
    check.add_argument(
        "--world-sizes",
        type=_world_sizes,
        metavar="N,N,...",
        help="judge at these numbers of ranks",
    )
    check.add_argument(
        "--backend",
        choices=list(BACKENDS),
        default="gloo",
        help="what carries the messages: "
        + "; ".join(f"{entry.name} ({entry.about})" for entry in BACKENDS.values()),
    )
    add_semantics(check)
    check.add_argument(
        "--seconds",
        type=_seconds,
        metavar="S",
        help="seconds that a rank may compute, or all may sleep, in one call of an answer"
        f" (default {DEFAULTS.call:g}; {DEFAULTS.gpu_call:g} on GPUs); by the clock a call may"
        f" take {DEFAULTS.busy:g} times that, or twice for each rank",
    )

    hint = commands.add_parser("hint", help="a hint on an exercise")
    hint.set_defaults(serve=_hint)
    hint.add_argument("exercise", metavar="EXERCISE", help="its name, as list shows it")
    hint.add_argument(
        "--more",
        action="count",
        default=0,
        help="all hints, from gentle to plain; twice: the whole answer, too, if the last one is it",
    )

    progress = commands.add_parser("progress", help="which exercises you have passed")
    progress.set_defaults(serve=_progress)
    progress.add_argument("--json", action="store_true", help="print one JSON object")

    reset = commands.add_parser("reset", help="begin an exercise again; your old text is kept")
    reset.set_defaults(serve=_reset)
    reset.add_argument("notebook", metavar="NOTEBOOK", help="your notebook of the chapter")
    reset.add_argument("exercise", metavar="EXERCISE", help="the exercise to begin again")

    grade = commands.add_parser("grade", help="judge a whole class, in a sandbox")
    grade.set_defaults(serve=_grade)
    grade.add_argument("submissions", metavar="SUBMISSIONS", help="a folder or an archive")
    grade.add_argument("--out", metavar="RESULTS", required=True, help="folder of the results")
    grade.add_argument(
        "--assignment", metavar="FILE", help="an assignment.toml: what is due, and until when"
    )
    grade.add_argument(
        "--exercises",
        metavar="02-05,NAME,...",
        help="what is due: chapters, ranges of chapters, exercises; without it, and without"
        " --assignment, whatever at least one student hands in",
    )
    grade.add_argument("--title", help="of the assignment, as your gradebook names it")
    grade.add_argument(
        "--only",
        metavar="STUDENT",
        action="append",
        default=[],
        help="grade this student of SUBMISSIONS, and keep everybody's row; may be repeated",
    )
    grade.add_argument(
        "--add",
        action="store_true",
        help="keep the rows of students of whom nothing is in SUBMISSIONS",
    )
    grade.add_argument(
        "--drop",
        metavar="STUDENT",
        action="append",
        default=[],
        help="delete the row of a student who has left; may be repeated",
    )
    grade.add_argument("--layout", choices=list(LAYOUTS), metavar="LAYOUT", help=_layout_help())
    grade.add_argument("--jobs", type=count, metavar="N", help="submissions at a time")
    grade.add_argument(
        "--engine", choices=["local", "dask", "slurm"], default="local", help="where they run"
    )
    grade.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster")
    grade.add_argument(
        "--sandbox",
        choices=["auto", "bubblewrap", "none"],
        default="auto",
        help="auto is bubblewrap; none trusts every submission",
    )
    grade.add_argument("--seed", type=int, help="draw everybody's inputs from this number")
    grade.add_argument(
        "--timeout",
        type=count,
        metavar="S",
        help=f"seconds of a submission in all, by the clock (default {DEFAULTS.submission:g})",
    )
    grade.add_argument(
        "--seconds",
        type=_seconds,
        metavar="S",
        help="seconds that a rank may compute, or all may sleep, in one call of an answer"
        f" (default {DEFAULTS.call:g}); an exercise may take {DEFAULTS.exercise:g} s by the clock,"
        " and more with a larger S",
    )
    grade.add_argument(
        "--memory",
        type=count,
        metavar="MB",
        help=f"of all ranks of a submission (default {DEFAULTS.submission_memory >> 20})",
    )
    grade.add_argument("--force", action="store_true", help="judge again what has not changed")
    grade.add_argument("--json", action="store_true", help="print one JSON object")

    mark = commands.add_parser(
        "mark",
        help="decide about a grade by hand; without a decision, list those that were made",
        usage="%(prog)s RESULTS STUDENT EXERCISE --points P --why WHY\n"
        "       %(prog)s RESULTS STUDENT --extend DATE --why WHY\n"
        "       %(prog)s RESULTS STUDENT [EXERCISE] --excuse --why WHY\n"
        "       %(prog)s RESULTS --undo N\n"
        "       %(prog)s RESULTS [STUDENT]",
    )
    mark.set_defaults(serve=_mark)
    add = mark.add_argument
    add("results", metavar="RESULTS", help="what grade has written")
    add("student", metavar="STUDENT", nargs="?", default="", help=_STUDENT)
    add("exercise", metavar="EXERCISE", nargs="?", default="", help="an exercise")
    add("--points", type=float, metavar="P", help="the points that the exercise earns")
    add("--extend", metavar="DATE", default="", help="by when the student may hand in")
    add("--excuse", action="store_true", help="count it neither for nor against the student")
    add("--undo", type=count, metavar="N", help="undo a decision, by its number in the list")
    add("--why", metavar="WHY", default="", help="the reason, which the student sees")
    add("--by", metavar="NAME", default="", help="who decides (your login name)")
    add("--ahead", action="store_true", help="the student has handed in nothing yet")

    again = commands.add_parser(
        "reproduce", help="judge one answer again as it was judged, and compare the verdicts"
    )
    again.set_defaults(serve=_reproduce)
    again.add_argument("results", metavar="RESULTS", help="what grade has written")
    again.add_argument("student", metavar="STUDENT", help=_STUDENT)
    again.add_argument("exercise", metavar="EXERCISE", help="an exercise")
    again.add_argument("--submissions", metavar="PATH", help="where the submissions are now")

    export = commands.add_parser("export", help=f"grades for {_systems()}")
    export.set_defaults(serve=_export)
    export.add_argument("results", metavar="RESULTS", help="what grade has written")
    export.add_argument("--format", choices=list(FORMATS), required=True, help=_export_help())
    folders = [form.name for form in FORMATS.values() if form.is_folder]
    export.add_argument(
        "--to", metavar="PATH", required=True, help=f"a file; for {' and '.join(folders)}, a folder"
    )
    books = [form.system for form in FORMATS.values() if form.fills_gradebook]
    export.add_argument(
        "--gradebook", metavar="FILE", help=f"of {' or '.join(books)}, to be filled in"
    )
    export.add_argument(
        "--title", default="", help="of the assignment there, if the results have another or none"
    )
    export.add_argument(
        "--force",
        action="store_true",
        help="replace grades under a title that is not that of the results",
    )

    over = commands.add_parser(
        "term", help="several assignments in one gradebook, and a page about the term"
    )
    over.set_defaults(serve=_term)
    over.add_argument(
        "results", metavar="RESULTS", nargs="+", help="what grade has written, in the term's order"
    )
    over.add_argument("--to", metavar="DIR", required=True, help="a folder")

    release = commands.add_parser("release", help="what students get: everything but solutions")
    release.set_defaults(serve=_release)
    release.add_argument("to", metavar="DIR", help="a new folder")
    release.add_argument(
        "--without-answers",
        action="store_true",
        help="leave out the last hint on each exercise, which is the whole answer",
    )

    new = commands.add_parser("new", help="begin an exercise of your own, in a checkout")
    new.set_defaults(serve=_new)
    new.add_argument("what", choices=["exercise"], help="what to begin")
    new.add_argument("name", metavar="NAME", help="its name, such as tree_broadcast")
    new.add_argument(
        "--chapter", metavar="NN_TOPIC", required=True, help="its chapter, which may be new"
    )

    run = commands.add_parser(
        "run",
        help="run a training script of your own, and say why it hangs",
        usage="%(prog)s [OPTION ...] SCRIPT [ARGUMENT ...]",
    )
    run.set_defaults(serve=_run)
    add_run_options(run, count, _seconds)

    explain = commands.add_parser(
        "explain", help="why a job has stopped, from the dumps of PyTorch's flight recorder"
    )
    explain.set_defaults(serve=_explain)
    explain.add_argument("dumps", metavar="DUMPS", help="the folder of the dumps")
    explain.add_argument("--json", action="store_true", help="print one JSON object")

    bench = commands.add_parser("bench", help="a table like nccl-tests', also under torchrun")
    bench.set_defaults(serve=_bench)
    add_options(bench)
    simulate = commands.add_parser("simulate", help="run an answer on simulated ranks")
    simulate.set_defaults(serve=_simulate)
    add = simulate.add_argument
    add("file", metavar="FILE", help="a .py file or a notebook")
    add("exercise", metavar="EXERCISE", help="the exercise to run")
    add("--ranks", type=count, metavar="N", required=True, help="how many ranks to simulate")
    add("--alpha", type=float, metavar="S", help="seconds of a message (1e-6)")
    add("--beta", type=float, metavar="S/B", help="seconds of each of its bytes (1e-10)")
    add("--cluster", metavar="NAME", help="a cluster by name, or a .json file, instead")
    add(
        "--eager",
        type=_eager,
        metavar="B",
        default=-1,
        help="a send of up to so many bytes does not wait for its receive (-1: every send waits)",
    )
    add(
        "--algorithm",
        action="append",
        default=[],
        metavar="COLLECTIVE=NAME",
        help="of a built-in collective, such as all_reduce=ring",
    )
    add("--seed", type=int, help="repeat the inputs of an earlier run")
    add("--json", action="store_true", help="print one JSON object")

    doctor = commands.add_parser(
        "doctor", help="what this machine can do, and what to install for the rest"
    )
    doctor.set_defaults(serve=_doctor)
    return parser


#: Whether Ctrl-C was pressed.  Its exception may be lost: where it hits a callback of Python's own,
#: such as that of a module's lock, Python prints it at most.
_pressed = threading.Event()


def _press(*_: object) -> NoReturn:
    """Note that Ctrl-C was pressed, and stop what is being done."""
    _pressed.set()
    raise KeyboardInterrupt


def _stop_if_pressed() -> None:
    """Stop now if Ctrl-C was pressed and the exception was lost."""
    if _pressed.is_set():
        raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one request, and return the exit status."""
    _pressed.clear()
    # another handler than Python's own, as in a test, stays
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # only the main thread may set one
            signal.signal(signal.SIGINT, _press)
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show ✓ gets \u2713 instead of a traceback
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _serve(arguments)
    except RequestError as error:
        _say(_one_line(error))
        return 2
    except HeadcountError as error:
        _say(_one_line(error))
        return 1
    except ModuleNotFoundError as error:
        missing = MissingPackage.of("this command", error)
        if missing is None:
            raise
        _say(str(missing))
        return 2
    except BrokenPipeError:
        # the reader, such as head, has seen enough
        _discard(1)
        return _PIPE_CLOSED
    except OSError as error:
        lacking = _lacking(error)
        if not lacking:
            raise
        _say(lacking)
        return 2
    except KeyboardInterrupt:
        _say("stopped; every rank has been ended")
        return 130
    finally:
        if signal.getsignal(signal.SIGINT) is _press:
            signal.signal(signal.SIGINT, signal.default_int_handler)


#: The exit status of a program that ends because nobody reads its output: 128 and SIGPIPE.
_PIPE_CLOSED = 141


def _serve(arguments: Sequence[str] | None) -> int:
    """Serve a request whose output can be written, and return the exit status."""
    if sys.stdout is None:
        raise RequestError(
            "standard output is closed, and the result is written there; > FILE writes it to a"
            " file, and > /dev/null nowhere"
        )
    try:
        request = _parser().parse_args(arguments)
        status: int = request.serve(request)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich has seen it first
            raise BrokenPipeError from None
        sys.stdout.flush()  # of --help and --version
        raise
    sys.stdout.flush()
    _stop_if_pressed()
    return status


def _open_standard_streams() -> None:
    """Open to nowhere those of the standard descriptors that are closed.

    The next file that is opened would get the number, and what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _discard(number: int) -> None:
    """Let what is still to be written to a descriptor go nowhere, also at Python's own end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _say(sentence: str) -> None:
    """Print a sentence on standard error, if it can be."""
    if sys.stderr is None:
        return
    try:
        print(f"grader: {sentence}", file=sys.stderr, flush=True)
    except OSError:
        _discard(2)


def _lacking(error: OSError) -> str:
    """Return what the machine lacks where an exception says so, else an empty string."""
    try:
        require_temporary_folder()
    except RequestError as unusable:
        return str(unusable)
    try:
        os.write(1, b"\n")
    except OSError as again:
        _discard(1)
        return f"standard output cannot be written: {shortage(again)}"
    if not is_shortage(error):
        return ""
    return f"{error.filename}: {shortage(error)}" if error.filename else shortage(error)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _list(request: argparse.Namespace) -> int:
    from grader.course.index import course_index

    exercises = course_index()
    if request.json:
        rows = [
            {
                "name": e.name,
                "chapter": e.chapter,
                "signature": e.signature,
                "summary": e.summary,
                "max_score": e.points,
                "world_sizes": list(e.world_sizes),
            }
            for e in exercises.values()
        ]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    from rich.console import Console
    from rich.text import Text

    from grader.report.summary import points

    console = Console(highlight=False)
    part = ""
    for chapter, members in exercises.chapters().items():
        if members[0].part != part:
            part = members[0].part
            console.print(Text(part, style="bold underline"))
        worth = points(sum(exercise.points for exercise in members))
        console.print(Text(chapter, style="bold").append(f"  worth {worth}", style="not bold dim"))
        for exercise in members:
            console.print(Text(f"{points(exercise.points):>4}  {exercise.signature}"))
            console.print(Text(f"      {exercise.summary}", style="dim"))
    worth = points(sum(exercise.points for exercise in exercises.values()))
    console.print(f"{len(exercises)} exercises, {worth} points")
    return 0


def _tasks(request: argparse.Namespace) -> int:
    from grader.course.index import course_index

    index = course_index()
    wanted = [index[name] for name in dict.fromkeys(request.exercises)] or list(index.values())
    from grader.api import catalogue
    from grader.classroom.tasks import chapter_until, tasks_as_dict

    if request.json:
        print(json.dumps(tasks_as_dict(wanted, catalogue()), ensure_ascii=False, indent=1))
        return 0
    for entry in wanted:
        print(f"{chapter_until(entry)[1]}\n\n```python\n{entry.stub}\n```\n")
    return 0


def _score(request: argparse.Namespace) -> int:
    from grader.classroom.tasks import (
        read_answers,
        score_answers,
        score_line,
        scores_as_dict,
        summary_line,
    )
    from grader.course.index import course_index

    source = Path(request.answers)
    answers = read_answers(source, course_index())  # what is wrong is said before torch is imported
    import secrets

    from grader.classroom.engines import LocalEngine, cores
    from grader.classroom.messages import Limits
    from grader.sandbox.sandboxes import SandboxPool
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the engine forks its workers
    limits = Limits(sandbox=request.sandbox != "none")
    if limits.sandbox:
        try:
            SandboxPool.rehearse()
        except RequestError as error:
            raise RequestError(
                f"{error}; see `python -m grader doctor`, or score without: --sandbox none"
            ) from None
    else:
        _say("warning: no sandbox: the answers run as you, and can do whatever you can")
    seed = secrets.randbits(128) if request.seed is None else request.seed
    jobs = min(request.jobs or cores(), len(answers))
    hidden = [source if source.is_dir() else source.parent]
    with contextlib.closing(LocalEngine(jobs, hidden if limits.sandbox else None)) as engine:
        from grader.api import catalogue

        scores = []
        for score in score_answers(answers, engine, catalogue(), seed, limits, hidden):
            _stop_if_pressed()
            scores.append(score)
            if not request.json:
                print(score_line(score), flush=True)
    order = {(one.task, one.sample): i for i, one in enumerate(answers)}
    scores.sort(key=lambda score: order[score.answer.task, score.answer.sample])
    found = scores_as_dict(scores, seed, limits.sandbox)
    if request.json:
        print(json.dumps(found, indent=1))
    else:
        print(summary_line(found))
    return 1 if any(score.verdict.status == "error" for score in scores) else 0


def _check(request: argparse.Namespace) -> int:
    from grader.course.index import course_index
    from grader.report.live import starting
    from grader.submission.submission import Submission

    # what is wrong with the request is said before torch is imported
    sizes = None if request.world_sizes is None else valid_sizes(request.world_sizes)
    submission = Submission.from_file(request.file, course_index())
    wanted = _wanted(submission, request.exercises)
    with starting(wanted[0]):
        from headcount.launch.launchers import default_launcher, fork_server_here

        fork_server_here()
        from grader.api import catalogue, fresh_seed
        from grader.judge.judge import Settings

    seed = fresh_seed() if request.seed is None else request.seed
    verdict = _judge_file(
        submission,
        [catalogue()[name] for name in wanted],
        default_launcher,
        Settings(
            seed,
            sizes,
            seconds=request.seconds or BACKENDS[request.backend].call_seconds,
            backend=request.backend,
            semantics=Semantics(request.semantics),
        ),
    )
    if request.json:
        from grader.report.json import to_json

        print(to_json(verdict))
    else:
        from rich.console import Console

        from grader.report.text import submission_report

        Console(highlight=False).print(submission_report(verdict))
    sys.stdout.flush()  # a reader gets the verdict before progress is written
    from grader.judge.progress import note

    progress = None
    if request.semantics == Semantics.GLOO:
        progress = note(
            verdict.exercises, catalogue(), Path(request.file), sizes, request.backend, file=True
        )
    if progress is not None and not request.json:
        from grader.report.summary import sum_of

        print(sum_of(progress))
    return 0 if verdict.passed else 1


def _wanted(submission: Submission, names: Sequence[str]) -> list[str]:
    """Return the exercises to judge: those that are named, or all that the file defines.

    Raises:
        UnknownExercise: the course has no exercise of a name.
        RequestError: no name is given and the file defines no exercise.
    """
    from grader.course.index import course_index

    exercises = course_index()
    wanted = [exercises[name].name for name in dict.fromkeys(names)]
    if not wanted:
        defined = submission.names | set(submission.broken)
        wanted = [name for name in exercises if name in defined]
    if not wanted:
        raise RequestError(_nothing_in(submission))
    return wanted


def _judge_file(
    submission: Submission,
    exercises: Sequence[Exercise],
    launcher: Callable[[], Launcher],
    settings: Settings,
) -> SubmissionVerdict:
    """Judge exercises of a submission; one that it lacks is ``missing``.

    Args:
        submission: the submission.
        exercises: what is judged, in this order.
        launcher: a function that returns a launcher; it is called when there is
            something to run.
        settings: seed, sizes and limits.
    """
    from grader.judge.judge import Judge
    from grader.report.live import LiveCount
    from headcount.core.verdict import SubmissionVerdict

    judge = None
    verdicts = []
    for exercise in exercises:
        with LiveCount(exercise.name) as count:

            def note(done: int, of: int, count: LiveCount = count) -> None:
                _stop_if_pressed()
                count(done, of)

            judge = judge or Judge(launcher(), settings)
            verdicts.append(judge.judge(exercise, submission, note))
    return SubmissionVerdict(submission.label, settings.seed, tuple(verdicts), settings.backend)


def _nothing_in(submission: Submission) -> str:
    if submission.unparsed:
        fault = submission.unparsed[0]
        return f"{submission.label} is no Python: line {fault.line}: {fault.message}"
    for name, found in submission.elsewhere.items():
        return f"{submission.label} defines no exercise of the course; {name}: {found}"
    return (
        f"{submission.label} defines no exercise of the course;"
        " `python -m grader list` shows their names"
    )


def _simulate(request: argparse.Namespace) -> int:
    from headcount.core.files import contents

    contents(Path(request.file))  # what cannot be read is said before torch is imported
    from headcount.launch.launchers import fork_server_here

    fork_server_here()
    from grader.api import catalogue, fresh_seed
    from grader.api.simulate import cluster_of, simulate_answer
    from grader.report.json import growth_json
    from grader.report.text import growth_report

    cluster = cluster_of(request.cluster, request.alpha, request.beta)
    exercises = catalogue()
    exercise = exercises[request.exercise]
    seed = fresh_seed() if request.seed is None else request.seed
    grown = simulate_answer(
        request.file,
        exercise,
        exercises,
        request.ranks,
        cluster,
        eager=request.eager,
        algorithms=_algorithms(request.algorithm),
        seed=seed,
    )
    if request.json:
        print(growth_json(grown, exercise, cluster, seed))
    else:
        from rich.console import Console

        report = growth_report(grown, exercise, cluster, request.cluster or "", seed)
        Console(highlight=False).print(report)
    return 0 if all(verdict.passed for verdict in grown.verdicts) else 1


def _algorithms(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        collective, equals, name = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"--algorithm wants COLLECTIVE=NAME, as in all_reduce=ring, not {text!r}"
            )
        found[collective] = name
    return found


def _progress(request: argparse.Namespace) -> int:
    from grader.course.index import course_index
    from grader.judge.progress import overview

    found = overview(course_index())
    if request.json:
        from grader.report.json import to_json

        print(to_json(found))
    else:
        from rich.console import Console

        from grader.report.text import progress_report

        Console(highlight=False).print(progress_report(found))
    return 1 if found.trouble else 0


def _new(request: argparse.Namespace) -> int:
    from grader.cli.skeleton import write_exercise
    from grader.course.index import course_index

    written = write_exercise(Path.cwd(), request.chapter, request.name, course_index())
    for path in written:
        print(path.relative_to(Path.cwd()))
    number = request.chapter.partition("_")[0]
    print(f"Now: make notebooks ARGS={number} && make check ARGS={request.name}")
    return 0


def _hint(request: argparse.Namespace) -> int:
    from grader.course.help import help_of
    from grader.course.index import course_index

    exercise = course_index()[request.exercise]
    known = help_of(exercise.chapter)[exercise.name]
    command = f"python -m grader hint {exercise.name}"
    kept_back = request.more == 1 and known.tells_all
    shown = len(known.hints) - kept_back if request.more else 1
    left = len(known.hints) - shown
    more = f"{left} more: {command} --more" if left else ""
    if left == 1 and known.tells_all:
        more = f"The next hint is the whole answer. To see it: {command} --more --more"
    from rich.console import Console

    from grader.report.text import hints_report

    Console(highlight=False).print(hints_report(known.hints[:shown], more))
    return 0


def _reset(request: argparse.Namespace) -> int:
    from grader.cli.reset import reset
    from grader.course.index import course_index

    exercise = course_index()[request.exercise]
    kept = reset(Path(request.notebook), exercise)
    if kept is None:
        print(f"{exercise.name} in {request.notebook} is the stub already; nothing is changed")
        return 0
    print(f"{exercise.name} in {request.notebook} begins again. What you had is in {kept}")
    print("If JupyterLab has the notebook open: File, Reload Notebook from Disk")
    return 0


def _grade(request: argparse.Namespace) -> int:
    if not Path(request.submissions).exists():  # said before torch is imported
        raise RequestError(f"{request.submissions} does not exist")
    from grader.classroom.assignment import LimitsTable, read_assignment, requested
    from grader.classroom.command import Options, grade, hidden_folders
    from grader.classroom.engines import Engine, LocalEngine, connect, cores, slurm, warning_of
    from grader.classroom.messages import Limits
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the local engine forks its workers
    stated = None if request.assignment is None else read_assignment(Path(request.assignment))
    if stated is not None and request.exercises:
        raise RequestError(
            f"--exercises, and {request.assignment}, both say what is due; say it in one place"
        )
    title = request.title.strip() if request.title is not None else ""
    if request.title is not None and not title:
        raise RequestError("--title is empty; name the assignment as your gradebook does")
    exercises_due = requested(request.exercises.split(",")) if request.exercises else ()
    options = Options(
        Limits(sandbox=request.sandbox != "none"),
        request.seed,
        request.force,
        request.layout,
        stated,
        title,
        exercises_due,
        request.add,
        tuple(request.only),
        tuple(request.drop),
        LimitsTable(request.timeout, request.seconds, request.memory),
    )
    source, out = Path(request.submissions), Path(request.out)

    def make_engine(submissions: int) -> Engine:
        if request.engine == "slurm":
            return slurm(request.jobs)
        if request.engine == "dask" or request.scheduler:
            if request.scheduler and (warning := warning_of(request.scheduler)):
                _say(f"warning: {warning}")
            return connect(request.scheduler, request.jobs)
        jobs = min(request.jobs or cores(), submissions)
        return LocalEngine(jobs, hidden_folders(source, out) if options.limits.sandbox else None)

    def exercises() -> Catalogue[Exercise]:
        from grader.api import catalogue

        return catalogue()

    return grade(source, out, make_engine, exercises, options, request.json)


def _mark(request: argparse.Namespace) -> int:
    from grader.classroom.marking import MarkRequest, mark

    if request.points is not None and not math.isfinite(request.points):
        raise RequestError(f"--points is a number, not {request.points}")
    return mark(
        Path(request.results),
        MarkRequest(
            student=request.student,
            exercise=request.exercise,
            points=request.points,
            extend=request.extend,
            excuse=request.excuse,
            undo=request.undo,
            why=request.why,
            by=request.by.strip(),
            ahead=request.ahead,
        ),
    )


def _reproduce(request: argparse.Namespace) -> int:
    from grader.classroom.reproduction import look_up, reproduce

    moved = None if request.submissions is None else Path(request.submissions)
    stored = look_up(Path(request.results), request.student, request.exercise, moved)

    from grader.classroom.command import hidden_folders
    from grader.classroom.engines import Engine, LocalEngine
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the engine forks its worker
    hidden = hidden_folders(stored.source, stored.folder) if stored.limits.sandbox else None

    def make_engine() -> Engine:
        return LocalEngine(1, hidden)

    def exercises() -> Catalogue[Exercise]:
        from grader.api import catalogue

        return catalogue()

    return reproduce(stored, make_engine, exercises)


def _export(request: argparse.Namespace) -> int:
    book = None if request.gradebook is None else Path(request.gradebook)
    results, to = Path(request.results), Path(request.to)
    for line in export(results, request.format, to, book, request.title.strip(), request.force):
        print(line, file=sys.stderr)
    return 0


def _term(request: argparse.Namespace) -> int:
    from grader.classroom.term import term

    for line in term([Path(one) for one in request.results], Path(request.to)):
        print(line, file=sys.stderr)
    print(f"{request.to}: term.csv and term.html")
    return 0


def _release(request: argparse.Namespace) -> int:
    from grader.api import catalogue
    from grader.cli.release import release

    course = Path(grader.__file__).resolve().parent.parent
    count = release(course, Path(request.to), catalogue(), answers=not request.without_answers)
    hints = " and without the hints that are whole answers" if request.without_answers else ""
    print(f"{request.to}: {count} files, without solutions{hints}")
    return 0


def _bench(request: argparse.Namespace) -> int:
    from grader.bench.command import serve

    return serve(request)


def _run(request: argparse.Namespace) -> int:
    from headcount.script.command import run_script_command

    return run_script_command(request)


def _explain(request: argparse.Namespace) -> int:
    from headcount.script.command import explain_command

    return explain_command(request)


def _doctor(request: argparse.Namespace) -> int:
    from headcount.launch.launchers import fork_server_here

    fork_server_here()
    from grader.doctor import examine

    return examine()
