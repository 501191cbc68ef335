"""Sphinx: MyST Markdown, Furo."""

project = "regard"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "regard"
html_static_path: list[str] = []
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
