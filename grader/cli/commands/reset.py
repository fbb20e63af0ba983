"""Begin an exercise again; your old text is kept."""

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("notebook", metavar="NOTEBOOK", help="your notebook of the chapter")
    parser.add_argument("exercise", metavar="EXERCISE", help="the exercise to begin again")


def run(options: Namespace) -> int:
    """Put the stub back, and say where the old text is."""
    from grader.cli.reset import reset
    from grader.course.index import course_index

    exercise = course_index()[options.exercise]
    kept = reset(Path(options.notebook), exercise)
    if kept is None:
        print(f"{exercise.name} in {options.notebook} is the stub already; nothing is changed")
        return 0
    print(f"{exercise.name} in {options.notebook} begins again. What you had is in {kept}")
    print("If JupyterLab has the notebook open: File, Reload Notebook from Disk")
    return 0
