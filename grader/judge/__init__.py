"""An exercise, a submission and a launcher: the verdict.

Which case is run next, what came of it, what it earns, and a learner's progress.
Its door: :class:`~grader.judge.judge.Judge`.
"""
