"""The map of the course: a tile for each chapter, filled as its exercises pass.

It is plain HTML and CSS that fits any width; without its style, which front ends take from saved
outputs that are not trusted, it is a list of links.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from urllib.parse import quote

from grader.course.progress import CourseProgress, ExerciseProgress
from grader.course.progress_report import part_sum, progress_cells, progress_look, sum_of
from grader.report.elements import Markup, block, element, escape
from grader.report.looks import THEME, THEME_STYLE, Look

__all__ = ["drawing", "map_html"]

_CLASS = "gather-round-map"

# The second class of a rule is there to outdo the front end's own rules for lists and links.
_STYLE = f"""<style>
.{_CLASS} {{
  font-family: var(--jp-ui-font-family, system-ui, sans-serif); line-height: 1.4;
  container-type: inline-size; max-width: 84em; overflow-wrap: break-word;
  --line: var(--jp-border-color1, light-dark(#bdbdbd, #5f6368));
  --quiet: {Look.UNTOUCHED.colour};
}}
.{_CLASS} p.part {{ margin: 14px 0 6px; font-weight: 600; }}
.{_CLASS} p.quiet {{ margin: 10px 0 0; color: var(--quiet); }}
.{_CLASS} ol.tiles {{
  display: grid; gap: 8px; margin: 0; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 12.5em), 1fr));
}}
.{_CLASS} li.tile {{
  margin: 0; padding: 8px 10px; border: 1px solid var(--line); border-radius: 6px; min-width: 0;
  background: linear-gradient(to right,
    color-mix(in srgb, {Look.PASSED.colour} 16%, transparent) var(--done),
    transparent var(--done));
}}
.{_CLASS} li.next {{ outline: 2px solid {Look.PASSED.colour}; }}
.{_CLASS} .top {{
  display: flex; position: relative; gap: 10px; align-items: center; min-height: 2.8em;
}}
.{_CLASS} svg {{ flex: none; color: var(--quiet); }}
.{_CLASS} li.full svg {{ color: {Look.PASSED.colour}; }}
.{_CLASS} .top a {{ color: inherit; text-decoration: none; }}
.{_CLASS} .top a::after {{ content: ""; position: absolute; inset: 0; }}
.{_CLASS} .top a:is(:hover, :focus-visible) {{ text-decoration: underline; }}
.{_CLASS} summary {{ cursor: pointer; color: var(--quiet); font-size: 0.93em; }}
.{_CLASS} details ul {{ margin: 4px 0 0; padding: 0; list-style: none; }}
.{_CLASS} code {{ overflow-wrap: anywhere; background: none; }}
.{_CLASS} summary span {{ white-space: nowrap; }}
@container (max-width: 400px) {{
  .{_CLASS} ol.tiles {{ grid-template-columns: 1fr; gap: 4px; }}
  .{_CLASS} li.tile {{ padding: 4px 8px; }}
}}
@media (prefers-reduced-motion: no-preference) {{
  .{_CLASS} li.next {{ animation: {_CLASS} 2.4s ease-in-out infinite; }}
  @keyframes {_CLASS} {{
    50% {{ outline-color: color-mix(in srgb, {Look.PASSED.colour} 40%, transparent); }}
  }}
}}
</style>"""


def map_html(overview: CourseProgress) -> Markup:
    """Return a learner's progress as a map: what comes next, and a tile for each chapter."""
    lines = [element("div", *_next_lines(overview))] if overview.exercises else []
    several = len(overview.parts()) > 1
    for part, chapters in overview.parts().items():
        if several:
            lines.append(element("p", part_sum(part, chapters), class_="part"))
        tiles = (_tile(overview, exercises) for exercises in chapters.values())
        lines.append(block("ol", *tiles, class_="tiles"))
    lines.append(element("p", sum_of(overview), class_="quiet"))
    if overview.unknown:
        words = f"in the file, but not in this course: {', '.join(overview.unknown)}"
        lines.append(element("p", words, class_="quiet"))
    mark = element("strong", Look.ERROR.mark, style=f"color: {Look.ERROR.colour}")
    lines += [element("div", mark, f" {text}") for text in overview.trouble]
    name = "The course, and your progress"
    course = block("div", *lines, class_=f"{THEME} {_CLASS}", role="group", aria_label=name)
    return Markup(f"{THEME_STYLE}{_STYLE}\n{course}")


