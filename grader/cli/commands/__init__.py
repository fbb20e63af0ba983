"""The commands: a module for each, with its name.

Its docstring is what ``--help`` says of it; ``add_arguments(parser)`` declares its arguments, and
``run(options)`` serves a request and returns the exit status.  A module is imported when its
command is asked for; what takes long, torch above all, it imports as it runs, after it has refused
what is wrong with the request.
"""

__all__ = ["COMMANDS"]

#: The commands, in the order of ``--help``.
COMMANDS = (
    *("list", "tasks", "score", "check", "hint", "progress", "reset"),
    *("people", "grade", "mark", "reproduce", "export", "term", "release", "new"),
    *("run", "explain", "bench", "simulate", "doctor"),
)
