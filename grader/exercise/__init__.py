"""What an exercise is: its cases, what ranks must hold and may send, hints and known mistakes.

It declares no exercise itself; those of the course are in :mod:`grader.course`.  The public entry
is :class:`~grader.exercise.declaration.Exercise`.
"""
