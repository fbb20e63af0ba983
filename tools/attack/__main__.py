"""The command: ``python -m tools.attack``."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grader.sandbox.sandboxes import missing
from tools.attack.payloads import FAMILIES
from tools.attack.trial import CANARY, Judging, Told, successes
from tools.attack.variants import Variant, variant

__all__ = ["main"]

FOUND = Path(__file__).resolve().parents[2] / "build" / "attack"

#: In what an attack may succeed.
WAYS = ("forged", "stalled", "blamed", "leaked")


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack as often as asked; 0 if nothing has succeeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--count", type=int, help="how many variants; 100, unless --seconds is given"
    )
    parser.add_argument("--seconds", type=float, help="after how long no further one is begun")
    parser.add_argument("--seed", type=int, default=1, help="of the first variant; they count up")
    parser.add_argument("--family", choices=FAMILIES, default="", help="attack with this one only")
    parser.add_argument("--to", type=Path, default=FOUND, help="the folder for those that succeed")
    request = parser.parse_args(arguments)
    console = Console(highlight=False)
    if lacking := missing():
        console.print(f"there is no sandbox to attack here: {lacking}", markup=False)
        return 2
    count = request.count if request.count is not None or request.seconds else 100
    until = time.monotonic() + request.seconds if request.seconds else None
    tried: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    os.environ["GRADER_CANARY"] = CANARY
    # whoever has seen enough ends it with Ctrl-C, and is told what has been found so far
    with contextlib.suppress(KeyboardInterrupt), Judging() as judging:
        for seed in itertools.count(request.seed):
            if seed - request.seed == count or (until and time.monotonic() > until):
                break
            attack = variant(seed, request.family)
            tried[attack.payload.family] += 1
            told, ways = confirmed(judging, attack)
            found.update((attack.payload.family, way) for way in dict(ways))
            if ways:
                place = _keep(request.to, attack, told, ways)
                console.print(f"{attack.title}\n  kept in {place}", markup=False, soft_wrap=True)
                for way, shown in ways:
                    console.print(f"  {way}: {shown}", markup=False, soft_wrap=True)
    _print(console, tried, found)
    return 1 if found else 0


def confirmed(judging: Judging, attack: Variant) -> tuple[Told, list[tuple[str, str]]]:
    """Return what came of a variant, without a delay that it does not show a second time.

    A machine that is busy with something else delays the judge, too.
    """
    told = judging.trial(attack)
    ways = list(successes(attack.exercise, attack.works, told))
    if "stalled" in dict(ways):
        again = dict(successes(attack.exercise, attack.works, judging.trial(attack)))
        ways = [(way, shown) for way, shown in ways if way != "stalled" or way in again]
    return told, ways


def _keep(folder: Path, attack: Variant, told: Told, ways: list[tuple[str, str]]) -> Path:
    """Write the files of a variant that has succeeded, and what came of it."""
    place = folder / f"{attack.payload.family} {attack.seed}"
    place.mkdir(parents=True, exist_ok=True)
    for label, data in attack.files:
        (place / label).write_bytes(data)
    text = json.dumps({"title": attack.title, "ways": ways, "told": asdict(told)}, indent=1)
    (place / "told.json").write_text(text[: 1 << 20], encoding="utf-8")
    return place


def _print(console: Console, tried: Counter[str], found: Counter[tuple[str, str]]) -> None:
    table = Table(box=None)
    table.add_column("family")
    for heading in ("tried", *WAYS):
        table.add_column(heading, justify="right")
    for family in sorted(tried):
        counts = (tried[family], *(found[family, way] for way in WAYS))
        table.add_row(family, *map(str, counts))
    table.add_row("all", *map(str, (tried.total(), *(_sum(found, way) for way in WAYS))))
    console.print(table)


def _sum(found: Counter[tuple[str, str]], way: str) -> int:
    return sum(count for (_, one), count in found.items() if one == way)


if __name__ == "__main__":
    sys.exit(main())
