"""Where ranks live, and how they are started, watched and ended.

- :mod:`~grader.worlds.base` — what a world is, whoever implements it.
- :mod:`~grader.worlds.processes` — a world of processes on gloo.
- :mod:`~grader.worlds.crew` — the processes of a world, from their supervisor's side.
- :mod:`~grader.worlds.forkserver`, :mod:`~grader.worlds.spawner` — start and end them.
- :mod:`~grader.worlds.launch` — chooses between the two.
- :mod:`~grader.worlds.server` — the warm process that ranks are forked from.
- :mod:`~grader.worlds.rank` — what runs in a rank.
- :mod:`~grader.worlds.watch` — hears the ranks, and knows when it is over.
- :mod:`~grader.worlds.causes` — the cause among the consequences.
- :mod:`~grader.worlds.wire`, :mod:`~grader.worlds.codec` — messages and values as bytes.
"""
