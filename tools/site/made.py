"""Parts of pages that are made when the site is built, and links that mean another page there."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.site import api_pages, command_pages, http_pages, settings_pages

MAKERS: dict[str, Callable[[], str]] = {
    "settings": settings_pages.page,
    "commands": command_pages.page,
    "http": http_pages.page,
    **{f"api {name}": partial(api_pages.page, name) for name in api_pages.PAGES},
}
OPTIONAL = re.compile(r"^(?:\.\./)*[\w/]+\*$\n?", re.MULTILINE)  # an entry of a toctree that may match nothing
MARK = re.compile(r"^<!-- made: (?P<what>[\w ]+?) -->$", re.MULTILINE)
# Folders and files of the repository that are pages of the site under another name; "up" is the way to docs/.
MOVED = {
    r"decisions/?": "{up}contributing/decisions.md",
    r"\.\./README\.md": "{up}index.md",
    r"\.\./CONTRIBUTING\.md": "{up}contributing/index.md",
    r"\.\./CHANGELOG\.md": "{up}contributing/changes.md",
}

# The same for files of the root, which pages of contributing/ include: `docs/` is the folder above.
INCLUDED = {r"docs/decisions/?": "decisions.md", r"CHANGELOG\.md": "changes.md", r"docs/": "../"}


def filled(text: str) -> str:
    """The page with what stands for `<!-- made: NAME -->`."""
    return MARK.sub(lambda found: MAKERS[found["what"]](), text)


def with_site_links(text: str, docname: str) -> str:
    """The page with links into the repository that lead to pages of the site."""
    up = "../" * docname.count("/")
    for target, page in MOVED.items():
        text = re.sub(rf"\]\({re.escape(up)}{target}(#[\w-]+)?\)", rf"]({page.format(up=up)}\1)", text)
    return text


def with_existing(text: str, folder: Path) -> str:
    """The page without entries of toctrees whose pattern (`../theory*`) matches no page below its folder."""
    return OPTIONAL.sub(lambda found: found[0] if any(folder.glob(f"{found[0].strip()}.md")) else "", text)


def included(text: str) -> str:
    """A file of the repository's root as a page of contributing/."""
    for target, page in INCLUDED.items():
        end = r"\)" if page.endswith(".md") else ""
        text = re.sub(rf"\]\({target}{end}", f"]({page}" + (")" if end else ""), text)
    return text
