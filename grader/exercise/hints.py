"""The choice of a hint: the one whose cause is proved by all evidence, or none.

A misleading hint is worse than none.  So a hint has to agree with every case, passed
ones included; where two causes explain the same, neither is named, and the bare finding
is given with a gentle question.  Each says how well it is known: what follows from the run or the
source, what the same comes of, and what is asked of everybody are told apart in every report.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from grader.exercise.cases import Case, PerRank, op_name
from grader.exercise.compare import compare
from grader.exercise.declaration import Evidence, Exercise, JudgedCase
from grader.exercise.verdict import Grade, Hint, listed
from headcount.core.verdict import Diagnosis, counted

__all__ = ["agree", "choose_hint"]


def choose_hint(
    exercise: Exercise,
    diagnosis: Diagnosis,
    evidence: Evidence | None,
    recognise: Callable[[Evidence], str] = lambda evidence: "",
) -> Hint:
    """Return a hint for a diagnosis, which claims no more than is known.

    The first of these that applies is given: what Python's own error messages prove in any
    exercise, a rank that is read from the notebook, the one mistake whose program does what the
    answer does, the first condition of the exercise that holds, what else the failure or the source
    proves, the exercise's advice for the diagnosis, the advice for the diagnosis in general, and
    the exercise's first hint, which is a question.

    Args:
        exercise: the exercise.
        diagnosis: of the answer.
        evidence: what was judged; ``None`` if the answer was never run.
        recognise: returns the hint of the mistake whose program does the same, if there is one.
    """
    if diagnosis is Diagnosis.NOT_ATTEMPTED:
        return Hint(exercise.help.hints[0])
    if evidence is not None and evidence.failed:
        every: tuple[Callable[[Exercise, Evidence], Hint | str], ...] = (
            misused, slipped, reads_global, lambda _, seen: Hint(recognise(seen), Grade.SUPPORTED),
            rounded, _hint_of_condition, _refused, miscalled, disagreed, to_itself, rebound,
            some_ranks_only, slept, shut_in,
        )  # fmt: skip
        for prove in every:
            if found := prove(exercise, evidence):
                return found if isinstance(found, Hint) else Hint(found, Grade.ESTABLISHED)
    hint = Hint(exercise.help.advice.get(diagnosis, _advice(diagnosis, evidence)))
    several = exercise.world_sizes != (1,)
    if not hint and diagnosis is Diagnosis.WRONG_VALUE and evidence is not None and several:
        hint = _advise_smallest_world(exercise, evidence)
    return hint or Hint(exercise.help.hints[0])


def _refused(exercise: Exercise, evidence: Evidence) -> str:
    """Return why torch refused a message or a gradient; an exercise may know of a worse fault."""
    if evidence.refused("NotContiguous"):
        return (
            "A message needs a tensor that is contiguous in memory, and a slice, a transpose or a"
            " gradient often is not: call .contiguous() first."
        )
    if "modified by an inplace operation" in evidence.exception.message:
        return (
            "Backward needs a tensor that was written into after it was computed, such as what"
            " softmax or topk returns. Make a new one instead: masked_fill without an underscore,"
            " torch.where, or clone() before you write."
        )
    return ""


def _advice(diagnosis: Diagnosis, evidence: Evidence | None) -> str:
    """Return the general advice for a diagnosis, if what it speaks of is there."""
    if evidence is None or not evidence.failed:
        return diagnosis.advice
    if diagnosis is Diagnosis.EXCEPTION and not (evidence.failure and evidence.failure.site):
        return ""
    loops = any(part.loops or "while " in part.text for part in evidence.source)
    if diagnosis is Diagnosis.TIMEOUT and evidence.source and not loops:
        return "No loop is in sight: which call takes so long, and what does it wait for?"
    return diagnosis.advice


def _advise_smallest_world(exercise: Exercise, evidence: Evidence) -> Hint:
    """Return what sets the smallest world with a wrong value apart, or advice to look at it."""
    n = min((one.case.n for one in evidence.failed), default=1)
    right = {one.case.n for one in evidence.passed if one.limit is None and one.case.n < n}
    if which := _what_is_wrong(exercise, evidence, n):
        return Hint(which, Grade.ESTABLISHED)
    here = [one for one in evidence.judged if one.case.n == n and one.limit is None]
    failed = {one.case.name for one in here if not one.passed}
    pass_too = {one.case.name for one in here if one.passed and _holds(one)}
    if pass_too and len(failed) == 1:
        text = f'On {counted(n, "rank")} only "{failed.pop()}" fails: what sets it apart?'
        return Hint(text, Grade.ESTABLISHED)
    if n == 1:
        text = "It is wrong with one rank already, where no other takes part: begin there."
        return Hint(text, Grade.ESTABLISHED)
    # where other inputs of this size pass, it is not the number of ranks that makes it wrong
    alike = max(right, default=0) > 1 and not pass_too
    fewer = f" With {max(right)} all cases pass: what is new?" if alike else ""
    if all(op.makes_group for ops in evidence.trace.operations for op in ops):
        return Hint(f"Take {n} ranks, and work out by hand what each of them returns.{fewer}")
    return Hint(
        f"Take {n} ranks and a tensor of few numbers, and follow every message by hand.{fewer}"
    )


def _holds(one: JudgedCase) -> bool:
    """Return whether any rank holds more than an empty tensor or an empty list."""
    return any(
        held.numel() if isinstance(held, torch.Tensor) else held is not None for held in one.actual
    )


def _what_is_wrong(exercise: Exercise, evidence: Evidence, n: int) -> str:
    """Return with which values of an argument cases fail on ``n`` ranks, if others pass."""
    held = [one for one in evidence.judged if one.limit is None and (not one.passed or _holds(one))]
    there = [one for one in held if one.case.n == n]
    several = [one for one in held if one.case.n > 1]
    told: list[tuple[str, list[str]]] = []
    # a case may have columns that an adapter alone knows
    for name in (one for one in exercise.parameters if there and one in there[0].case.columns):
        sides = _words_with(name, there)
        if all(sides) and not {*sides[0]} & {*sides[1]}:
            is_number = not isinstance(there[0].case.columns[name], PerRank) and name != "op"
            what = f"{name} = " * is_number
            words = [what + listed([*side]) for side in sides]
            told.insert(0 if is_number else len(told), (name, words))
    if not told:
        return ""
    (_, (wrong, right)), *others = told
    also = "".join(
        f" Only those that fail have {with_it}, which may be why."
        for name, (with_it, _) in others
        if not set.intersection(*map(set, _words_with(name, several)))
    )
    return (
        f"On {counted(n, 'rank')} the cases with {wrong} fail, and those with {right}"
        f" pass.{also} Follow one that fails through your lines, and one that passes: where do they"
        " part?"
    )


def _words_with(name: str, cases: Sequence[JudgedCase]) -> list[dict[str, None]]:
    """Return the values of an argument with which cases fail, and those with which they pass."""
    return [
        {word: None for one in cases if one.passed == passed for word in _words_of(name, one)}
        for passed in (False, True)
    ]


def _words_of(name: str, one: JudgedCase) -> set[str]:
    """Return the values of an argument that a hint can name; of tensors their dtypes."""
    value = one.case.columns[name]
    if isinstance(value, PerRank):
        tensors = (held for held in value if isinstance(held, torch.Tensor))
        return {str(held.dtype).removeprefix("torch.") for held in tensors}
    if name == "op":
        return {op_name(value)}
    return {str(value)} if isinstance(value, (int, str)) else set()


def _hint_of_condition(exercise: Exercise, evidence: Evidence) -> Hint:
    """Return the hint of the first condition that holds, or an empty one."""
    for mistake in exercise.mistakes:
        with contextlib.suppress(*_ABSENT):
            if mistake.when(evidence):
                return Hint(mistake.hint, mistake.grade)
    return Hint()


#: What is raised by looking into values or traffic that a case does not have.
_ABSENT = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError)


def agree(exercise: Exercise, case: Case, would: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Return whether ranks hold what a mistake would give, up to rounding."""
    terms = exercise.values.reduced(case) if exercise.values.reduced else 0
    scales: list[Any] = (
        list(exercise.values.magnitude(case)) if exercise.values.magnitude else [None] * case.n
    )
    if all(isinstance(one, torch.Tensor) and one.shape == scales[0].shape for one in scales):
        # a mistake may have summed on a rank where nothing was to be summed
        scales = [torch.stack(scales).amax(0)] * case.n
    return all(
        compare(want, got, terms, _slack(want, scale), relative=exercise.values.relative) is None
        for want, got, scale in zip(would, actual, scales, strict=True)
    )


