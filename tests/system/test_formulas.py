"""The formulas of the site: TeX in, MathML out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tools.site.formulas import mathml


def words(tex: str) -> str:
    """What a reader sees of a formula, in one line; a thin space is a blank."""
    text = mathml(tex).replace('<mspace width="0.167em" />', " ")
    return "".join(ElementTree.fromstring(text).itertext())


@pytest.mark.parametrize(
    "tex, seen",
    [
        (r"\lceil \log_2 n \rceil", "⌈log2 n⌉"),
        (r"2\log_2 n\,\alpha", "2 log2 n α"),
        (r"\log n", "log n"),
        (r"\log \mathrm{softmax}(l)", "log softmax(l)"),
        (r"\ln \ell = 0", "ln ℓ=0"),
        (r"\max(2, n)", "max(2,n)"),
        (r"k = \max(1, \min(2, n))", "k=max(1,min(2,n))"),
        (r"\text{token\_index}", "token_index"),
    ],
)
def test_functions_stand_apart_from_their_arguments_and_brackets_do_not(tex, seen):
    assert words(tex) == seen


@pytest.mark.parametrize("tex", [r"-\infty - (-\infty)", r"m = -\infty"])
def test_a_sign_is_close_to_its_number(tex):
    root = ElementTree.fromstring(mathml(tex))
    assert "∞" in [element.text for element in root.iter("mi")]
    signs = [element.get("form") for element in root.iter("mo") if element.text == "−"]
    assert signs[-1] == "prefix"


def test_a_difference_is_no_sign():
    assert "form=" not in mathml(r"(n) - 1") + mathml(r"n - 1")


def test_slashes_and_bars_have_no_space_around():
    found = re.findall(r"<mo[^>]*>[/|]", mathml(r"\max|t| / 254"))
    assert len(found) == 3
    assert all('lspace="0" rspace="0"' in one for one in found)


def test_a_long_bar_grows_with_what_is_below():
    assert '<mo accent="true" stretchy="true">‾</mo>' in mathml(r"\overline{G_i Q}")


def test_a_formula_of_its_own_is_a_block():
    assert mathml("n", block=True).startswith('<math display="block">')
    assert mathml("n").startswith('<math display="inline">')
