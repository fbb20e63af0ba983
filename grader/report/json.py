"""Verdicts as JSON: the form that the command line promises to other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from grader import __version__
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, SubmissionVerdict

if TYPE_CHECKING:
    from grader.exercise.declaration import Exercise
    from grader.judge.simulated_checks import SimulatedOutcome
    from headcount.simulation.clusters import Cluster

__all__ = [
    "SCHEMA_VERSION",
    "case_as_dict",
    "exercise_as_dict",
    "growth_json",
    "submission_as_dict",
    "to_json",
]

#: Version of the format; it grows whenever a field changes its meaning or disappears.
SCHEMA_VERSION = 1


def to_json(verdict: SubmissionVerdict) -> str:
    """Return a submission's verdict as one JSON object."""
    # lone surrogates in a student's text have no UTF-8, so they are escaped
    return json.dumps(submission_as_dict(verdict), ensure_ascii=True, indent=1)


def submission_as_dict(verdict: SubmissionVerdict) -> dict[str, Any]:
    """Return the fields of a submission's verdict."""
    return {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "submission": verdict.submission,
        "seed": verdict.seed,
        "backend": verdict.backend,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "exercises": [exercise_as_dict(exercise) for exercise in verdict.exercises],
    }


def exercise_as_dict(verdict: ExerciseVerdict) -> dict[str, Any]:
    """Return the fields of the verdict on an exercise."""
    return {
        "name": verdict.name,
        "chapter": verdict.chapter,
        "status": verdict.status.value,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "diagnosis": verdict.diagnosis.value if verdict.diagnosis else None,
        "message": verdict.message,
        "hint": verdict.hint,
        "hint_grade": verdict.hint_grade.value if verdict.hint else None,
        "seconds": verdict.seconds,
        "cases": [case_as_dict(case) for case in verdict.cases],
        "words": verdict.diagnosis.words if verdict.diagnosis else None,
    }


def case_as_dict(verdict: CaseVerdict) -> dict[str, Any]:
    """Return the fields of a case."""
    traffic = verdict.traffic
    return {
        # the number of ranks does not show it
        "name": f"{verdict.name} (simulated)" if verdict.simulated else verdict.name,
        "world_size": verdict.world_size,
        "status": verdict.status.value,
        "diagnosis": verdict.diagnosis.value if verdict.diagnosis else None,
        "message": verdict.message,
        "rank": verdict.rank,
        "line": verdict.site.line if verdict.site and verdict.site.line else None,
        "traffic": None
        if traffic is None
        else {
            "messages": traffic.messages,
            "bytes": traffic.bytes,
            "max_sent": traffic.max_sent,
            "rounds": traffic.rounds,
            "virtual_seconds": traffic.seconds,
        },
        "words": verdict.diagnosis.words if verdict.diagnosis else None,
    }


def growth_json(grown: SimulatedOutcome, exercise: Exercise, cluster: Cluster, seed: int) -> str:
    """Return an answer on simulated ranks as one JSON object."""
    simulation = grown.simulation
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "exercise": exercise.name,
        "ranks": grown.case.n,
        "seed": seed,
        "cluster": msgspec.to_builtins(cluster),
        "passed": all(verdict.passed for verdict in grown.verdicts),
        # None: the run did not end, so that there is no time
        "seconds": simulation.seconds if simulation.failure is None else None,
        "messages": simulation.messages,
        "bytes": simulation.bytes,
        "cases": [case_as_dict(verdict) for verdict in grown.verdicts],
    }
    return json.dumps(fields, ensure_ascii=True, indent=1)
