"""What ranks send each other: recorded, matched, timed, and judged for deadlock.

- :mod:`~grader.traffic.events` — what a rank reports, as small messages.
- :mod:`~grader.traffic.recorder` — the rank's side: numbers, checks, reports.
- :mod:`~grader.traffic.requests` — what operations return, to be waited for.
- :mod:`~grader.traffic.group` — the recording process group around gloo.
- :mod:`~grader.traffic.guard` — the ways around it, closed.
- :mod:`~grader.traffic.board` — the other side: sends matched with receives.
- :mod:`~grader.traffic.waits` — who waits for whom, and who can never go on.
- :mod:`~grader.traffic.trace` — the finished record, and its numbers.
- :mod:`~grader.traffic.rounds` — the record replayed in unit time.
- :mod:`~grader.traffic.causality` — who can know that who has begun.
"""