def _next_lines(overview: CourseProgress) -> Sequence[str]:
    following = overview.next
    if following is None:
        return [f"{Look.PASSED.mark} You have passed every exercise of the course."]
    link = _link(overview, following.chapter, following.chapter_title)
    name = element("code", following.name)
    return [element("strong", "Next:"), " ", name, ", in chapter ", link]


def _link(overview: CourseProgress, chapter: str, text: str) -> Markup:
    """Return a chapter's title; where its notebook is found, as a link that opens it."""
    path = overview.notebook(chapter)
    # the number stays with what follows it
    shown = Markup(escape(text).replace(" ·", "&nbsp;·", 1))
    return shown if path is None else element("a", shown, href=quote(path.as_posix()))


def _tile(overview: CourseProgress, exercises: Sequence[ExerciseProgress]) -> Markup:
    first, of = exercises[0].exercise, len(exercises)
    passed = sum(one.passed for one in exercises)
    is_next = overview.next is not None and overview.next.chapter == first.chapter
    link = element("div", _link(overview, first.chapter, first.chapter_title))
    marks = "".join(progress_look(one).mark for one in exercises)
    state = (
        element("span", marks, aria_hidden="true"),
        " ",
        element("span", f"{passed} of {of} passed" + " · next" * is_next),
    )
    rows = element("ul", *map(_row, exercises))
    return element(
        "li",
        element("div", drawing(first.chapter), link, class_="top"),
        element("details", element("summary", *state), rows),
        class_="tile" + " full" * (passed == of) + " next" * is_next,
        style=f"--done: {100 * passed / of:.0f}%",
    )


def _row(progress: ExerciseProgress) -> Markup:
    look = progress_look(progress)
    state, when = progress_cells(progress)
    # what a mark means is said where it is not plain
    words = f" ({state})" if progress.entry and state != look.word else ""
    mark = element("strong", look.mark, style=f"color: {look.colour}")
    name = element("code", progress.exercise.name)
    return element("li", mark, " ", name, words, title=f"last check {when}" if when else None)


# Drawings. ------------------------------------------------------------------------
#
# The ranks of an operation are dots, before it above and after it below, and its messages are
# lines.  A drawing is 32 by 20 units, in the colour of the text around it; it says nothing that
# the title beside it does not.

_ABOVE = tuple((x, 3) for x in (4, 12, 20, 28))
_BELOW = tuple((x, 17) for x in (4, 12, 20, 28))
_RING = ((16, 3), (25, 10), (16, 17), (7, 10))
_TREE = ((16, 3), (8, 10), (24, 10), (4, 17), (12, 17), (20, 17), (28, 17))
_BRANCHES = "M16 3L8 10L4 17M8 10L12 17M16 3L24 10L20 17M24 10L28 17"
_CIRCLE = "M16 3C28 3 28 17 16 17C4 17 4 3 16 3"


def _messages(pairs: str) -> str:
    """Return the lines of messages, each from a rank above to one below: ``01 02``."""
    return "".join(
        f"M{_ABOVE[int(a)][0]} 3L{_BELOW[int(b)][0]} 17" for a, b in map(tuple, pairs.split())
    )


#: Three ranks that all send to all; of four, the lines would be a tangle.
_ABOVE_3, _BELOW_3 = (tuple((x, y) for x in (4, 16, 28)) for y in (3, 17))
_ALL = "".join(f"M{a} 3L{b} 17" for a in (4, 16, 28) for b in (4, 16, 28))

