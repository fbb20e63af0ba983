"""A film as HTML to step through, without a kernel, a network or an id.

The script finds its element by class, and all it shows is in the element, so
that the same text works in JupyterLab, in an exported page, and twice on one
page.  Where scripts do not run (a notebook that is not trusted, a page that
strips them) the rounds stand there as text.
"""

from __future__ import annotations

import html
import json
from functools import cache
from importlib import resources
from typing import Any

from grader.report.frames import Content, Film

__all__ = ["page", "player"]


@cache
def _asset(name: str) -> str:
    return resources.files("grader.report").joinpath(name).read_text(encoding="utf-8")


def player(film: Film) -> str:
    """The film as a piece of HTML."""
    data = html.escape(json.dumps(_data(film), separators=(",", ":"), ensure_ascii=False))
    return (
        f"<style>{_asset('player.css')}</style>\n"
        # JupyterLab's own shortcuts would take the arrow keys
        f'<div class="gather-round-replay" data-lm-suppress-shortcuts="true" data-replay="{data}">'
        f"<pre>{html.escape(film.table())}</pre></div>\n"
        f"<script>{_asset('player.js')}</script>"
    )


def page(film: Film) -> str:
    """The film as a whole page."""
    title = html.escape(f"Replay of {film.title} on {film.ranks} ranks")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<style>:root { color-scheme: light dark; } body { font-family: system-ui, sans-serif;"
        " margin: 1.5em; }</style>\n"
        f"<title>{title}</title>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{player(film)}\n"
        "</main>\n</body>\n</html>\n"
    )


def _data(film: Film) -> dict[str, Any]:
    """What the script reads; contents are numbered, since few are different."""
    contents: dict[Content, int] = {}

    def number(content: Content) -> int:
        return contents.setdefault(content, len(contents))

    frames = [
        {
            "cells": [[number(cell) for cell in column] for column in frame.cells],
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
    return {
        "title": film.title,
        "ranks": film.ranks,
        "ring": film.ring,
        "headings": film.headings,
        "frames": frames,
        "contents": [[content.text, content.owners] for content in contents],
    }