def _slack(want: Any, scale: Any) -> Any:
    """Return what rounding errors are relative to: the terms, or the mistake's largest result.

    Where a mistake sums what should not be summed, the terms are not known, and a small
    result may be the difference of large ones.
    """
    if isinstance(scale, dict) and isinstance(want, dict):
        return {name: _slack(want.get(name), one) for name, one in scale.items()}
    if isinstance(scale, (list, tuple)) and isinstance(want, (list, tuple)):
        fits = len(scale) == len(want)
        return [_slack(*pair) for pair in zip(want, scale, strict=True)] if fits else None
    if not isinstance(scale, torch.Tensor) or not isinstance(want, torch.Tensor):
        return None
    fits = want.dtype != torch.bool and scale.shape == want.shape
    if not fits:
        return None
    # what is infinite, or no number, has no size
    largest = want.abs().nan_to_num(0, 0, 0).amax() if want.numel() else scale
    return torch.maximum(scale.nan_to_num(0, 0, 0), largest)


# Mistakes that can be proved in any exercise. ------------------------------------------------

#: What is imported under these names, and how.
_IMPORTED = {
    "dist": "import torch.distributed as dist",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}
#: What a rank asks for; in the notebook these names are often something else, or nothing.
_ASKED_FOR = {"rank": "dist.get_rank()", "world_size": "dist.get_world_size()"}
#: Modules and classes whose attributes are known, with what people call them.
_OWNERS = {
    "torch.distributed": ("torch.distributed", dist),
    "torch": ("torch", torch),
    "torch.Tensor": ("Tensor", torch.Tensor),
}


