"""The calculator of chapter 16, by the name that notebooks import."""

from grader.course.calculator import calculator

__all__ = ["calculator"]
