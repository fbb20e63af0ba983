"""The functions that a student calls from a notebook cell or a script, and what they return."""

from grader.api.checks import Check, Points, check, points
from grader.api.guidance import Hints, Progress, Reset, hint, progress, reset
from grader.api.predictions import Prediction, predict
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