#: By chapter: lines, dots, and dots that are larger, because they hold more.
_DRAWINGS = {
    "00_ranks_and_groups": ("", (), _RING),
    "01_point_to_point": ("M6 10H26M21 6L26 10L21 14", (), ((4, 10), (28, 10))),
    "02_broadcast": (_messages("00 01 02 03"), _BELOW, _ABOVE[:1]),
    "03_scatter_gather": (
        "M16 2L4 10L16 18M16 2L12 10L16 18M16 2L20 10L16 18M16 2L28 10L16 18",
        ((4, 10), (12, 10), (20, 10), (28, 10)),
        ((16, 2), (16, 18)),
    ),
    "04_reduce": (_messages("00 10 20 30"), _ABOVE, _BELOW[:1]),
    "05_all_gather": (_ALL, _ABOVE_3, _BELOW_3),
    "06_reduce_scatter": (_ALL, _BELOW_3, _ABOVE_3),
    "07_all_reduce": (_ALL, (), (*_ABOVE_3, *_BELOW_3)),
    "08_all_to_all": (_ALL, (*_ABOVE_3, *_BELOW_3), ()),
    "09_barrier": ("M22 1V19", ((10, 3), (16, 7), (4, 12), (18, 17)), ()),
    "10_scatter_reduce": (_messages("01 13 21 31"), _ABOVE, (_BELOW[1], _BELOW[3])),
    "11_ring_all_reduce": (_CIRCLE, (), _RING),
    "12_deadlock_clinic": (
        "M7 8C12 2 20 2 25 8M25 8V3M25 8H20M25 12C20 18 12 18 7 12M7 12V17M7 12H12",
        (),
        ((5, 10), (27, 10)),
    ),
    "13_cost_models": ("M4 2V18H29M4 14L28 5M4 8L28 10", (), ()),
    "14_bandwidth": ("M4 2V18H29M4 17C9 6 14 5 28 4", (), ()),
    "15_data_parallel": (
        "M4 3H11V10H4ZM13 3H20V10H13ZM22 3H29V10H22ZM7 10V17H26V10M16 10V17",
        (),
        (),
    ),
    "16_scale_math": ("M5 18V15M12 18V12M19 18V8M26 18V2", (), ()),
    "17_sharded_matmul": ("M3 4H13V16H3ZM8 4V16M19 4H29V16H19ZM19 10H29", (), ()),
    "18_profiling": ("M3 4H12M9 10H21M18 16H29", (), ()),
    "19_backends": ("M16 2V8M6 18V13Q6 8 11 8H21Q26 8 26 13V18M16 8V18", (), ((16, 2),)),
    "20_tree_algorithms": (_BRANCHES, _TREE[1:], _TREE[:1]),
    "21_hierarchy": (
        "M2 2H13V18H2ZM19 2H30V18H19ZM13 10H19",
        ((5, 6), (10, 6), (5, 14), (10, 14), (22, 6), (27, 6), (22, 14), (27, 14)),
        (),
    ),
    "22_failures": ("M16 3C28 3 28 17 16 17M4 7L10 13M10 7L4 13", (), _RING[:3]),
    "23_zero": ("M3 6H29V14H3ZM9.5 6V14M16 6V14M22.5 6V14", (), ()),
    "24_fsdp": (
        "M3 2H29V8H3ZM3 12H29V18H3ZM9.5 2V8M16 2V8M22.5 2V8M9.5 12V18M16 12V18M22.5 12V18",
        (),
        (),
    ),
    "25_pipeline": ("M3 3H11M9 8H17M15 13H23M21 18H29", (), ()),
    "26_tensor_parallel": ("M3 3H14V17H3ZM18 3H29V17H18ZM14 10H18", (), ()),
    "27_context_parallel": (_CIRCLE, _RING, ((16, 10),)),
    "28_expert_parallel": (_messages("02 10 20 33"), _ABOVE, _BELOW),
    "29_less_communication": ("M3 3H29M8 10H24M13 17H19", (), ()),
    "30_capstone": (
        "M4 3H28M4 10H28M4 17H28M4 3V17M16 3V17M28 3V17",
        (),
        tuple((x, y) for x in (4, 16, 28) for y in (3, 10, 17)),
    ),
    # a bug: a head and a body, and six legs
    "31_real_bugs": (
        "M11 10Q11 5 18 5Q26 5 26 10Q26 15 18 15Q11 15 11 10M11 10H26"
        "M14 6L12 2M19 5V1M23 6L26 2M14 14L12 18M19 15V19M23 14L26 18",
        (),
        ((8, 10),),
    ),
}


@cache
def drawing(chapter: str) -> Markup:
    """Return a chapter's drawing as an SVG element; empty where it has none."""
    if chapter not in _DRAWINGS:
        return Markup()
    lines, small, large = _DRAWINGS[chapter]
    # a line of no length with round ends is a dot
    dots = "".join(
        f'<path stroke-width="{width}" d="{"".join(f"M{x} {y}h0" for x, y in places)}"/>'
        for width, places in ((3, small), (5, large))
        if places
    )
    return Markup(
        '<svg aria-hidden="true" viewBox="0 0 32 20" width="40" height="25" fill="none"'
        f' stroke="currentColor" stroke-linecap="round"><path d="{lines}"/>{dots}</svg>'
    )
