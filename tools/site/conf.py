"""Sphinx's configuration of the site; see ``tools/site/__main__.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

project = "Gather Round"
author = "the authors of Gather Round"
html_title = "Gather Round"

extensions = ["myst_nb"]
# nothing is run: the solved edition holds its outputs
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
# a widget is nothing without a kernel, and the page comes as text, too
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]

# a cell for Colab begins with commands of the shell, which are no Python
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
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


def setup(app: Any) -> dict[str, bool]:
    """Register what this configuration adds."""
    app.connect("html-page-context", _name_other_edition)
    assert Path(app.confdir, "templates", "edition.html").is_file()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