def misused(exercise: Exercise, evidence: Evidence) -> str:
    """Return what an exception proves together with the source, or an empty string."""
    kind, _, name, owner = evidence.exception
    if kind == "NameError" and name in _IMPORTED:
        return f"{name} is not imported where this line runs: {_IMPORTED[name]}."
    if kind == "NameError" and name in _ASKED_FOR:
        return (
            f"Nothing is called {name} where this line runs. A rank has to ask for it, inside"
            f" the function: {name} = {_ASKED_FOR[name]}."
        )
    if kind == "NameError" and name:
        return _misspelt(name, _known_names(exercise, evidence), "")
    if kind == "UnboundLocalError" and name:
        return (
            f"{name} is used here before it has a value: is it set in a branch or a loop that was"
            f" not entered{' on this rank' * (evidence.case.n > 1)}, or assigned only further down?"
        )
    if kind == "AttributeError" and name:
        if owner not in _OWNERS:
            return ""
        called, known = _OWNERS[owner]
        return _misspelt(name, dir(known), f"{called} has no ")
    if evidence.refused("GroupIsSetUp"):
        return (
            "The process group is set up before your function is called, and used again after it:"
            " leave out init_process_group and destroy_process_group, and call dist.get_rank()"
            " right away."
        )
    if kind == "TypeError" and owner == "builtins.tuple":
        return (
            "A tuple cannot be changed, and tensor_split, split, chunk and unbind make tuples:"
            " list(...) makes a list of one. Or write into the tensor: chunks[i].copy_(...)."
        )
    if evidence.refused("TensorAsRank"):
        return "The tensor comes first, and then the rank: dist.send(x, dst) and dist.recv(x, src)."
    if evidence.refused("NoTensorToFill"):
        return (
            "dist.recv fills a tensor that you give it, and returns the rank of the sender:"
            " buffer = torch.empty_like(x), and then dist.recv(buffer, src)."
        )
    if evidence.failure is not None and any(wait.other_tag for wait in evidence.failure.waits):
        return (
            "A receive takes only a message that has its own tag: give both ends the same one, or"
            " leave it out."
        )
    if evidence.diagnosis is Diagnosis.WRONG_TYPE and evidence.source and evidence.source[0].yields:
        return (
            "yield makes a generator of a function: a call of it runs none of its lines. Leave"
            " yield out."
        )
    own = [part for part in evidence.source[:1] if part.name == exercise.name and not part.returns]
    if evidence.diagnosis is Diagnosis.WRONG_TYPE and own and exercise.returns:
        return (
            f"{exercise.name} never returns anything: a function without return gives None."
            " End it with return and the result."
        )
    return ""


#: What functions return that change what they are given.
_RETURNED = {
    "recv": "the rank of the sender",
    "irecv": "a request to wait for",
    "isend": "a request to wait for",
}


