"""HTML from elements: text in them is escaped, unless it is markup already."""

from __future__ import annotations

import html
from collections.abc import Iterable

from headcount.report import visible

__all__ = ["Markup", "block", "element", "escape", "join", "page"]


class Markup(str):
    """Text that is HTML or SVG already, so that it is not escaped again."""


def escape(content: object) -> Markup:
    """Return anything as markup."""
    return content if isinstance(content, Markup) else Markup(html.escape(visible(str(content))))


def join(contents: Iterable[object], between: str = "") -> Markup:
    """Return several pieces of text or markup as one."""
    return Markup(between.join(map(escape, contents)))


def element(name: str, *contents: object, **attributes: object) -> Markup:
    """Return an HTML element.

    Args:
        name: its tag.
        contents: text and markup in it.
        attributes: by name, with underscores for dashes, and one at the end of a word that Python
            reserves; one that is None is left out, and one that is True has no value.
    """
    return Markup(f"<{name}{_written(attributes)}>{join(contents)}</{name}>")


def block(name: str, *contents: object, **attributes: object) -> Markup:
    """Return an HTML element with each of its contents on a line of its own."""
    return element(name, "\n", join(contents, "\n"), "\n", **attributes)


def page(title: str, content: Markup) -> Markup:
    """Return a whole page in the reader's theme, which needs nothing beside it."""
    return Markup(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<style>:root { color-scheme: light dark; } body { font-family: system-ui, sans-serif;"
        " margin: 1.5em; background: light-dark(#fff, #111); }</style>\n"
        f"{element('title', title)}\n</head>\n<body>\n<main>\n{element('h1', title)}\n"
        f"{content}\n</main>\n</body>\n</html>\n"
    )


def _written(attributes: dict[str, object]) -> str:
    found = ""
    for name, value in attributes.items():
        if value is not None:
            found += f" {name.rstrip('_').replace('_', '-')}"
            found += "" if value is True else f'="{escape(value)}"'
    return found
