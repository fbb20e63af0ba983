"""The judge: it makes a verdict of an exercise, a submission and a launcher.

This room decides which case is run next, assesses its outcome, counts what it earns, and keeps a
learner's progress.  Its door: :class:`~grader.judge.judge.Judge`.
"""
