"""The functions that a student calls from a notebook cell or a script, and what they return."""

from grader.api.checks import Check, Points, check, points
from grader.api.course_progress import Progress, progress
from grader.api.hints import Hints, hint
from grader.api.predictions import Prediction, predict
from grader.api.resets import Reset, reset
from grader.api.runs import Run, run
from grader.api.session import catalogue, fresh_seed

__all__ = [
    "Check",
    "Hints",
    "Points",
    "Prediction",
    "Progress",
    "Reset",
    "Run",
    "catalogue",
    "check",
    "fresh_seed",
    "hint",
    "points",
    "predict",
    "progress",
    "reset",
    "run",
]
