"""Verdicts as JSON: the form that the command line promises to other programs."""

from __future__ import annotations

import json
from typing import Any

from grader.verdict import CaseVerdict, ExerciseVerdict, SubmissionVerdict
from grader.version import __version__

__all__ = ["SCHEMA_VERSION", "submission_as_dict", "to_json"]

#: Raised whenever a field changes its meaning or goes away.
SCHEMA_VERSION = 1


def to_json(verdict: SubmissionVerdict) -> str:
    """A submission's verdict as one JSON object."""
    # lone surrogates in a student's text have no UTF-8; they are escaped
    return json.dumps(submission_as_dict(verdict), ensure_ascii=True, indent=1)


def submission_as_dict(verdict: SubmissionVerdict) -> dict[str, Any]:
    """The fields of a submission's verdict."""
    return {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "submission": verdict.submission,
        "seed": verdict.seed,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "exercises": [_exercise(exercise) for exercise in verdict.exercises],
    }


def _exercise(verdict: ExerciseVerdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "chapter": verdict.chapter,
        "status": verdict.status.value,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "diagnosis": verdict.diagnosis.value if verdict.diagnosis else None,
        "message": verdict.message,
        "hint": verdict.hint,
        "seconds": verdict.seconds,
        "cases": [_case(case) for case in verdict.cases],
    }


def _case(verdict: CaseVerdict) -> dict[str, Any]:
    traffic = verdict.traffic
    return {
        "name": verdict.name,
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
        },
    }
