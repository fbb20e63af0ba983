"""The rounds of a run as HTML to step through, and as text.

It needs no kernel, no network and no id.  The
script finds its element by class, and all it shows is in the element, so that the same text
works in JupyterLab, in an exported page, and twice on one page.  Where scripts do not run (a
notebook that is not trusted, a page that strips them) the rounds are there as text.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from grader.report.divergence import compared
from grader.report.elements import Markup, escape, page
from grader.report.looks import STANDING_STYLE, THEME, THEME_STYLE, Standing
from grader.report.rounds import Arrow, Content, Frame, FrameSequence
from grader.report.strip import verdict_strip, wires

__all__ = ["SAME", "description", "packed", "player", "replay_page", "unpacked"]


@cache
def _asset(name: str) -> str:
    """Return a file of the player without comments of whole lines and without indents."""
    text = resources.files("grader.report").joinpath(name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if not line.startswith(("//", "/*")))


def player(
    film: FrameSequence, reference: FrameSequence | None = None, beside: FrameSequence | None = None
) -> Markup:
    """Return the rounds as a piece of HTML, alone or beside others.

    Args:
        film: the rounds.
        reference: those of a right answer, shown where they differ.
        beside: those of another function, played on the same clock.
    """
    films, picture = [_data(film)], ""
    if reference is not None:
        difference = compared(film, reference)
        if difference is None:
            films[0]["same"] = SAME
        else:
            picture = verdict_strip(film, reference) if film.rounds else ""
            films.append(_data(reference))
            for data, name, cells, arrows in zip(
                films,
                ("yours", "the course's solution"),
                (difference.own, difference.reference),
                (difference.own_arrows, difference.reference_arrows),
                strict=True,
            ):
                data["name"] = name
                data["difference"] = {"step": difference.step, "cells": cells, "arrows": arrows}
            films[0]["note"] = difference.caption
    elif beside is not None:
        films.append(_data(beside))
        for data, name in zip(films, _names(film, beside), strict=True):
            data["name"] = name
    text = escape(json.dumps(films, separators=(",", ":"), ensure_ascii=False))
    words = escape(description(film, reference, beside))
    return Markup(
        f"{THEME_STYLE}\n<style>.gather-round-replay {{ {STANDING_STYLE} }}\n"
        f"{_asset('player.css')}</style>\n{picture}\n"
        # JupyterLab's own shortcuts would capture the arrow keys
        f'<div class="{THEME} gather-round-replay" data-lm-suppress-shortcuts="true"'
        f' data-replay="{text}"><pre>{words}</pre></div>\n'
        f"<script>{_asset('player.js')}</script>"
    )


#: What is said of a run that goes as the course's solution does.
SAME = "Every round is as in the course's solution."


def description(
    film: FrameSequence, reference: FrameSequence | None = None, beside: FrameSequence | None = None
) -> str:
    """Return the rounds as text, and where they differ from a reference or what is beside them."""
    if beside is not None:
        return _side_by_side(film, beside)
    if reference is None:
        return film.table()
    difference = compared(film, reference)
    return f"{film.table()}\n{SAME if difference is None else difference.caption}"


def _names(film: FrameSequence, beside: FrameSequence) -> tuple[str, str]:
    if film.title != beside.title:
        return film.title, beside.title
    return f"{film.title} (first)", f"{beside.title} (second)"


def _side_by_side(*films: FrameSequence) -> str:
    """Return two runs as text, round by round on one clock."""
    names = _names(*films)
    wide, high = max(map(len, names)), len(str(max(film.rounds for film in films)))
    lines = []
    for number in range(1, max(film.rounds for film in films) + 2):
        said = []
        for film, name in zip(films, names, strict=True):
            if number <= film.rounds:
                what = film.frames[number - 1].routes
            elif number == film.rounds + 1:
                what = film.halt or f"done after {film.length}"
            else:
                continue
            said.append(f"{name:{wide}}  {what}")
        first = f"round {number:{high}}:  "
        if all(number > film.rounds for film in films):
            first = " " * len(first)
        lines += [(" " * len(first) if i else first) + text for i, text in enumerate(said)]
    return "\n".join(line.rstrip() for line in lines)


def replay_page(
    film: FrameSequence, reference: FrameSequence | None = None, beside: FrameSequence | None = None
) -> Markup:
    """Return the rounds as a whole page."""
    what = film.title if beside is None else f"{film.title} beside {beside.title}"
    title = f"Replay of {what} on {film.ranks} ranks"
    return page(title, player(film, reference, beside))


def _data(film: FrameSequence) -> dict[str, Any]:
    """Return what the script reads; contents are numbered, since few are different."""
    contents: dict[Content, int] = {}

    def number(content: Content | None) -> int:
        return -1 if content is None else contents.setdefault(content, len(contents))

    frames = [
        {
            "cells": [[number(cell) for cell in column] for column in frame.cells],
            "changed": frame.changed,
            "says": frame.caption,
            "phase": frame.phase,
            "arrows": [
                [
                    a.source,
                    a.destination,
                    number(a.content),
                    a.size,
                    a.site,
                    a.leaves,
                    a.enters,
                    a.cells,
                ]
                for a in frame.arrows
            ],
        }
        for frame in film.frames
    ]
    found: dict[str, Any] = {
        "title": film.title,
        "ranks": film.ranks,
        "ring": film.ring,
        "roots": film.roots,
        "headings": film.headings,
        "frames": frames,
        "contents": [[content.text, content.owners] for content in contents],
    }
    if film.halts:
        found["halt"] = film.halt
        found["halts"] = {
            rank: [*halt.label, halt.caption, halt.standing.value]
            for rank, halt in film.halts.items()
        }
        looks = {True: Standing.CYCLE.value, False: Standing.WAITS.value}
        found["wires"] = [
            [of.source, of.destination, looks[of.in_cycle], of.lane, of.leaves, of.joins]
            for of in wires(film)
        ]
    return found


def packed(film: FrameSequence) -> dict[str, Any]:
    """Return a run as plain data to be stored, without lines of its source."""
    frames = tuple(
        replace(frame, arrows=tuple(replace(arrow, site="") for arrow in frame.arrows))
        for frame in film.frames
    )
    return _data(replace(film, frames=frames))


def unpacked(data: dict[str, Any]) -> FrameSequence:
    """Return a run that was stored by :func:`packed`."""
    contents = [Content(text, tuple(owners)) for text, owners in data["contents"]]
    frames = tuple(
        Frame(
            tuple(tuple(None if i < 0 else contents[i] for i in of) for of in frame["cells"]),
            tuple(
                Arrow(source, destination, contents[what], *rest)
                for source, destination, what, *rest in frame["arrows"]
            ),
            tuple(map(tuple, frame["changed"])),
            frame["says"],
            frame["phase"],
        )
        for frame in data["frames"]
    )
    return FrameSequence(
        data["title"],
        tuple((name, count) for name, count in data["headings"]),
        frames,
        data["ring"],
        {int(rank): word for rank, word in data["roots"].items()},
    )
