"""Pictures of what ranks do.

- :mod:`~grader.pictures.drawing` — the shapes that pictures are made of.
- :mod:`~grader.pictures.frames` — a watched run, round by round.
- :mod:`~grader.pictures.lanes` — a run in time, rank by rank.
- :mod:`~grader.pictures.player` — the rounds as a page to step through.
- :mod:`~grader.pictures.strip` — the rounds side by side, as a still picture.
- :mod:`~grader.pictures.timeline` — the run in time, as a still picture.
"""
