"""Begin an exercise of your own, in a checkout."""

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("what", choices=["exercise"], help="what to begin")
    parser.add_argument("name", metavar="NAME", help="its name, such as tree_broadcast")
    parser.add_argument(
        "--chapter", metavar="NN_TOPIC", required=True, help="its chapter, which may be new"
    )


def run(options: Namespace) -> int:
    """Write the exercise, and say what comes next."""
    from grader.cli.skeleton import write_exercise
    from grader.course.index import course_index

    for path in write_exercise(Path.cwd(), options.chapter, options.name, course_index()):
        print(path.relative_to(Path.cwd()))
    number = options.chapter.partition("_")[0]
    print(f"Now: make notebooks ARGS={number} && make check ARGS={options.name}")
    return 0
