"""The exercises as tasks, for programs that answer."""

import json
from argparse import ArgumentParser, Namespace

from grader.cli.options import add_json


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "exercises",
        metavar="EXERCISE",
        nargs="*",
        help="the exercises to show; all if none is named",
    )
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the tasks."""
    from grader.course.index import course_index

    index = course_index()
    wanted = [index[name] for name in dict.fromkeys(options.exercises)] or list(index.values())
    from grader.api import catalogue
    from grader.classroom.tasks import chapter_until, tasks_as_dict

    if options.json:
        print(json.dumps(tasks_as_dict(wanted, catalogue()), ensure_ascii=False, indent=1))
        return 0
    for entry in wanted:
        print(f"{chapter_until(entry)[1]}\n\n```python\n{entry.stub}\n```\n")
    return 0
