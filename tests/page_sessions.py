"""Pages in a real Chromium, with everything they complain about or ask of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from browser import QUIET, chromium
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

PATIENCE = 20_000  # milliseconds; two cores may be busy


@dataclass
class Session:
    """A page, and everything that it complained about or asked of others."""

    page: Page
    port: int
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, hash: str = "") -> Page:
        self.page.goto(f"http://127.0.0.1:{self.port}/{hash}")
        expect(self.page.locator("#connection")).to_have_attribute("data-state", "live", timeout=PATIENCE)
        return self.page


@contextmanager
def real_browser() -> Iterator[Browser]:
    """Debian's Chromium; skips without one."""
    program = chromium()
    if program is None:
        pytest.skip("no chromium here, and it may not be installed from here")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield found
        found.close()


def session(browser: Browser, port: int, **context: Any) -> Session:
    given = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light", **context}
    page = browser.new_context(**given).new_page()
    page.set_default_timeout(PATIENCE)
    found = Session(page, port)

    def note_dialog(dialog: Dialog) -> None:
        found.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def note_message(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            found.complaints.append(said.text)

    def note_request(asked: Request) -> None:
        if not asked.url.startswith(f"http://127.0.0.1:{port}/"):
            found.elsewhere.append(asked.url)

    page.on("console", note_message)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", note_dialog)
    page.on("request", note_request)
    return found
