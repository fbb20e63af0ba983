"""The front page: what the course is, in two minutes of reading, and then what the README says."""

from __future__ import annotations

import re

from grader.api.session import catalogue, stoppable
from grader.course.course_map import drawing
from grader.course.index import part_of
from grader.judge.judge import Judge, Settings
from grader.report.html import exercise_html
from grader.submission.submission import Submission

__all__ = ["front_page", "verdict"]

#: An answer that hangs; the page shows it beside what the grader says of it.
EXAMPLE = """\
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    dist.send(x, peer)
    dist.recv(y, peer)
    return y
"""

#: The same inputs each time, so that a page changes only with the course.
_SEED = 0

_PAGE = """---
hide-toc: true
---

# Gather Round

{hero}

<p class="lead">Learn how 16,000 GPUs talk, by writing it yourself on a laptop.</p>

<p class="buttons"><a class="button" href="notebooks/{first}.html">Read chapter 00</a>
<a class="button quiet" href="#start">Run it: <code>make lab</code></a></p>

## You write, it answers

<div class="beside"><div>

{code}

</div><div>

{answer}

</div></div>

## The course

{map}

[The chapters, solved](solutions/index.md): for after you have tried.

## Your own script hangs?

{script}

{rest}
"""


def verdict() -> str:
    """Return what the grader says of the example, as HTML: it is run."""
    exercises = catalogue()
    submission = Submission.from_bytes(EXAMPLE.encode(), "example.py", exercises)
    (name,) = (name for name in submission.names if name in exercises)
    with stoppable() as launcher:
        found = Judge(launcher, Settings(_SEED)).judge(exercises[name], submission)
    return exercise_html(found, cases=False)


def front_page(readme: str, chapters: list[str]) -> str:
    """Return the front page as Markdown.

    Args:
        readme: the README, with links that lead somewhere from the front page.
        chapters: their names, such as ``02_broadcast``, in order.
    """
    hero = _found(r"!\[[^\]]*\]\(imgs/[^)]*\)", readme)
    script = _found(r"```\npython -m grader run .*?```\n.*?\n\n", readme)
    rest = readme[readme.index("## Start") :]
    chapters_in_words = _found(r"## The chapters\n.*?(?=^## )", readme)
    return _PAGE.format(
        hero=hero,
        first=chapters[0],
        code=f"```{{code-block}} python\n:linenos:\n\n{EXAMPLE}```",
        answer=_raw(verdict()),
        map=_map(chapters),
        script=script,
        rest=rest.replace(chapters_in_words, ""),
    )


def _found(pattern: str, readme: str) -> str:
    """Return the part of the README that the pattern describes."""
    match = re.search(pattern, readme, re.S | re.M)
    assert match is not None, f"README.md has nothing like {pattern}"
    return match[0]


def _map(chapters: list[str]) -> str:
    """Return a tile for each chapter of each part of the course; Sphinx puts in the titles."""
    parts: dict[str, list[str]] = {}
    for name in chapters:
        tile = f"- {drawing(name)} [](notebooks/{name}.ipynb)"
        parts.setdefault(part_of(name), []).append(tile)
    return "\n\n".join(
        f'### {part}\n\n<div class="map">\n\n' + "\n".join(links) + "\n\n</div>"
        for part, links in parts.items()
    )


def _raw(html: str) -> str:
    """Return HTML as a block of Markdown, whatever lines it has."""
    return f"````{{raw}} html\n{html}\n````"
