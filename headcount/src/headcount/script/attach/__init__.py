"""A job that hangs now, read from outside: ``headcount attach``.

Nothing is stopped, and no code runs in the ranks.  Its door:
:func:`headcount.script.attach.command.attach_command`.
"""
