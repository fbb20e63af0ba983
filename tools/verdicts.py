"""Writes ``docs/verdicts.md``: what the grader says of schedules that have been published.

``python -m tools.verdicts`` judges the programs of ``tests/published/``.  They are ours: each makes
the calls of the published one, in the same order, and has none of its text.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.api.replay import replay
from grader.course.chapters import discover
from grader.judge.judge import Judge, Settings
from grader.report.text import exercise_report
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from headcount.report import plain

ROOT = Path(__file__).resolve().parent.parent

#: Where the programs are, and the page.
PROGRAMS, PAGE = ROOT / "tests" / "published", ROOT / "docs" / "verdicts.md"

#: Ranks of a drawing, and the seed of every check.
_RANKS, _SEED = 4, 1


@dataclass(frozen=True)
class Published:
    """A program that has been published, and what there is to say of it.

    Attributes:
        title: its name.
        program: the file in ``tests/published/`` that has its schedule.
        exercise: what it is judged as.
        drawn: the function that is drawn.
        about: what it is and where, in Markdown.
        word: what the verdict means, in Markdown.
    """

    title: str
    program: str
    exercise: str
    drawn: str
    about: str
    word: str


#: The beginning of links to MPICH, and a link to the tutorial.
_MPICH = "https://github.com/pmodels/mpich/blob/main/src/mpi/coll"
_TUTORIAL = "https://docs.pytorch.org/tutorials/intermediate/dist_tuto.html"

PUBLISHED: tuple[Published, ...] = (
    Published(
        "The ring of PyTorch's tutorial, before it was mended",
        "tutorial_before",
        "tutorial_all_reduce",
        "ring",
        f"""[Writing Distributed Applications]({_TUTORIAL}) shows how to write an all-reduce with
        `isend` and `recv`. In December 2019 a reader reported that it does [not reduce what it
        is given](https://github.com/pytorch/pytorch/issues/31572): both buffers begin with
        zeros, and what is added is not what has just been received.""",
        """There are two slips, and no hang, exception or warning points to either, so a reader who
        did not check the sums had no reason to doubt the page. The idea was right all along: a
        ring, one message in flight on each link, and two buffers that take turns so that none
        is written while it is being sent.""",
    ),
    Published(
        "The ring of PyTorch's tutorial, mended",
        "tutorial_after",
        "tutorial_all_reduce",
        "ring",
        """The reader who had reported it also [mended
        it](https://github.com/pytorch/tutorials/pull/1039): the buffers begin with the rank's
        own numbers, and the buffer that has been received into is added.""",
        """It passes, with n(n − 1) messages in n − 1 rounds. It is still the friendliest
        all-reduce to read: a dozen lines, and each rank does the same.""",
    ),
    Published(
        "The same ring, as chapter 11 asks for it",
        "tutorial_after",
        "ring_all_reduce",
        "ring",
        f"""The tutorial itself says what is left to do, as [an exercise for the
        reader]({_TUTORIAL}): to cut the tensor into chunks, so that the bandwidth is used well.
        Chapter 11 is that exercise, and asks for five reductions besides. The tutorial promises
        neither.""",
        """Nothing here is a mistake: it is the distance between an all-reduce that is easy to
        explain and one that is fast. The verdict names the chunks first, since cutting the
        tensor means rewriting the rest. The averages come second.""",
    ),
    Published(
        "Baidu's ring all-reduce",
        "ring_of_segments",
        "ring_all_reduce",
        "ring_all_reduce",
        """[baidu-allreduce](https://github.com/baidu-research/baidu-allreduce) made the ring
        widely known in deep learning. It is C++ on top of MPI. Its comments, with a picture of
        four nodes, are the clearest description of the algorithm that we know. It sums floats;
        our version of its schedule has the other reductions too, so that the exercise can judge
        it.""",
        """It gets full marks at every size, with lengths that n does not divide and with empty
        tensors: the first segments take what is left over, and that is all it needs. A receive
        that is posted before the blocking send keeps the ring from hanging.""",
    ),
    Published(
        "MPICH's binomial broadcast",
        "binomial_broadcast",
        "tree_broadcast",
        "tree_broadcast",
        f"""[`MPIR_Bcast_intra_binomial`]({_MPICH}/bcast/bcast_intra_binomial.c)
        is what MPICH uses for short messages. With numbers counted from the root, each rank
        receives from its own number without the lowest set bit (110 from 100), and then sends
        to its own number plus each lower bit, the farthest first.""",
        """It takes ⌈log₂ n⌉ rounds from every root, and n need not be a power of two. All of that
        comes from one bit mask that goes up once and down once.""",
    ),
    Published(
        "MPICH's pairwise exchange",
        "pairwise_all_to_all",
        "all_to_all",
        "all_to_all",
        f"""[`MPIR_Alltoall_intra_pairwise`]({_MPICH}/alltoall/alltoall_intra_pairwise.c)
        is an all-to-all for long messages. In step i, rank r swaps with r XOR i if n is a power
        of two; otherwise it sends to r + i and receives from r − i.""",
        """It takes n − 1 rounds, the fewest there can be with one port if every chunk goes straight
        to its rank: in every step each rank sends to one rank and receives from one. The course
        teaches the second way, for any n; the first is worth knowing where links work best if
        both ends swap.""",
    ),
)


def section(published: Published) -> str:
    """Return what the page says of one program; it is judged and drawn for that."""
    path = PROGRAMS / f"{published.program}.py"
    catalogue = discover()
    submission = Submission.from_bytes(path.read_bytes(), path.name, catalogue)
    verdict = Judge(default_launcher(), Settings(_SEED)).judge(
        catalogue[published.exercise], submission
    )
    function = runpy.run_path(str(path))[published.drawn]
    with contextlib.redirect_stdout(io.StringIO()):
        drawing = replay(function, _RANKS, beside=False).film.table()
    return "\n\n".join(
        (
            f"## {published.title}",
            _filled(published.about),
            f"[Our program](../tests/published/{path.name}) is judged as `{published.exercise}`:",
            f"```text\n{plain(exercise_report(verdict))}\n```",
            f"On {_RANKS} ranks its messages are:",
            f"```text\n{drawing}\n```",
            _filled(published.word),
        )
    )


def _filled(text: str) -> str:
    """Return a paragraph in lines of at most 110 characters, links whole."""
    return textwrap.fill(
        " ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False
    )


def page(sections: Sequence[str]) -> str:
    """Return the page, with these sections."""
    opening = """# What the grader says of published code

Others have written collectives before us, in public, and many have learned from them. Here the
grader judges a few of the best known. No line of theirs is in this repository: our programs in
[`tests/published/`](../tests/published) make the same calls in the same order, so that the verdicts
are about the schedule. A verdict says how well a program fits *our* exercise, and not how good it
is at what its authors wrote it for.

In the lists of messages, the letters A to D are the ranks 0 to 3, and a number is a chunk: `A0` is
chunk 0 of rank 0, `A2+D2` the sum of two chunks, `A…D2` that of all four, and `·` is nothing that a
rank has brought, such as zeros. The last lines show what each rank holds at the end, tensor by
tensor.

`python -m tools.verdicts` writes this page, and a test compares it with what the grader says."""
    return "\n\n".join((opening, *sections)) + "\n"


def main() -> int:
    """Judge all programs, and write the page."""
    PAGE.write_text(page([section(one) for one in PUBLISHED]), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
