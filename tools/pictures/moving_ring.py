"""The picture that moves: a ring all-reduce on four ranks, as an SVG that plays by itself.

An ``img`` runs no script and asks for no trust, so the motion is CSS alone: it plays in a notebook
without a kernel, on GitHub and on the site.  Each of the four chunks has a track of its own, on
which one packet goes round: three hops in which every rank adds its number, and three in which
the sum is left behind on every rank.  Who asks for less motion sees one moment of it, and so does
a program that draws no animations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from tools.pictures.common import EDGE, GROUND, N

__all__ = ["MOVING"]

_WIDTH, _HEIGHT = 880, 430

#: Half axes of the ellipse on which each chunk travels; ranks are above, right, below and left.
_TRACKS = ((112, 50), (184, 87), (256, 124), (328, 161))

#: A number's box.
_BOX = (60, 30)

#: Seconds: before the first hop, a hop, the rest after it, the rest between the two phases, the
#: sums at the end, and on the way back to the beginning.
_START, _HOP, _REST, _TURN, _END, _BACK = 0.9, 0.8, 0.25, 0.35, 1.1, 0.35
_FADE = 0.15

_HOPS = 2 * (N - 1)
_DEPARTURES = tuple(
    _START + hop * (_HOP + _REST) + (_TURN if hop >= N - 1 else 0) for hop in range(_HOPS)
)
_ARRIVALS = tuple(time + _HOP for time in _DEPARTURES)
_RESET = _ARRIVALS[-1] + _REST + _END
_LENGTH = _RESET + _BACK

#: The moment that stands still: the packets carry three of four numbers, half way to the last rank.
_STILL = (_DEPARTURES[2] + _ARRIVALS[2]) / 2

#: How much is left of a sum that has been passed on.
_LEFT_BEHIND = 0.3


# What is seen when. ---------------------------------------------------------------


@dataclass(frozen=True)
class _Track:
    """A number that changes with time: opacity, or degrees on the ring.

    Attributes:
        points: seconds and values; between two of them it changes smoothly.
    """

    points: tuple[tuple[float, float], ...]

    def at(self, time: float) -> float:
        """Return the value at a time, half way between two points where it is between them."""
        before = [value for second, value in self.points if second <= time][-1]
        after = next(value for second, value in self.points if second >= time)
        return (before + after) / 2

    def keyframes(self, form: str) -> str:
        """Return the frames in CSS; ``form`` makes a declaration of a value."""
        return "".join(
            f"{_short(100 * second / _LENGTH)}%{{{form.format(_short(value))}}}"
            for second, value in self.points
        )


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _opacity(*changes: tuple[float, float], first: float = 0) -> _Track:
    """Return an opacity that begins with ``first``, takes other values, and goes back to it."""
    points, value = [(0.0, first)], first
    for second, then in changes:
        points += [(second, value), (second + _FADE, then)]
        value = then
    return _Track((*points, (_RESET, value), (_LENGTH, first)))


def _angle(sign: int) -> _Track:
    points = [(0.0, 0.0)]
    for hop, (start, end) in enumerate(zip(_DEPARTURES, _ARRIVALS, strict=True)):
        points += [(start, sign * 90.0 * hop), (end, sign * 90.0 * (hop + 1))]
    return _Track((*points, (_LENGTH, sign * 90.0 * _HOPS)))


def _opacities() -> dict[str, _Track]:
    """The opacity of everything that comes and goes, by its class."""
    leave, arrive = _DEPARTURES, _ARRIVALS
    lifted = leave[0] - 2 * _FADE
    found = {
        # what a rank holds at first, by how many hops away the packet begins
        "own0": _opacity((leave[0], _LEFT_BEHIND), first=1),
        **{f"own{hop}": _opacity((arrive[hop - 1], 0), first=1) for hop in range(1, N)},
        # sums of some ranks, until they are passed on
        **{
            f"part{hop}": _opacity((arrive[hop - 1], 1), (leave[hop], _LEFT_BEHIND))
            for hop in range(1, N - 1)
        },
        # the whole sum
        **{f"sum{hop}": _opacity((arrive[hop - 1], 1)) for hop in range(N - 1, _HOPS + 1)},
        "packet": _opacity((lifted, 1), (arrive[-1] + _REST, 0)),
        # what a packet carries
        "load1": _opacity((arrive[0], 0), first=1),
        **{
            f"load{hop}": _opacity((arrive[hop - 2], 1), (arrive[hop - 1], 0))
            for hop in range(2, N)
        },
        f"load{N}": _opacity((arrive[N - 2], 1)),
        **dict.fromkeys(("done", "after"), _opacity((arrive[-1] + _REST, 1))),
        # the words in the middle
        "before": _opacity((lifted, 0), first=1),
        "adding": _opacity((lifted, 1), (leave[N - 1] - 2 * _FADE, 0)),
        "passing": _opacity((leave[N - 1] - 2 * _FADE, 1), (arrive[-1] + _REST, 0)),
    }
    begins = [lifted, *leave[1:3], leave[3] - 2 * _FADE, *leave[4:], arrive[-1] + _REST]
    for step in range(_HOPS):
        found[f"step{step + 1}"] = _opacity((begins[step], 1), (begins[step + 1], 0))
    return found


# How it looks. --------------------------------------------------------------------


def _origin_colours() -> list[tuple[str, str]]:
    """Return a rank's colour on a light and on a dark page, as the player has them."""
    style = resources.files("grader.report").joinpath("player.css").read_text(encoding="utf-8")
    pattern = r"\.gr-data(\d) \{ fill: light-dark\((#\w{6}), (#\w{6})\); \}"
    found = {int(rank): (light, dark) for rank, light, dark in re.findall(pattern, style)}
    return [found[rank] for rank in range(N)]


