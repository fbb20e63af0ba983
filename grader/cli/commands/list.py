"""The exercises, by chapter."""

import json
from argparse import ArgumentParser, Namespace

from grader.cli.options import add_json


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser, "array")


def run(options: Namespace) -> int:
    """Print the exercises."""
    from grader.course.index import course_index

    exercises = course_index()
    if options.json:
        rows = [
            {
                "name": e.name,
                "chapter": e.chapter,
                "signature": e.signature,
                "summary": e.summary,
                "max_score": e.points,
                "world_sizes": list(e.world_sizes),
            }
            for e in exercises.values()
        ]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    from rich.console import Console
    from rich.text import Text

    from grader.report.summary import points

    console = Console(highlight=False)
    part = ""
    for chapter, members in exercises.chapters().items():
        if members[0].part != part:
            part = members[0].part
            console.print(Text(part, style="bold underline"))
        worth = points(sum(exercise.points for exercise in members))
        console.print(Text(chapter, style="bold").append(f"  worth {worth}", style="not bold dim"))
        for exercise in members:
            console.print(Text(f"{points(exercise.points):>4}  {exercise.signature}"))
            console.print(Text(f"      {exercise.summary}", style="dim"))
    worth = points(sum(exercise.points for exercise in exercises.values()))
    console.print(f"{len(exercises)} exercises, {worth} points")
    return 0
