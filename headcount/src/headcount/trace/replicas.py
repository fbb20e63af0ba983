"""Compares what ranks hold of their replicas, and names the first that differ, and on which rank.

What is compared comes from :mod:`headcount.rank.replicas`.  All ranks of a group make the steps of
an optimizer in one order, so a step is compared once every one of them has reported it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from headcount.core.events import Replicas, ReplicaStage, ReplicaValue, Same, SameValue
from headcount.core.values import short
from headcount.core.verdict import Diagnosis, Failure, Site, counted, ordinal, ranks_text

__all__ = ["ReplicaComparison", "SameValues"]

#: Steps that are kept while some ranks have yet to report them: of an optimizer that only some
#: ranks have, none is ever complete.
_PENDING = 64

#: Tensors that a report names, beside the first.
_NAMED = 3

#: What is said of a run in which nothing could be compared.
_NO_REPLICAS = (
    "no replicas were compared: no optimizer has made a step on parameters that are in"
    " DistributedDataParallel, DTensors placed as replicas, or reduced as p.grad by the script"
)

#: Which report of which step: the optimizer's number, the step, and what was looked at.
_Moment = tuple[int, int, ReplicaStage]

#: A tensor of which there are replicas: their ranks, and its key.
_Tensor = tuple[tuple[int, ...], str]


class ReplicaComparison:
    """What the ranks of a script have reported of their replicas.

    Args:
        size: the number of ranks.

    Attributes:
        failure: the first difference, once there is one.
        remark: a fact about buffers, which are not expected to be the same; or empty.
        compared: how many tensors have been compared.
    """

    def __init__(self, size: int) -> None:
        self.failure: Failure | None = None
        self.remark = ""
        self.compared = 0
        self._size = size
        self._pending: dict[_Moment, dict[int, Replicas]] = {}
        #: by optimizer, what was looked at, and tensor: the last step at which it was the same
        self._same: dict[tuple[int, ReplicaStage, _Tensor], int] = {}

    def take(self, rank: int, event: Replicas) -> None:
        """Add what a rank reports."""
        moment = event.number, event.step, event.stage
        reports = self._pending.setdefault(moment, {})
        reports[rank] = event
        if len(reports) == self._size:
            self._compare(self._pending.pop(moment))
        elif len(self._pending) > _PENDING:
            self._compare(self._pending.pop(next(iter(self._pending))))

    def judged(self, failure: Failure | None) -> tuple[Failure | None, list[str]]:
        """Return why a run that is over has failed, and what else there is to say of replicas.

        Args:
            failure: why it has failed otherwise, if it has.
        """
        # some ranks have none of what others have reported
        for reports in self._pending.values():
            self._compare(reports)
        self._pending.clear()
        notes = [self.remark] if self.remark else []
        if not self.compared and failure is None:
            notes.append(_NO_REPLICAS)
        if failure is None:
            return self.failure, notes
        if self.failure is not None:
            notes.append(f"before that, {self.failure.message}")
        return failure, notes

    def _compare(self, reports: Mapping[int, Replicas]) -> None:
        """Look for the first tensor that is not the same on all ranks that have it."""
        found: dict[_Tensor, dict[int, ReplicaValue]] = defaultdict(dict)
        for rank, report in reports.items():
            for value in report.values:
                found[tuple(report.groups[value.group]), value.key][rank] = value
        # what a rank leaves out, it does not hold: a part of an optimizer's state, as in ZeRO
        whole = {one: held for one, held in found.items() if len(held) == len(one[0])}
        self.compared += len(whole)
        differing = []
        for one, held in whole.items():
            if len({value.digest for value in held.values()}) > 1:
                differing.append((one, held))
            else:
                report = reports[one[0][0]]
                self._same[report.number, report.stage, one] = report.step
        if not differing:
            return
        (members, _), held = differing[0]
        report = reports[members[0]]
        if report.stage is ReplicaStage.BUFFER:
            self.remark = self.remark or _about_buffers(held, len(differing))
        elif self.failure is None:
            calls = [_calls(reports[rank], members) for rank in members]
            self.failure = Failure(
                Diagnosis.REPLICAS_DIFFER,
                _message(report, held),
                min(_odd_ranks(held)),
                Site(report.file, report.line) if report.file else None,
                detail=(
                    *_details(report, differing, len(whole), calls),
                    *self._about_step(report, differing[0][0]),
                ),
            )

    def _about_step(self, report: Replicas, tensor: _Tensor) -> Iterator[str]:
        """Yield that the step itself has made a tensor differ, if all before it was the same."""
        begin, before, gradient = (
            self._same.get((report.number, stage, tensor))
            for stage in (ReplicaStage.BEGIN, ReplicaStage.PARAMETER, ReplicaStage.GRADIENT)
        )
        after = report.stage is ReplicaStage.PARAMETER and gradient == report.step
        if after and report.step - 1 in (begin, before):
            yield (
                "it was the same before this step, and so was its gradient: is the step itself"
                " another one, as with another learning rate?"
            )


def _calls(report: Replicas, members: tuple[int, ...]) -> int:
    """Return how often a rank has called all_reduce in a group since the step before."""
    return next(
        (
            calls
            for group, calls in zip(report.groups, report.calls, strict=True)
            if tuple(group) == members
        ),
        0,
    )


#: What a rank holds of a tensor, or of a part of a value.
_Held = ReplicaValue | SameValue


def _by_contents(held: Mapping[int, _Held]) -> list[list[int]]:
    """Return the ranks that hold the same, the fewest first."""
    alike: dict[int, list[int]] = defaultdict(list)
    for rank, value in sorted(held.items()):
        alike[value.digest].append(rank)
    return sorted(alike.values(), key=len)


def _odd_ranks(held: Mapping[int, _Held]) -> list[int]:
    """Return the ranks that hold something else than most; all, if there is no majority."""
    *few, most = _by_contents(held)
    if few and len(few[-1]) == len(most):
        return sorted(held)
    return sorted(rank for ranks in few for rank in ranks)


_WHEN = {
    ReplicaStage.BEGIN: "before step {2} of {0}",
    ReplicaStage.GRADIENT: "at step {1} of {0}",
    ReplicaStage.PARAMETER: "after step {1} of {0}",
    ReplicaStage.STATE: "after step {1} of {0}",
}


def _message(report: Replicas, held: Mapping[int, ReplicaValue]) -> str:
    """Return which tensor differs, between which ranks, and when."""
    name = next(iter(held.values())).name
    what = f"the gradient of {name}" if report.stage is ReplicaStage.GRADIENT else name
    odd = _odd_ranks(held)
    when = _WHEN[report.stage].format(report.optimizer, report.step, report.step + 1)
    when = when.replace("before step 1 of", "before the first step of")
    norms = [f"{_norm(held[one[0]])} on {ranks_text(one)}" for one in _by_contents(held)][:_NAMED]
    place = f" at {Site(report.file, report.line)}" if report.file else ""
    return f"{_who_differs(what, sorted(held), odd)} {when}{place} (norm {', '.join(norms)})"


def _who_differs(what: str, ranks: Sequence[int], odd: Sequence[int]) -> str:
    """Return which ranks hold something else than which others."""
    if len(odd) == len(ranks):
        return f"{what or 'the value'} differs between {ranks_text(odd)}"
    others = [rank for rank in ranks if rank not in odd]
    verb = "holds" if len(odd) == 1 else "hold"
    of = f" of {what}" if what else ""
    return f"{ranks_text(odd)} {verb} another value{of} than {ranks_text(others)}"


def _norm(value: ReplicaValue) -> str:
    return "none" if value.norm < 0 else f"{value.norm:.6g}"


def _details(
    report: Replicas,
    differing: Sequence[tuple[_Tensor, Mapping[int, ReplicaValue]]],
    count: int,
    calls: Sequence[int],
) -> Iterator[str]:
    """Yield what else differs, and what is known of the cause."""
    yield from _also(count, [next(iter(held.values())).name for _, held in differing[1:]])
    if report.stage is ReplicaStage.BEGIN and not report.step:
        yield "so no step has made them differ: were they loaded, or drawn, on each rank by itself?"
    elif report.stage is ReplicaStage.GRADIENT and not any(calls):
        yield (
            "none of these ranks has called all_reduce in their group since the step before: in"
            " DistributedDataParallel, a forward through model.module, or all of backward under"
            " no_sync(), reduces nothing"
        )
    elif report.stage is ReplicaStage.GRADIENT:
        times = [*map(str, sorted({*calls}))]
        often = "once" if times == ["1"] else f"{' or '.join(times)} times"
        yield (
            f"all_reduce was called {often} in their group since the step before, and yet they"
            " differ: does it reduce them all, or were they changed after it?"
        )


def _about_buffers(held: Mapping[int, ReplicaValue], count: int) -> str:
    name = next(iter(held.values())).name
    more = f" and {count - 1} more" if count > 1 else ""
    differ = "differ" if more else "differs"
    return f"buffers are each rank's own: {name}{more} {differ}, as those of BatchNorm do"


# Values of one's own. ----------------------------------------------------------------

#: Parts of values that are kept while some ranks have yet to report theirs.
KEPT = 1 << 18

#: Counts of calls, by rank and place, that are kept where all ranks have come equally often.
_COUNTED = 1 << 14

#: Characters of a value's name and of a key in it that a message shows.
_LONG = 120

#: Those who compare a value, and by which name or on which line.
_Place = tuple[tuple[int, ...], str]


class SameValues:
    """What ranks have reported of values that should be the same, see :func:`headcount.same`."""

    def __init__(self) -> None:
        self._calls = Counter[tuple[int, _Place]]()
        self._open: dict[tuple[_Place, int], dict[int, Same]] = {}
        self._kept = 0
        self._lost = 0

    def take(self, rank: int, event: Same) -> Failure | None:
        """Add what a rank reports; return the difference once all have, and there is one."""
        place = tuple(event.members), event.name or str(Site(event.file, event.line))
        self._calls[rank, place] += 1
        moment = place, self._calls[rank, place]
        reports = self._open.setdefault(moment, {})
        reports[rank] = event
        self._kept += len(event.values)
        if len(reports) == len(event.members):
            self._forget(moment)
            ranks = [(one, place) for one in place[0]]
            # a program may give each step a name of its own; all begin anew together
            if len(self._calls) > _COUNTED and {self._calls[one] for one in ranks} == {moment[1]}:
                for one in ranks:
                    del self._calls[one]
            return _difference(reports, moment[1])
        while self._kept > KEPT and len(self._open) > 1:
            self._lost += 1
            self._forget(next(iter(self._open)))
        return None

    def _forget(self, moment: tuple[_Place, int]) -> None:
        self._kept -= sum(len(report.values) for report in self._open.pop(moment).values())

    def remarks(self) -> Iterator[str]:
        """Yield why a value has not been compared: some ranks never came where others did."""
        if self._lost:
            yield (
                f"headcount.same: {counted(self._lost, 'value')} could not be kept until all ranks"
                " had come, and so were not compared"
            )
        for ((members, _), number), reports in self._open.items():
            report, absent = reports[min(reports)], sorted({*members} - {*reports})
            came, times = ranks_text(sorted(reports)), counted(number, "time")
            verb, never = ("calls" if len(one) == 1 else "call" for one in (reports, absent))
            yield (
                f"{Site(report.file, report.line)}: {short(report.name) or 'the value'} is not"
                f" compared: {came} {verb} headcount.same there {times},"
                f" {ranks_text(absent)} {never} it less often"
            )
            return  # what comes later is missing for the same reason


def _difference(reports: Mapping[int, Same], number: int) -> Failure | None:
    """Return the first part of a value that is not the same in all reports, if there is one."""
    held: dict[str, dict[int, SameValue]] = defaultdict(dict)
    for rank, report in sorted(reports.items()):
        for value in report.values:
            held[value.key][rank] = value
    differing = [
        (key, {rank: parts.get(rank, SameValue(key, 0, "nothing")) for rank in sorted(reports)})
        for key, parts in held.items()
        if len(parts) < len(reports) or len({one.digest for one in parts.values()}) > 1
    ]
    if not differing:
        return None
    key, parts = differing[0]
    odd = _odd_ranks(parts)
    report = reports[odd[0]]
    shown = [
        f"{short(parts[ranks[0]].text)} on {ranks_text(ranks)}"
        for ranks in _by_contents(parts)[:_NAMED]
    ]
    what = short(f"{report.name}{key}", _LONG)
    site = Site(report.file, report.line)
    often = "" if number == 1 else f", the {ordinal(number)} time"
    more = [key for key, _ in differing[1:]]
    return Failure(
        Diagnosis.REPLICAS_DIFFER,
        f"{_who_differs(what, [*parts], odd)} at {site}{often} ({'; '.join(shown)})",
        odd[0],
        site,
        detail=_also(
            len(held), [short(f"{report.name}{key}", _LONG) or "the whole" for key in more]
        ),
    )


def _also(count: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return which of those that are compared differ as well."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    do = "does" if len(names) == 1 else "do"
    return (f"of {count} compared, so {do} {', '.join(names[:_NAMED])}{more}",)