_CARD = "#%02x%02x%02x"

#: Colours of a light and of a dark page, as CSS variables: the card's ground and its edge, ink,
#: fainter words, the ground of a rank, and what says that it is done.
_PARTS = ("ground", "edge", "ink", "faint", "panel", "good")
_LIGHT = (_CARD % GROUND, _CARD % EDGE, "#1a1a1a", "#56606b", "#ffffff", "#007a59")
_DARK = ("#14181d", "#3a424b", "#f2f2f2", "#a8b3be", "#1f252c", "#5fd3ae")


def _colours(page: Sequence[str], of_ranks: Sequence[str]) -> str:
    names = (*_PARTS, *(f"rank{rank}" for rank in range(N)))
    pairs = zip(names, (*page, *of_ranks), strict=True)
    return "svg{" + ";".join(f"--{name}:{colour}" for name, colour in pairs) + "}"


def _style() -> str:
    light, dark = zip(*_origin_colours(), strict=True)
    opacities, angles = _opacities(), {"turn": _angle(1), "upright": _angle(-1)}
    still = "".join(f".{name}{{opacity:{_short(o.at(_STILL))}}}" for name, o in opacities.items())
    still += "".join(
        f".{name}{{transform:rotate({_short(angle.at(_STILL))}deg)}}"
        for name, angle in angles.items()
    )
    moving = "".join(
        f"@keyframes {name}{{{track.keyframes(form)}}}.{name}{{animation-name:{name}}}"
        for tracks, form in ((opacities, "opacity:{}"), (angles, "transform:rotate({}deg)"))
        for name, track in tracks.items()
    )
    every = ",".join(f".{name}" for name in (*opacities, *angles))
    return (
        f"{_colours(_LIGHT, light)}@media (prefers-color-scheme:dark){{{_colours(_DARK, dark)}}}"
        "svg{font:17px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
        "font-variant-numeric:tabular-nums}text{fill:var(--ink);text-anchor:middle}"
        ".name,.what{font-weight:600}.what{font-size:18px}.how{font-size:15px;fill:var(--faint)}"
        ".card{fill:var(--ground);stroke:var(--edge);stroke-width:1.5}"
        ".panel{fill:var(--panel);stroke:var(--edge);stroke-width:1.5}"
        ".way{fill:none;stroke:var(--edge);stroke-width:1.5}"
        ".head{fill:none;stroke:var(--faint);stroke-width:1.8}"
        ".frame{fill:none;stroke:var(--faint);stroke-width:1}.empty{fill:var(--panel)}"
        ".skin{fill:none;stroke:var(--ink);stroke-width:2.6}.packet{font-weight:700}"
        ".done{fill:none;stroke:var(--good);stroke-width:3}"
        + "".join(f".r{rank}{{fill:var(--rank{rank})}}" for rank in range(N))
        + still
        + "@media (prefers-reduced-motion:no-preference){"
        + f"{every}{{animation:{_short(_LENGTH)}s cubic-bezier(.45,.05,.3,1) infinite}}"
        + moving
        + "}"
    )


