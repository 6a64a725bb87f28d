"""Settings of the site: `sphinx-build -W docs build/site` writes it, with the pages of the reference."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "tools")]

project = "openwork"
author = "The openwork developers"
copyright = "The openwork developers, BSD-3-Clause"
extensions = ["myst_parser", "name_links"]
exclude_patterns = ["_site", "_static", "gallery/pictures"]
suppress_warnings = ["config.cache"]
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!openwork\.).*")]  # types of other libraries
python_use_unqualified_type_names = True
smartquotes = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"
pygments_style = "tango"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "openwork"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/mark.svg"
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "navigation_with_keys": True,
}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
