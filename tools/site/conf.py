"""Sphinx's configuration of the site; see ``tools/site/__main__.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image

from tools.site.formulas import mathml
from tools.site.versions import version_of

project = "Gather Round"
author = "the authors of Gather Round"
html_title = "Gather Round"

extensions = ["myst_nb"]
# nothing is run: the solved edition holds its outputs
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
# a page needs no script from elsewhere to show its formulas
html_math_renderer = "mathml"
# a widget is nothing without a kernel, and the page comes as text, too
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]

# a cell for Colab begins with commands of the shell, which are no Python
suppress_warnings = ["misc.highlighting_failure"]

# a block of a document that names no language is what a terminal shows
highlight_language = "none"

html_theme = "furo"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
# a picture with a width is no link to itself
html_scaled_image_link = False
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "edition.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

html_context = {"course_version": version_of(Path(__file__).resolve().parents[2]).label}

#: The other edition of a page, by its folder.
_OTHER = {"solutions": "notebooks", "notebooks": "solutions"}


def _name_other_edition(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Tell the sidebar where the other edition of this page is, if there is one."""
    folder, _, name = pagename.partition("/")
    other = f"{_OTHER[folder]}/{name}" if folder in _OTHER else ""
    context["other_edition"] = other if other in app.env.found_docs else ""
    context["edition"] = folder


#: Pixels of a picture's file for each on the screen: those of the course are drawn for two.
_DENSITY = {"imgs": 2}

#: The width on the screen from which a picture is too wide for a telephone.
_WIDE = 480


def _size_pictures(app: Any, doctree: Any, docname: str) -> None:
    """Give the pictures their width on the screen, and mark those that are wide."""
    for picture in doctree.findall(nodes.image):
        path = Path(app.srcdir, picture["uri"])
        if path.suffix != ".png" or not path.is_file():
            continue
        with Image.open(path) as image:
            width = image.width // _DENSITY.get(path.parent.name, 1)
        picture["width"] = f"{width}px"
        if width >= _WIDE:
            picture["classes"].append("wide")


class EmptyCell(nodes.entry):  # type: ignore[misc]  # docutils has no types
    """A cell of a table's head that says nothing, and so is the header of nothing."""


def _mark_empty_cells(app: Any, doctree: Any, docname: str) -> None:
    for head in doctree.findall(nodes.thead):
        for cell in [*head.findall(nodes.entry)]:
            if not cell.astext().strip():
                cell.replace_self(EmptyCell("", *cell.children, **cell.attributes))


def _enter_empty_cell(writer: Any, node: Any) -> None:
    node.parent.column += 1
    writer.body.append(writer.starttag(node, "td", ""))


def _leave_empty_cell(writer: Any, node: Any) -> None:
    writer.body.append("</td>")


def _inline_formula(writer: Any, node: Any) -> None:
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block_formula(writer: Any, node: Any) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(mathml(node.astext(), block=True) + "</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register what this configuration adds."""
    app.connect("html-page-context", _name_other_edition)
    app.connect("doctree-resolved", _size_pictures)
    app.connect("doctree-resolved", _mark_empty_cells)
    app.add_node(EmptyCell, html=(_enter_empty_cell, _leave_empty_cell))
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_block_formula, None))
    assert Path(app.confdir, "templates", "edition.html").is_file()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
