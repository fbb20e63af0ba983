"""How pages are made: templates that escape everything, one style, one script.

Three walls stand between what a stranger wrote and the reader's browser.
Every value that a template prints is escaped, and its control characters are
spelled out, whoever wrote the template.  No data are given to the script: it
reads the table that everybody sees, so there is no JavaScript to break out of.
And a page's content security policy lets nothing run but that one script, by
its hash, and nothing be loaded at all.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from grader.core import __version__
from grader.report.html import exercise_html
from grader.report.summary import points, visible

__all__ = ["page"]

_HERE = "grader.classroom.outputs"


def page(template: str, script: str = "", **values: Any) -> str:
    """A whole page.

    Args:
        template: its file's name.
        script: the file's name of the one script that may run.
        values: what the template prints.
    """
    code = _asset(script) if script else ""
    return (
        _environment()
        .get_template(template)
        .render(
            values,
            style=Markup(_asset("page.css")),
            script=Markup(code),
            policy=_policy(code),
            version=__version__,
        )
    )


@cache
def _asset(name: str) -> str:
    return resources.files(_HERE).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader(_HERE, "assets"),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "points": points,
        "percent": lambda share: f"{share:.0%}".replace("%", " %"),
        "seconds": lambda value: f"{value:.1f}" if value >= 0.05 else f"{value:.2f}",
        "count": _count,
        "moment": _moment,
        "card": lambda verdict: Markup(exercise_html(verdict)),
    }
    return found


def _printable(value: Any) -> Any:
    """What a template prints, without characters that a reader cannot see."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value
    return visible(value)


def _moment(iso: str) -> str:
    """A point in time as people write it; not in words, which would be one language's."""
    try:
        found = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{found:%Y-%m-%d %H:%M} {found.tzname() or ''}".rstrip()


def _count(number: int, one: str, many: str = "") -> str:
    """``1 student``, ``2 students``."""
    return f"{number} {one if number == 1 else many or one + 's'}"