def slipped(exercise: Exercise, evidence: Evidence) -> str:
    """Return what code proves that hardly anybody means as it stands, or an empty string."""
    for slip in (slip for part in evidence.source for slip in part.slips):
        code = f"`{slip.text}` in line {slip.line}"
        if slip.kind == "raise" and evidence.raised("NotImplementedError"):
            return f"{code} is left over from the stub, and the function ends there: delete it."
        if slip.kind == "dropped" and evidence.diagnosis is Diagnosis.WRONG_VALUE:
            return (
                f"{code} makes a new tensor, and nothing keeps it: what it is made from stays as it"
                " was. Keep the result, or write it where it belongs, as with out=...."
            )
        if slip.kind == "named":
            return f"{code} only names the function. It is called with parentheses: {slip.text}()."
        back = _RETURNED.get(slip.call, "None")
        name = slip.text.partition(" = ")[0]
        if slip.kind == "rebound" and "async_op" not in slip.text:
            return (
                f"{code}: {slip.call} works on the tensor that it is given, and returns {back},"
                f" which is now called {name}. Write the call without `{name} =`"
                f"{', or keep the request under another name' if 'request' in back else ''}."
            )
        returned = any(isinstance(held, int) for held in evidence.actual)
        lost = returned if slip.call == "recv" else back == "None" and "async_op" not in slip.text
        if slip.kind == "kept" and lost:
            return (
                f"{code}: {slip.call} works on the tensor that it is given, and returns {back}."
                " What you want is in that tensor."
            )
    return ""


def slept(exercise: Exercise, evidence: Evidence) -> str:
    """Return that sleeping is no waiting, where a run shows that it is not."""
    raced = evidence.failure is not None and bool(evidence.failure.race)
    unwaited = evidence.diagnosis is Diagnosis.UNWAITED_REQUEST
    for slip in (slip for part in evidence.source for slip in part.slips):
        if slip.kind == "sleep" and (evidence.diagnosis.runs_out or unwaited or raced):
            return (
                f"`{slip.text}` in line {slip.line} waits for a time, and not for a message. A"
                " recv ends when its message is there, and so does wait() on a request."
            )
    return ""


def some_ranks_only(exercise: Exercise, evidence: Evidence) -> str:
    """Return that a collective stands where only some ranks come by, or an empty string."""
    waiting = {wait.call for wait in evidence.failure.waits} if evidence.failure else set()
    for slip in (slip for part in evidence.source for slip in part.slips):
        if slip.kind == "branch" and (
            slip.call in waiting or evidence.diagnosis is Diagnosis.ORDER_MISMATCH
        ):
            return (
                f"{slip.call} in line {slip.line} stands under `{slip.text}`, so only some ranks"
                " call it. A collective has to be called by all of them: take it out of the branch."
            )
    return ""


def shut_in(exercise: Exercise, evidence: Evidence) -> str:
    """Return what a circle of ranks, all in one kind of call, proves of a deadlock."""
    failure = evidence.failure
    if failure is None or evidence.diagnosis is not Diagnosis.DEADLOCK:
        return ""
    circle = [wait for wait in failure.waits if wait.rank in failure.cycle]
    pending = [
        op
        for wait in circle
        for op in evidence.trace.operations[wait.rank]
        if op.is_message and not op.matched
    ]
    ranks = listed(wait.rank for wait in circle) if circle else ""
    kinds = {wait.call for wait in circle}, {op.kind for op in pending}
    # where all ranks do the same, the exercise's own advice says more
    some = len(failure.cycle) < evidence.case.n
    if some and kinds == ({"send"}, {"send"}):
        return (
            f"Ranks {ranks} all wait in a send, which ends only when the other side receives, and"
            " none of them comes to its receive. Start the sends with isend, receive, and then"
            " wait; or let one of them receive first."
        )
    if some and kinds == ({"recv"}, {"recv"}):
        return (
            f"Ranks {ranks} all wait in a receive, each for the next, and none of them has sent"
            " that. Either one has to send first, or they wait for the wrong ranks: who sends to"
            " each of them?"
        )
    sent = {(op.rank, op.peer) for op in pending if op.kind == "send"}
    awaited = {(peer, wait.rank) for wait in failure.waits for peer in wait.peers}
    if (
        kinds[0] == {"recv"}
        and {rank for rank, _ in sent} == {*failure.cycle}
        and not sent & awaited
    ):
        return (
            f"Ranks {ranks} have all started a send and wait to receive, but none of these messages"
            " goes to a rank that waits for it: where each rank sends to rank + k, what comes is"
            " from rank − k."
        )
    return ""


