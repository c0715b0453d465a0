"""The page at `/`: HTML, CSS and JavaScript without a build step, and which of its files are served."""

from importlib.resources import files

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SCRIPTS = ("page.js", "service.js", "dom.js", "charts.js", "map.js", "sections.js", "decisions.js", "features.js")
NAMES = ("index.html", "page.css", "icon.svg", *SCRIPTS)
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of every file by its name; `index.html` is the page at `/`, the others stand beside it."""
    folder = files(__name__)
    return {name: ((folder / name).read_bytes(), f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8") for name in NAMES}
