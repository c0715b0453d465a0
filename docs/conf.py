"""The site of the documentation: `make docs` builds it into build/docs/html."""

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
# the kernel that runs the cells is the one described here, whatever others are installed: quiet, one thread
os.environ["JUPYTER_PATH"] = str(ROOT / "docs" / "_jupyter")

from neuclust import __version__  # noqa: E402
from tools.site import docstrings, made  # noqa: E402

project = "neuclust"
author = "The neuclust founders"
copyright = "the neuclust founders, Apache-2.0"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["records", "_templates", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
root_doc = "index"
language = "en"

# Pages: MyST with executed cells, whose outputs are kept until the cells change.
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "docs" / "executed")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
copybutton_exclude = ".linenos, .gp, .go"

# The reference: docstrings are plain text with single backticks.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
add_module_names = False
nitpicky = True
# Types in signatures that are no public names of ours, and those of other libraries, whose pages are elsewhere.
nitpick_ignore_regex = [(r"py:(class|obj|data|exc|func|meth|mod|attr)", r".*")]

# The look. Nothing is fetched when a page is read: MathJax lies beside the pages.
html_theme = "pydata_sphinx_theme"
html_title = "neuclust"
html_static_path = ["_static", str(ROOT / "build" / "npm" / "static")]
html_css_files = ["site.css"]
html_favicon = str(ROOT / "src" / "neuclust" / "serve" / "page" / "icon.svg")
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "start": []}
mathjax_path = "mathjax/tex-svg.js"


def setup(app: Any) -> dict[str, bool]:
    """Fill the pages that are made from the code, and read docstrings as the plain text they are."""
    app.connect("env-get-outdated", _made)
    app.connect("source-read", _read)
    app.connect("include-read", _included)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("html-page-context", _source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _made(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:  # noqa: ARG001
    """Pages that are made from the code, which may have changed where they have not."""
    return [name for name in env.found_docs if made.MARK.search(Path(env.doc2path(name)).read_text(encoding="utf-8"))]


def _read(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.srcdir) / docname
    source[0] = made.with_site_links(made.with_existing(made.filled(source[0]), page.parent), docname)


def _included(app: Any, path: Path, docname: str, source: list[str]) -> None:  # noqa: ARG001
    source[0] = made.included(source[0])


def _source(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:  # noqa: ARG001
    """Pages of source without links back, which name the module of the first documented name for all names."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(r'<a class="viewcode-back"[^>]*>.*?</a>', "", context["body"])


def _docstring(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    lines[:] = docstrings.as_rst(lines)
