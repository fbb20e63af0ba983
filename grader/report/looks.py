"""How things look: outcomes, ranks of a run that hangs, and the theme that pictures follow.

A page says in CSS whether it is light or dark, with the property ``color-scheme``, and everything
shown here follows it: replays by the function ``light-dark()``, graphs, timelines and still
pictures as SVG images, in which a browser answers ``prefers-color-scheme`` by that property of
their ``img``.  JupyterLab, VS Code and Sphinx's themes do not set it; they name their theme in an
attribute or a class, which :data:`THEME_STYLE` translates.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from urllib.parse import quote

from grader.exercise.verdict import Status
from grader.report.elements import Markup, element, escape

__all__ = [
    "Look",
    "STANDING_DARK",
    "STANDING_STYLE",
    "Standing",
    "THEME",
    "THEME_STYLE",
    "dark_style",
    "themed_image",
]


# The theme of the page. -----------------------------------------------------------

#: The class of an element that follows the page's theme.
THEME = "gather-round"

#: The rules that make it do so; a page that names no theme follows the system, and paper is white.
THEME_STYLE = f"""<style>.{THEME} {{ color-scheme: light dark; }}
:is([data-jp-theme-light="true"], [data-theme="light"], .vscode-light) .{THEME} {{ color-scheme: light; }}
:is([data-jp-theme-light="false"], [data-theme="dark"], .vscode-dark) .{THEME} {{ color-scheme: dark; }}
@media print {{ .{THEME}.{THEME}.{THEME} {{ color-scheme: light; }} }}</style>"""  # noqa: E501


def dark_style(colours: Mapping[str, str]) -> str:
    """Return the style of an SVG image that has other colours on a dark page.

    Args:
        colours: for every colour that is drawn the one that takes its place.
    """
    rules = "".join(
        f"[fill='{light}']{{fill:{dark}}}[stroke='{light}']{{stroke:{dark}}}"
        for light, dark in colours.items()
    )
    return f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"


def themed_image(svg: str, words: str, look: str = "", least: float = 0) -> Markup:
    """Return an SVG as an ``img`` element that follows the page's theme.

    Notebooks that are not trusted remove vector graphics and styles from HTML, but keep images; the
    image follows the system there.

    Args:
        svg: the picture, with a ground of its own in either theme.
        words: what it shows, for readers who cannot see it.
        look: further CSS of the element.
        least: pixels below which it does not shrink; a narrower page scrolls it sideways.
    """
    # these characters stay readable in a stored notebook, and none ends the attribute
    source = quote(svg, safe=" ='/:;,()-.+")
    width = f"; min-width: {least:.0f}px" if least else ""
    image = Markup(
        f'{THEME_STYLE}<img class="{THEME}" alt="{escape(words)}"'
        f' style="max-width: 100%{width}{look}" src="data:image/svg+xml,{source}" />'
    )
    return element("div", image, style="overflow-x: auto") if least else image


# Ranks of a run that hangs. -------------------------------------------------------


class Standing(Enum):
    """How a rank stands where a run hangs, the same in graphs, replays and time lines.

    The wire from a rank to one that it waits for is dashed and has the colour of the rank.  A word
    stands beside every colour.

    Attributes:
        word: what the rank does.
        line: the colour of lines and of words on the page's ground, on a light and on a dark page.
        ground: the colour behind words, on both.
    """

    word: str
    line: tuple[str, str]
    ground: tuple[str, str]

    def __new__(
        cls, value: str, word: str, line: tuple[str, str], ground: tuple[str, str]
    ) -> Standing:
        """Make a member whose value is the name alone."""
        member = object.__new__(cls)
        member._value_ = value
        member.word, member.line, member.ground = word, line, ground
        return member

    WAITS = "waits", "waits", ("#9a5b00", "#ffc247"), ("#ffdf94", "#453000")
    CYCLE = "cycle", "waits in a cycle", ("#c01f1f", "#ff8a80"), ("#fbd9d6", "#571a17")
    ENDED = "ended", "has returned", ("#5f5f5f", "#b4b4b4"), ("#d9d9d9", "#434343")
    RUNS = "runs", "can go on", ("#4d4d4d", "#c2c2c2"), ("#fefefe", "#121212")


#: The colours of SVG images on a dark page, for :func:`dark_style`.
STANDING_DARK = dict(pair for of in Standing for pair in (of.line, of.ground))

#: The colours as CSS variables, such as ``--waits`` and ``--waits-ground``.
STANDING_STYLE = " ".join(
    f"--{of.value}: light-dark({', '.join(of.line)});"
    f" --{of.value}-ground: light-dark({', '.join(of.ground)});"
    for of in Standing
)


# Outcomes. ------------------------------------------------------------------------

# JupyterLab's own colours, in either of its themes; elsewhere those of the page's scheme. Of its
# reds only this one can be read as text on both grounds.
_GREEN = "var(--jp-success-color0, light-dark(#1b5e20, #8fdcae))"
_RED = "var(--jp-error-color1, light-dark(#b71c1c, #ff9f8c))"
_AMBER = "var(--jp-warn-color0, light-dark(#8a5300, #f0c568))"


class Look(str, Enum):
    """How an exercise, a case or a check of this machine came out.

    The value is also the name of the CSS class on an instructor's pages
    (``classroom/assets/page.css``), where backgrounds differ and not the text.

    Attributes:
        mark: one character, so that nothing is told by colour alone.
        word: what it is called.
        terminal: its style in :mod:`rich`.
        colour: its colour in HTML.
    """

    mark: str
    word: str
    terminal: str
    colour: str

    def __new__(cls, value: str, mark: str, word: str, terminal: str, colour: str) -> Look:
        """Make a member whose value is the name alone."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.mark, member.word = mark, word
        member.terminal, member.colour = terminal, colour
        return member

    PASSED = "passed", "✓", "passed", "green", _GREEN
    HALF = "half", "½", "right, but misses the point", "yellow", _AMBER
    PARTLY = "partly", "±", "some points", "yellow", _AMBER
    FAILED = "failed", "✗", "failed", "red", _RED
    HUNG = "hung", "∞", "hung", "red", _RED
    UNTOUCHED = (
        "empty",
        "○",
        "not attempted",
        "dim",
        "var(--jp-ui-font-color2, light-dark(#5f6368, #a3adb7))",
    )
    SKIPPED = "skipped", "–", "not judged here", "yellow", _AMBER
    ERROR = "error", "!", "the grader failed", "magenta", _AMBER

    __str__ = str.__str__

    @classmethod
    def from_status(cls, status: Status) -> Look:
        """Return the outcome that shows a status, where no more is told apart."""
        return cls[status.name]
