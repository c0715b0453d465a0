"""The site as `make docs` builds it: no warning, a search that finds, no dead link, nothing fetched from elsewhere."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import chromium
from command_line import clean_environment
from patience import HANG_SECONDS
from site_pages import DOCS, PAGES, ROOT, name

MATHJAX = ROOT / "build" / "npm" / "static" / "mathjax" / "tex-svg.js"
LOADED = {"link": "href", "script": "src", "img": "src"}  # what a browser fetches by itself

pytestmark = pytest.mark.soak


class Page(HTMLParser):
    """Ids of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {value for value in (given.get("id"), given.get("name")) if value}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if (address := given.get(LOADED.get(tag, ""))) and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew: every cell is executed."""
    if find_spec("sphinx") is None or not MATHJAX.is_file():
        pytest.skip("no Sphinx or no MathJax here; `make docs` brings them")
    folder = tmp_path_factory.mktemp("site")
    cache = f"nb_execution_cache_path={folder / 'executed'}"
    line = ["-m", "sphinx", "-W", "--keep-going", "--quiet", "-D", cache, str(DOCS), str(folder / "html")]
    done = subprocess.run(
        [sys.executable, *line], cwd=ROOT, capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Page]:
    """Every page of the site."""
    return {
        file: Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html") if "_static" not in file.parts
    }


def test_every_page_of_the_sources_is_built(site: Path) -> None:
    assert [name(page) for page in PAGES if not (site / f"{name(page)}.html").is_file()] == []
    assert (site / "searchindex.js").stat().st_size > 100_000


def test_no_link_of_the_site_is_dead(read: dict[Path, Page]) -> None:
    """Fails when a link or its anchor leads nowhere."""
    dead, checked = [], 0
    for file, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            checked += 1
            if not target.exists() or (
                parts.fragment and target in read and unquote(parts.fragment) not in read[target].ids
            ):
                dead.append(f"{file.name}: {link}")
    assert checked > 1000
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site: Path, read: dict[Path, Page]) -> None:
    """Fails when reading a page would ask another host."""
    assert {address for page in read.values() for address in page.loads if urlsplit(address).netloc} == set()
    assert (site / "_static" / "mathjax" / "tex-svg.js").is_file()


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a word."""

    def log_message(self, format: str, *args: object) -> None: ...


def test_a_reader_searches_and_sees_equations(served: str) -> None:
    """Fails when the search finds nothing, MathJax draws nothing, a page is wider than a phone, or a host is asked."""
    program = chromium()
    if program is None:
        pytest.skip("no chromium here, and it may not be installed from here")
    from playwright.sync_api import sync_playwright

    asked: set[str] = set()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(120_000)
        page.on("request", lambda request: asked.add(request.url))
        page.goto(f"{served}/search.html?q=propensities")
        page.wait_for_selector("#search-results li a")
        assert "Propensities and exploration" in " ".join(page.locator("#search-results li a").all_inner_texts())
        page.goto(f"{served}/explained/algorithm.html")
        page.wait_for_selector("mjx-container svg")
        for each in ("index", "start", "explained/algorithm", "reference/policies", "guides/exploration"):
            page.goto(f"{served}/{each}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, each
        browser.close()
    assert [address for address in asked if not address.startswith((served, "data:", "blob:"))] == []