#: Names for what is another on each rank, and for the number of ranks.
_EACH_RANKS = frozenset({"rank", "my_rank", "me", "left", "right", "peer", "partner"})
_NUMBER_OF_RANKS = frozenset({"n", "size", "world_size", "world", "n_ranks", "num_ranks", "nprocs"})


def reads_global(exercise: Exercise, evidence: Evidence) -> str:
    """Return that a rank, or the number of ranks, is read from the notebook, or an empty string."""
    if max(exercise.world_sizes) == 1:
        return ""
    for part in evidence.source:
        for name, value in part.globals.items():
            begin = f"`{name}` is {value} in your notebook, and {part.name} takes it from there:"
            if name in _EACH_RANKS:
                ask = "call dist.get_rank()" if "rank" in name else "find it out"
                return f"{begin} it is {value} on every rank. Inside {part.name}, {ask}."
            if name in _NUMBER_OF_RANKS:
                return (
                    f"{begin} it is {value} however many ranks there are. Inside {part.name}, call"
                    " dist.get_world_size()."
                )
    return ""


def rounded(exercise: Exercise, evidence: Evidence) -> str:
    """Return what wrong numbers prove that lost digits on their way, or an empty string."""
    held = _nearly_held(exercise, evidence)
    nothing = torch.empty(0), torch.empty(0)
    want, got = held.get(torch.float64, nothing)
    wrong = (want != got) & got.isfinite()
    # where a rank reports by name, the exercise knows what each number went through
    by_name = any(isinstance(held, dict) for held in evidence.actual)
    if not by_name and wrong.any() and bool((got.float() == got)[wrong].all()):
        return (
            "These numbers of float64 have been float32 on their way, and have only seven right"
            " digits left. .float() makes them so; and new tensors, as torch.tensor and torch.zeros"
            " make them, are float32 unless you give them the dtype of the input."
        )
    want, got = held.get(torch.int64, nothing)
    wrong = want != got
    for dtype, bits in ((torch.float64, 53), (torch.float32, 24)) if wrong.any() else ():
        largest = want[wrong].abs().amax()
        fits = got[wrong].to(dtype).to(torch.int64) == got[wrong]
        close = (got - want).abs() <= largest >> (bits - _SLACK)
        if largest > 2**bits and bool(fits.all()) and bool(close.all()):
            return (
                f"Integers above 2**{bits} are rounded. A {str(dtype)[6:]} holds whole numbers up"
                f" to 2**{bits} only: leave integers in their own dtype, on their way and in sums."
            )
    return ""


#: The dtypes whose numbers a float32 does not hold.
_LONG = (torch.float64, torch.int64)

#: Bits that several roundings may cost.
_SLACK = 4


def _nearly_held(
    exercise: Exercise, evidence: Evidence
) -> dict[torch.dtype, tuple[torch.Tensor, torch.Tensor]]:
    """Return the numbers, by dtype, that ranks should hold in what failed, and do hold.

    There are none if any case holds other values than by what a float32 rounds.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    values = exercise.values
    for one in evidence.failed:
        # of several right results the one that is nearly held
        right = [values.expected(one.case), *(values.also(one.case) if values.also else ())]
        is_other = one.diagnosis is not Diagnosis.WRONG_VALUE and len(one.actual) == one.case.n
        if is_other and any(agree(exercise, one.case, each, one.actual) for each in right):
            continue  # as of a result that is right, and no copy
        near = [found for found in (_near(each, one.actual) for each in right) if found]
        if one.diagnosis is not Diagnosis.WRONG_VALUE or not near:
            return {}
        pairs += near[0]
    sides = {
        dtype: zip(*((w.flatten(), g.flatten()) for w, g in pairs if w.dtype == dtype), strict=True)
        for dtype in {w.dtype for w, _ in pairs}
    }
    return {dtype: (torch.cat(want), torch.cat(got)) for dtype, (want, got) in sides.items()}


def _near(want: Any, got: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the tensors of long numbers that ranks should hold, with those that they do hold.

    The list is empty if none of them differs, or one does by more than a float32 rounds.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    def collect(want: Any, got: Any) -> None:
        if isinstance(want, dict):
            want, got = list(want.values()), list(got.values())
        if isinstance(want, (list, tuple)) and not isinstance(got, torch.Tensor):
            for pair in zip(want, got, strict=True):
                collect(*pair)
        elif isinstance(want, torch.Tensor) and want.dtype == got.dtype in _LONG:
            pairs.append((want, got))

    with contextlib.suppress(*_ABSENT):
        collect(want, got)
        near = all(_is_near(*pair) for pair in pairs)
        return pairs if near and any(not torch.equal(*pair) for pair in pairs) else []
    return []


def _is_near(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Return whether numbers differ by what a float32 rounds, beside the largest of them.

    A small one may be what is left where large ones cancel; what is infinite or NaN stays so.
    """
    finite = want.isfinite()
    same = torch.equal(want[~finite].nan_to_num(), got[~finite].nan_to_num())
    want, got = want[finite], got[finite]
    return same and (
        not len(want) or bool(((got - want).abs() <= want.abs().max() / 2 ** (24 - _SLACK)).all())
    )


