"""Keeps what a learner expects of the next run, and shows it beside the run."""

from __future__ import annotations

from grader.api.written import written
from grader.report.html import prediction_html
from headcount.core.errors import RequestError, is_ours
from headcount.core.notebook import display_in_notebook, ipython_shell, shows_results
from headcount.core.values import with_article

__all__ = [
    "Prediction",
    "predict",
    "recall_prediction",
]

__tracebackhide__ = is_ours


class Prediction:
    """What a learner expects of the next run; the value of :func:`predict`.

    Attributes:
        text: what they wrote; empty if nothing yet.
        seen: whether the run is here, beside which it is shown.
    """

    def __init__(self, text: str, seen: bool = False) -> None:
        self.text = text
        self.seen = seen

    def _parts(self) -> tuple[str, str]:
        if self.seen:
            return "You predicted:", self.text
        if self.text:
            return "Your prediction is kept.", "Now run the next cell and compare."
        return "No prediction yet.", "Write what you expect between the quotes, and run this cell."

    def __repr__(self) -> str:
        return " ".join(self._parts())

    def _repr_html_(self) -> str:
        return prediction_html(*self._parts())


#: The last prediction, until a run has shown it.
_predictions: list[Prediction] = []


@written('predict("everyone has 7")', takes_function=False)
def predict(text: str) -> Prediction:
    """Keep what you expect to see, and show it above the output of the next run.

    The next :func:`run`, :func:`check`, ``replay`` or ``simulate`` shows it, once.  It is kept by
    this kernel alone, and judged by no one.

    Raises:
        RequestError: the prediction is no text.
    """
    if not isinstance(text, str):
        raise RequestError(
            f'predict takes a text, as in predict("everyone has 7"), not'
            f" {with_article(type(text).__name__)}"
        )
    prediction = Prediction(text.strip())
    _predictions[:] = [prediction] if prediction.text else []
    if not shows_results():
        print(prediction)
    return prediction


def recall_prediction() -> None:
    """Show the prediction that has waited for a run, if there is one."""
    if not _predictions:
        return
    prediction = Prediction(_predictions.pop().text, seen=True)
    if ipython_shell() is not None:
        display_in_notebook(prediction)
    else:
        print(prediction)