def _content(chunk: int, owners: Sequence[int]) -> str:
    """Return a number, on the colours of the ranks whose numbers are in it.

    The digits are in the order of the colours: the last is that of rank 0.
    """
    width, height = _BOX
    part = width / len(owners)
    fills = "".join(
        f'<rect class="r{owner}" x="{_short(place * part - width / 2)}" y="{-height // 2}"'
        f' width="{_short(part)}" height="{height}"/>'
        for place, owner in enumerate(sorted(owners, reverse=True))
    )
    number = sum((chunk + 1) * 10**owner for owner in owners)
    return f'{fills}<text y="6">{number}</text>'


def _name(chunk: int, owners: Sequence[int]) -> str:
    return f"n{chunk}" + "".join(str(owner) for owner in sorted(owners))


def _summed(chunk: int, hops: int) -> list[int]:
    """Return whose numbers are in the packet of a chunk as it makes a hop, counted from 1."""
    return [(chunk + 1 + place) % N for place in range(min(hops, N))]


def _use(chunk: int, owners: Sequence[int], look: str) -> str:
    return f'<use class="{look}" href="#{_name(chunk, owners)}"/>'


def _definitions() -> Iterator[str]:
    width, height = _BOX
    box = f'x="{-width // 2}" y="{-height // 2}" width="{width}" height="{height}"'
    yield f'<clipPath id="round"><rect {box} rx="8"/></clipPath>'
    yield f'<rect id="skin" class="skin" {box} rx="8"/><rect id="frame" class="frame" {box}/>'
    yield f'<rect id="empty" class="empty" {box}/>'
    drawn = [(chunk, [rank]) for chunk in range(N) for rank in range(N)]
    drawn += [(chunk, _summed(chunk, hops)) for chunk in range(N) for hops in range(2, N + 1)]
    for chunk, owners in drawn:
        yield f'<g id="{_name(chunk, owners)}">{_content(chunk, owners)}</g>'


def _place(rank: int, chunk: int) -> tuple[int, int]:
    across, down = _TRACKS[chunk]
    return ((0, -down), (across, 0), (0, down), (-across, 0))[rank]


def _panel(rank: int) -> str:
    """Return the attributes of the box around a rank's numbers."""
    places = [_place(rank, chunk) for chunk in range(N)]
    left, top = (min(place[axis] for place in places) - _BOX[axis] / 2 - 7 for axis in (0, 1))
    right, bottom = (max(place[axis] for place in places) + _BOX[axis] / 2 + 7 for axis in (0, 1))
    return (
        f'x="{_short(left)}" y="{_short(top)}" width="{_short(right - left)}"'
        f' height="{_short(bottom - top)}" rx="9"'
    )


