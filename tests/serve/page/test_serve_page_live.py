"""The page of a running service: its own log, learner, reasons and versions, and what happens when it is killed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from page_sessions import PATIENCE, Session, real_browser, session
from playwright.sync_api import expect
from running_service import RunningService, eventually, running

pytestmark = pytest.mark.soak  # it starts the service twice


def shop_some(service: RunningService, decisions: int, seed: int) -> str:
    """Requests with clicks; the id of the last decision."""
    rng, last = random.Random(seed), ""
    for number in range(decisions):
        found = service.call("POST", "shop/recommendations", {"user": f"u{rng.randrange(50)}"}, 200)
        last = found["decision_id"]
        clicks = {each["item"]: 1 for each in found["slate"] if rng.random() < 0.3}
        body = {"feedback_id": f"{seed}-{number}", "decision_id": last, "items": clicks}
        service.call("POST", "shop/feedback", body, 202)
    service.learned("shop")
    return last


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("page")) as found:
        found.make("shop", policy="linucb", exploration=0.3)
        shop_some(found, 30, 0)
        yield found


@pytest.fixture(scope="module")
def watched(service: RunningService) -> Iterator[Session]:
    with real_browser() as browser:
        found = session(browser, int(service.address.rpartition(":")[2]))
        found.open("#shop")
        yield found


def test_it_shows_what_the_service_knows(service: RunningService, watched: Session) -> None:
    """Fails when the page of the real service lacks a part, complains, or asks anybody else."""
    page = watched.page
    eventually(lambda: bool(service.call("GET", "shop/overview")["comparison"]), "numbers are told every few seconds")
    told = service.call("GET", "shop/overview", status=200)
    expect(page.locator("#comparison li").first).to_have_text(told["comparison"][0]["sentence"])
    expect(page.locator("#map circle.spot")).to_have_count(30)
    expect(page.locator("#slots rect.bar")).to_have_count(3)
    expect(page.locator("#health")).to_contain_text("linucb")
    assert watched.complaints == []
    assert watched.elsewhere == []


def test_a_new_decision_appears_and_tells_its_reasons(service: RunningService, watched: Session) -> None:
    """Fails when a decision does not appear by itself, or its reasons are not those the service gives."""
    page, id = watched.page, shop_some(service, 1, 1)
    entry = page.locator(f'#decisions li[data-decision="{id}"]')
    entry.locator("summary").click(timeout=PATIENCE)
    expect(entry.locator("tbody tr")).to_have_count(3)
    why = service.call("GET", f"shop/decisions/{id}", status=200)["why"]["items"]
    for row, reason in zip(entry.locator("tbody tr").all(), why, strict=True):
        largest = reason["contributions"][0]
        assert reason["item"] in row.inner_text()
        assert f"{largest['columns'][0]} = {largest['values'][0]}" in row.inner_text()


def test_promoting_asks_first(service: RunningService, watched: Session) -> None:
    """Fails when a version is promoted without a question, or is not after the answer."""
    page = watched.page
    button = page.get_by_role("button", name="Promote version 1", exact=True)
    button.click(timeout=PATIENCE)
    page.get_by_role("button", name="Cancel").click()
    assert service.call("GET", "shop/versions", status=200)["promoted"] is None
    button.click()
    page.get_by_role("button", name="Serve version 1", exact=True).click()
    expect(page.locator("#message")).to_have_text("Version 1 is served.")
    expect(page.locator("#versions")).to_contain_text("served, pinned")
    assert service.call("GET", "shop/versions", status=200)["promoted"] == 1
    page.get_by_role("button", name="Serve the latest again").click()
    page.get_by_role("button", name="Serve the latest", exact=True).click()
    expect(page.locator("#message")).to_have_text("The latest version is served.")
    assert service.call("GET", "shop/versions", status=200)["promoted"] is None


def test_a_killed_service_is_told_and_comes_back(service: RunningService, watched: Session) -> None:
    """Fails when a page that shows old numbers looks live, or does not come back by itself."""
    page = watched.page
    service.kill()
    expect(page.locator("#connection")).to_contain_text("Connection lost; next try in", timeout=PATIENCE)
    expect(page.locator("#retry")).to_be_visible()
    expect(page.locator("#comparison")).to_contain_text("live earns")
    service.start()
    id = shop_some(service, 1, 2)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE)
    expect(page.locator(f'#decisions li[data-decision="{id}"]')).to_be_visible(timeout=PATIENCE)