def disagreed(exercise: Exercise, evidence: Evidence) -> str:
    """Return what different tensors in one collective prove, or an empty string."""
    failure = evidence.failure
    what = "sizes" if failure is not None and failure.sizes else ""
    if failure is not None and failure.diagnosis is Diagnosis.DTYPE_MISMATCH:
        calls = evidence.trace.operations[failure.rank or 0]
        what = (
            "dtypes" if any(op.site == failure.site and not op.is_message for op in calls) else ""
        )
    if not what:
        return ""
    return (
        f"The ranks meet in one call, and bring different {what} to it. Do all of them make their"
        " calls for the same tensors, in the same order?"
    )


def to_itself(exercise: Exercise, evidence: Evidence) -> str:
    """Return what a refused message to the rank itself proves, or an empty string."""
    if not evidence.refused("PeerIsSelf"):
        return ""
    return (
        "A rank sends to itself, or receives from itself, and that is refused. Is another rank"
        " meant, such as the source or the root? If not, the rank has its own part already, which"
        " needs no message: leave its own number out, or copy."
    )


def miscalled(exercise: Exercise, evidence: Evidence) -> str:
    """Return advice on a call with the wrong arguments, if it is one of the answer's functions."""
    kind, _, name, _ = evidence.exception
    if kind != "TypeError":
        return ""
    if name == exercise.name:
        return f"It is called as {exercise.signature}: keep these parameters, in this order."
    for part in evidence.source:
        if part.name.endswith(f".{name}") and evidence.failure and not evidence.failure.site:
            return (
                f"It is called with other arguments than {name}({part.header}), in line"
                f" {part.line}, takes; the message says which."
            )
        if part.name == name:
            return f"You have defined it as {name}({part.header}), in line {part.line}: call it so."
    return ""


#: Names that another one is compared with, the nearest in length, and their longest.
_MOST_NAMES, _LONGEST_NAME = 1000, 60


def _known_names(exercise: Exercise, evidence: Evidence) -> list[str]:
    names = {name for part in evidence.source for name in (part.name, *part.assigned)}
    return [*names, *exercise.parameters, "dist", "torch", *dir(builtins)]


def _misspelt(name: str, known: Iterable[str], begin: str) -> str:
    """Return advice on a name that nearly exists; names with leading underscores are left out."""
    public = sorted(
        {one for one in known if one[:1] != "_" and one != name and len(one) <= _LONGEST_NAME},
        key=lambda one: (abs(len(one) - len(name)), one),
    )[: _MOST_NAMES if len(name) <= _LONGEST_NAME else 0]
    close = difflib.get_close_matches(name, public, 3, 0.75)
    lower = [other for other in public if other.lower() == name.lower()]
    if lower or close:
        return f"{begin or 'There is no '}{name}. Did you mean {(lower or close)[0]}?"
    if begin:
        return f"{begin}{name}."
    return (
        f"Nothing is called {name} where this line runs: is it defined, in a cell that you have"
        " run, and spelt the same?"
    )


def rebound(exercise: Exercise, evidence: Evidence) -> str:
    """Return what the source proves of lost values: a parameter that is bound to a new tensor."""
    if evidence.diagnosis is not Diagnosis.WRONG_VALUE:
        return ""
    for part in evidence.source:
        for lost in part.lost:
            name = lost.parameter
            return (
                f"`{lost.text}` in {part.name} makes a new tensor and calls it {name}; the"
                f" tensor that {part.name} was given stays as it was, and nobody sees the new"
                f" one. Write into it: {name}.copy_(...), or an operation such as {name} += ..."
            )
    return ""