def _ways() -> Iterator[str]:
    """Draw the tracks, with a head half way between two ranks that says which way they go."""
    for across, down in _TRACKS:
        yield f'<ellipse class="way" rx="{across}" ry="{down}"/>'
        x, y = across * 0.5**0.5, down * 0.5**0.5
        for sign, turned in ((1, -1), (1, 1), (-1, 1), (-1, -1)):
            # along the tangent, clockwise
            along = (across * -turned, down * sign)
            length = (along[0] ** 2 + along[1] ** 2) ** 0.5
            dx, dy = (part / length for part in along)
            cx, cy = sign * x, turned * y
            tip = (cx + 4 * dx, cy + 4 * dy)
            wings = [(cx - 4 * dx + side * 5 * dy, cy - 4 * dy - side * 5 * dx) for side in (1, -1)]
            points = " ".join(f"{_short(a)},{_short(b)}" for a, b in (wings[0], tip, wings[1]))
            yield f'<polyline class="head" points="{points}"/>'


def _ranks() -> Iterator[str]:
    names = ((0, -190, ""), (371, 6, "start"), (0, 201, ""), (-371, 6, "end"))
    for rank, (x, y, anchor) in enumerate(names):
        aligned = f' style="text-anchor:{anchor}"' if anchor else ""
        yield f'<rect class="panel" {_panel(rank)}/><rect class="done" {_panel(rank)}/>'
        yield f'<text class="name" x="{x}" y="{y}"{aligned}>rank {rank}</text>'
        for chunk in range(N):
            x, y = _place(rank, chunk)
            away = (rank - chunk - 1) % N
            yield f'<g transform="translate({x} {y})"><use href="#empty"/>'
            yield _use(chunk, [rank], f"own{away}")
            if 0 < away < N - 1:
                yield _use(chunk, _summed(chunk, away + 1), f"part{away}")
            yield _use(chunk, range(N), f"sum{away if away == N - 1 else away + N}")
            yield '<use href="#frame"/></g>'


def _packets() -> Iterator[str]:
    """Draw the packets: turned round the middle, squeezed to an ellipse, and kept upright."""
    for chunk, (across, down) in enumerate(_TRACKS):
        first, squeezed = 90 * ((chunk + 1) % N), f"{down / across:.5f}"
        yield f'<g transform="scale(1 {squeezed})"><g class="turn">'
        yield f'<g transform="rotate({first}) translate(0 {-across}) rotate({-first})">'
        yield f'<g class="upright"><g transform="scale(1.08 {1.08 * across / down:.5f})">'
        yield '<g class="packet"><g clip-path="url(#round)">'
        for hop in range(1, N + 1):
            yield _use(chunk, _summed(chunk, hop), f"load{hop}")
        yield '</g><use href="#skin"/></g></g></g></g></g></g>'


def _words() -> Iterator[str]:
    """Write what happens into the middle."""
    steps = [(f"step{step}", "", f"step {step} of {_HOPS}") for step in range(1, _HOPS + 1)]
    for look, what, how in (
        ("before", "Four tensors", "one on each rank"),
        ("adding", "Add up", ""),
        ("passing", "Pass on", ""),
        *steps,
        ("after", "The sum", "on every rank"),
    ):
        yield f'<g class="{look}">'
        if what:
            yield f'<text class="what" y="-3">{what}</text>'
        if how:
            yield f'<text class="how" y="17">{how}</text>'
        yield "</g>"


def ring_all_reduce() -> str:
    """A ring all-reduce on four ranks, in six steps, with the numbers that travel."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
            f' viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
            "<title>Ring all-reduce on four ranks</title>",
            f"<style>{_style()}</style>",
            "<defs>",
            *_definitions(),
            "</defs>",
            f'<rect class="card" x="1" y="1" width="{_WIDTH - 2}" height="{_HEIGHT - 2}" rx="14"/>',
            f'<g transform="translate({_WIDTH // 2} {_HEIGHT // 2})">',
            *_ways(),
            *_ranks(),
            *_packets(),
            *_words(),
            "</g>",
            "</svg>",
            "",
        ]
    )


MOVING = (ring_all_reduce,)
