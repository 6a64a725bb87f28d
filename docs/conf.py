"""Settings of the site: `sphinx-build -W docs build/site` writes it, with the pages of the reference."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "tools")]

import gallery  # noqa: E402
import reference_pages  # noqa: E402

import openwork  # noqa: E402

project = "openwork"
author = "The openwork developers"
copyright = "The openwork developers, BSD-3-Clause"
version = release = openwork.__version__
REPOSITORY = "https://github.com/openwork-project/openwork"
SITE = "https://openwork-project.github.io/openwork"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "name_links",
]
sphinx_gallery_conf = gallery.settings()
exclude_patterns = ["_site", "_static"]
suppress_warnings = ["config.cache"]
autosummary_generate = False  # numpydoc loads autosummary
templates_path = ["_site"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!openwork\.).*")]  # types of other libraries
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
default_role = "literal"
smartquotes = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight > pre"


def linkcode_resolve(domain, info):
    """The address of an object's source."""
    return reference_pages.source_address(domain, info, REPOSITORY)


html_theme = "pydata_sphinx_theme"
html_title = f"openwork {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/mark.svg"
html_theme_options = {
    "logo": {
        "text": "openwork",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {"name": "Source", "url": REPOSITORY, "icon": "fa-brands fa-github"}
    ],
    "switcher": {
        "json_url": f"{SITE}/_static/versions.json",
        "version_match": "dev" if "dev" in version else version,
    },
    "check_switcher": False,  # the list lies with the newest version of the site, not in this build
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    page: []
    for page in (
        "index",
        "install",
        "tutorial",
        "benchmarks",
        "changelog",
        "contributing",
        "citation",
    )
} | {"reference/*": ["sidebar-collapse.html", "chapter.html"]}
html_copy_source = False
html_show_sourcelink = False
