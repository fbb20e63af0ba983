"""Exercises for tests, from fields that stand in one row."""

from __future__ import annotations

import dataclasses

from grader.exercise.declaration import Exercise, TrafficRules, Values
from grader.exercise.help import Help

#: The parts of an exercise.
PARTS = {"values": Values, "traffic": TrafficRules, "help": Help}


def declare(**fields):
    """Return an exercise; what belongs to one of its parts is put there."""
    parts = {part: _taken(fields, kind) for part, kind in PARTS.items()}
    return Exercise(**fields, **{part: PARTS[part](**own) for part, own in parts.items()})


def changed(exercise, **fields):
    """Return an exercise with other fields, of whatever part."""
    for part, kind in PARTS.items():
        own = _taken(fields, kind)
        if own:
            fields[part] = dataclasses.replace(getattr(exercise, part), **own)
    return dataclasses.replace(exercise, **fields)


def _taken(fields, kind):
    return {
        one.name: fields.pop(one.name) for one in dataclasses.fields(kind) if one.name in fields
    }
