"""Names in backticks -> links to the reference, whose sources are written before Sphinx reads."""

from __future__ import annotations

import re
from typing import Any

import gallery
import reference_pages
import search_words
from docutils import nodes
from sphinx import addnodes

_CALLED = re.compile(r"(ow\.|openwork\.)?([A-Za-z_][\w.]*?)(?:\([^()]*\))?")


def link_names(app: Any, tree: nodes.document) -> None:
    """`ow.name`, `ow.name(...)` and `openwork.name` in any page, and a bare `name` in the reference, become links to that name."""
    for literal in list(tree.findall(nodes.literal)):
        called = _CALLED.fullmatch(literal.astext())
        in_reference = app.env.docname.startswith("reference/")
        target = (
            called
            and (called[1] or in_reference)
            and reference_pages.addresses().get(called[2])
        )
        if not target or isinstance(
            literal.parent, nodes.reference | addnodes.pending_xref
        ):
            continue
        link = addnodes.pending_xref(
            "",
            refdomain="py",
            reftype="obj",
            reftarget=target,
            refdoc=app.env.docname,
            refwarn=True,
        )
        literal.replace_self(link)
        link += literal


def add_sidebar(
    _app: Any, page: str, _template: str, context: dict[str, Any], _tree: Any
) -> None:
    """Gives pages of the reference the rows of their sidebar, `chapter.html`."""
    if page.startswith("reference/"):
        context["sidebar_rows"] = reference_pages.sidebar(page)


def setup(app: Any) -> dict[str, Any]:
    """The hook that Sphinx calls."""
    app.connect("builder-inited", lambda _: reference_pages.write())
    app.connect(
        "autodoc-process-docstring", reference_pages.docstring, priority=400
    )  # before numpydoc
    app.connect("autodoc-process-signature", reference_pages.signature)
    app.connect("source-read", gallery.read)
    app.connect("doctree-read", link_names)
    app.connect("html-page-context", add_sidebar)
    app.add_search_language(search_words.Words)
    app.add_transform(search_words.SearchWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 4}
