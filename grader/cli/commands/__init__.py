"""The commands: a module for each, with its name.

Its docstring is what ``--help`` says of it; ``add_arguments(parser)`` declares its arguments, and
``run(options)`` serves a request and returns the exit status.  A module is imported when its
command is asked for; what takes long, torch above all, it imports as it runs, after it has refused
what is wrong with the request.
"""

__all__ = ["COMMANDS"]

#: The commands in the order of ``--help``, each with what follows it in an example: for learners,
#: for scripts and measurements, for a class, and for programs that answer.
COMMANDS = {
    "list": "",
    "check": "notebooks/02_broadcast.ipynb broadcast",
    "hint": "broadcast",
    "progress": "",
    "reset": "notebooks/02_broadcast.ipynb broadcast",
    "doctor": "",
    "run": "--ranks 4 train.py --lr 1e-3",
    "explain": "/tmp/nccl_trace_*",
    "simulate": "ring.py ring_all_reduce --ranks 1024",
    "bench": "all_reduce --ranks 4",
    "people": "canvas.csv moodle.csv --to people.toml",
    "grade": "submissions.zip --out results --assignment assignment.toml",
    "mark": "results ada broadcast --points 1 --why 'an honest misreading'",
    "reproduce": "results ada broadcast",
    "export": "results --format csv --to grades.csv",
    "term": "results1 results2 --to term",
    "release": "handout --without-answers",
    "new": "exercise --chapter 02_broadcast my_broadcast",
    "tasks": "broadcast --json",
    "score": "answers.jsonl --json",
}
