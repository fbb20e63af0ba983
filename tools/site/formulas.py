"""TeX formulas as MathML, made when the site is built: a page then needs no script to show them.

latex2mathml translates; what it leaves different from TeX is put right here, in its result.
"""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert

__all__ = ["mathml"]

#: Functions with a name, which stand apart from an argument without brackets.
_FUNCTIONS = frozenset({"exp", "ln", "log", "max", "min"})

#: What may stand beside a function without a space between them.
_CLOSE = frozenset("()[]⌈⌉⌊⌋|")

#: Operators that TeX sets without space.
_TIGHT = frozenset("/|")

_NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'

#: TeX's thin space.
_THIN = "0.167em"


def mathml(tex: str, block: bool = False) -> str:
    """Return a formula as the ``math`` element of a page.

    Args:
        tex: the formula, without its dollar signs.
        block: whether it stands alone on its line.
    """
    text = convert(tex, display="block" if block else "inline")
    # HTML knows the element; with its namespace every name here would have a prefix
    root = ElementTree.fromstring(
        text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "", 1)
    )
    for element in root.iter():
        _mend(element)
    for row in root.iter():
        _sign_numbers(row)
        _space_functions(row)
    return ElementTree.tostring(root, encoding="unicode")


def _mend(element: Element) -> None:
    """Correct one symbol."""
    words = element.text or ""
    if element.tag == "mtext":
        element.text = words.replace("\\_", "_")
    elif element.tag == "mo" and (words == "∞" or words in _FUNCTIONS):
        element.tag = "mi"  # an operator would have space on both sides
    elif element.tag == "mo" and words in _TIGHT:
        element.attrib.update(lspace="0", rspace="0")
    elif element.tag == "mo" and words == "―":  # \overline; only this one grows with what is below
        element.text = "‾"
        element.set("stretchy", "true")


def _sign_numbers(row: Element) -> None:
    """Put a minus close to what it belongs to, where there is nothing to subtract from."""
    for before, element in pairwise(row):
        opens = before.tag == "mo" and before.text not in (")", "]", "|")
        if element.tag == "mo" and element.text == "−" and opens:
            element.set("form", "prefix")


def _space_functions(row: Element) -> None:
    """Put a thin space between a function such as log and what stands beside it."""
    if row.tag not in ("mrow", "math", "mstyle"):
        return
    old = list(row)
    new: list[Element] = []
    for place, element in enumerate(old):
        if _is_function(element):
            if place and _needs_space(old[place - 1]) and not _is_function(old[place - 1]):
                new.append(Element("mspace", width=_THIN))
            new.append(element)
            if place + 1 < len(old) and _needs_space(old[place + 1]):
                new.append(Element("mspace", width=_THIN))
        else:
            new.append(element)
    row[:] = new


def _is_function(element: Element) -> bool:
    """Return whether this is the name of a function, or one with a base or a power."""
    if element.tag in ("msub", "msup", "msubsup"):
        element = element[0]
    return element.tag == "mi" and element.text in _FUNCTIONS


def _needs_space(neighbour: Element) -> bool:
    """Return whether this stands too close to the name of a function without a space."""
    while neighbour.tag in ("mrow", "munder", "mover", "munderover", "msub", "msup", "msubsup"):
        if not len(neighbour):
            return False
        neighbour = neighbour[0]
    return neighbour.tag not in ("mo", "mspace") and (neighbour.text or "") not in _CLOSE
