"""The page in a real Chromium: what it draws, what it asks, and that it can be used by anybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page_service import Watched, serving
from page_sessions import PATIENCE, Session, real_browser, session
from playwright.sync_api import Browser, Page, expect
from simulated_log import Shop

from neuclust.serve.statistics.units import Units

HOSTILE = (
    "<img src=x onerror=alert(1)>", "\u202egnp.exe", "'\"><script>alert(2)</script>", "{{constructor}}", "a" * 900,
    "../../etc/passwd", "%3Cb%3E", "line\nbreak\u0000null",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with real_browser() as found:
        yield found


@pytest.fixture(scope="module")
def shops() -> dict[str, Watched]:
    shop = Watched("shop", Shop(holdout=0.25, answered=1.0))
    hostile = Watched("hostile", Shop(hostile=HOSTILE, count=8))
    money = Watched("money", Shop(answered=1.0), units=Units(0.0, 200.0, 3))
    money.lost.append({"items": {"item-1": 1}, "status": "refused", "reason": "expected no other values, <b>got</b> 1"})
    few = Watched("few", Shop(answered=0.5, gap=0.3))
    for each, decisions in ((shop, 500), (hostile, 30), (money, 60), (few, 8)):
        each.play(decisions)
    return {"shop": shop, "hostile": hostile, "money": money, "few": few, "bare": Watched("bare")}


@pytest.fixture(scope="module")
def port(shops: dict[str, Watched]) -> Iterator[int]:
    with serving(shops) as found:
        yield found


@pytest.fixture
def desk(browser: Browser, port: int) -> Iterator[Session]:
    """A page of a desk's size; whatever a test does, nothing is complained of and nobody else is asked."""
    found = session(browser, port)
    yield found
    found.page.context.close()
    assert found.complaints == []
    assert found.elsewhere == []


def numbers(page: Page, selector: str, name: str) -> list[float]:
    found: list[float] = page.eval_on_selector_all(selector, f"nodes => nodes.map(node => Number(node.dataset.{name}))")
    return found


def test_charts_show_the_numbers_of_the_overview(desk: Session, shops: dict[str, Watched]) -> None:
    """Fails when a chart lacks a point or draws it elsewhere than its number says."""
    page, wanted = desk.open("#shop"), shops["shop"].overview()
    for arm in ("live", "holdout", "random"):
        points = wanted["series"][arm]
        assert numbers(page, f"#clicks circle.{arm}", "mean") == pytest.approx([point["mean"] for point in points])
        assert page.locator(f"#clicks path.band.{arm}").get_attribute("d")
    drawn = page.eval_on_selector_all("#clicks circle.live", "nodes => nodes.map(n => n.getAttribute('cy'))")
    heights = [float(y) for y in drawn]
    means = numbers(page, "#clicks circle.live", "mean")
    slope = (heights[0] - heights[-1]) / (means[-1] - means[0])
    assert [heights[0] - slope * (mean - means[0]) for mean in means] == pytest.approx(heights, abs=0.2)
    assert numbers(page, "#slots rect.bar", "mean") == pytest.approx([slot["mean"] for slot in wanted["slots"]])
    assert len(numbers(page, "#exploring circle", "mean")) == len(wanted["series"]["exploring"])
    assert sum(numbers(page, "#map circle.spot", "chosen")) == sum(p["chosen"] for p in wanted["map"]["points"])
    assert page.locator("#comparison li").all_inner_texts() == [row["sentence"] for row in wanted["comparison"]]
    assert page.locator("#now .figure .value").first.inner_text() == f"{wanted['comparison'][0]['clicks']['mean']:.2f}"


def test_money_is_not_called_clicks(desk: Session, shops: dict[str, Watched]) -> None:
    """Fails when rewards that are money are shown as shares of a range, as percents, or as clicks."""
    page, wanted = desk.open("#money"), shops["money"].overview()
    earned = wanted["comparison"][0]["clicks"]["mean"]
    assert page.locator("#now .figure .value").first.inner_text() == f"{earned:.1f}"
    assert page.locator("#comparison li").first.inner_text().startswith(f"live earns {earned:.1f} per request")
    expect(page.locator("#clicks-title")).to_have_text("Reward per request over time")
    expect(page.locator("#slots-title")).to_have_text("Reward by slot")
    page.locator("#slots details summary").click()
    assert page.locator("#slots tbody td").first.inner_text() == f"{wanted['slots'][0]['mean']:.1f}"
    assert "lick" not in page.locator("#overview").inner_text()
    page.locator("#chooser").select_option("shop")
    expect(page.locator("#clicks-title")).to_have_text("Clicks per request over time")


def test_messages_that_did_not_count_are_told(desk: Session) -> None:
    """Fails when a message that learning refused looks like one that counts, or nobody counts it."""
    page = desk.open("#money")
    expect(page.locator("#health .warning")).to_have_text("1 message did not count: the decision it is for tells why.")
    page.locator("#decisions summary").first.click()
    refused = page.locator('#decisions li[data-status="refused"]').first
    expect(refused).to_have_text("item-1 – refused: expected no other values, <b>got</b> 1")
    page.locator("#chooser").select_option("shop")
    expect(page.locator("#health")).to_contain_text("messages refused by learning0")
    expect(page.locator("#health .warning")).to_have_count(0)


def test_no_two_times_of_an_axis_read_alike(desk: Session) -> None:
    """Fails when an axis of a few seconds tells the same time twice, or a lone point has no word beside it."""
    page = desk.open("#few")
    for chart in ("#clicks", "#exploring"):
        times = page.locator(f"{chart} text.time").all_text_contents()
        assert len(times) == len(set(times)) > 1
    assert page.locator("#clicks circle.live").count() == 1
    assert page.locator("#clicks path.alone.live").get_attribute("d")
    expect(page.locator("#clicks")).to_contain_text("One point so far")


def test_columns_are_folded_and_told(desk: Session) -> None:
    """Fails when the table stands open, lacks a column, or stays where another shop is chosen."""
    page = desk.open("#shop")
    expect(page.locator("#features table")).to_have_count(0)
    page.locator("#features-part summary").first.click()
    expect(page.locator("#features tbody th")).to_have_text(["category", "price", "taste"])
    expect(page.locator("#features tbody tr").nth(1)).to_contain_text("running, 40 values")
    page.locator("#chooser").select_option("hostile")
    expect(page.locator("#features tbody tr").nth(1)).to_contain_text("running, 8 values")


def test_it_is_live(desk: Session, shops: dict[str, Watched]) -> None:
    """Fails when a new decision does not appear by itself, or closes what a reader has opened."""
    page = desk.open("#shop")
    page.locator("#clicks details summary").click()
    page.locator("#decisions details summary").first.click()
    first = page.locator("#decisions li[data-decision]").first.get_attribute("data-decision")
    shops["shop"].play(2)
    newest = shops["shop"].answers()[0]["decision_id"]
    expect(page.locator("#decisions li[data-decision]").first).to_have_attribute("data-decision", newest)
    expect(page.locator(f'#decisions li[data-decision="{first}"] details')).to_have_attribute("open", "")
    expect(page.locator("#clicks details")).to_have_attribute("open", "")


def test_the_chooser_and_the_address_agree(desk: Session) -> None:
    """Fails when choosing a recommender shows another one's numbers, or its address cannot be shared."""
    page = desk.open("#shop")
    page.locator("#chooser").select_option("bare")
    expect(page.locator("#empty")).to_contain_text("PUT /v1/recommenders/bare/items/ITEM")
    assert page.url.endswith("#bare")
    assert page.title() == "bare · neuclust"
    expect(page.locator("#comparison")).to_contain_text("POST /v1/recommenders/bare/recommendations")
    page.evaluate("location.hash = '#shop'")
    expect(page.locator("#comparison")).to_contain_text("live earns")
    assert page.locator("#chooser").input_value() == "shop"
    expect(page.locator("#empty")).to_be_hidden()


def test_hostile_ids_are_text(desk: Session) -> None:
    """Fails when an item's id becomes markup, runs, or is lost."""
    page = desk.open("#hostile")
    expect(page.locator("#map circle.spot")).to_have_count(8)
    items = page.eval_on_selector_all("#map circle.spot", "nodes => nodes.map(node => node.dataset.item)")
    assert set(items) >= set(HOSTILE)
    for summary in page.locator("#decisions summary").all()[:6]:
        summary.click()
    page.locator("#map .focusable").focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    assert page.locator("main img, main script, main b").count() == 0
    assert "<img src=x onerror=alert(1)>" in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_map_tells_items_by_pointer_and_by_keys(desk: Session, shops: dict[str, Watched]) -> None:
    """Fails when the item under the pointer, or the next one by the arrow keys, is not told."""
    page = desk.open("#shop")
    readout = page.locator("#map .readout")
    page.locator("#map .focusable").focus()
    page.keyboard.press("ArrowRight")
    most = max(shops["shop"].overview()["map"]["points"], key=lambda point: point["chosen"])
    expect(readout).to_contain_text(f"chosen {most['chosen']:.0f} times lately")
    spot = page.locator("#map circle.spot").nth(5)
    spot.scroll_into_view_if_needed()
    spot.hover(force=True)
    expect(readout).to_contain_text(str(spot.get_attribute("data-item")))
    page.locator("#clicks .focusable").focus()
    page.keyboard.press("Home")
    expect(page.locator("#clicks .readout")).to_contain_text("live")


def test_everything_is_reached_by_the_tab_key(desk: Session) -> None:
    """Fails when a control cannot be reached or its focus cannot be seen."""
    page = desk.open("#shop")
    seen: set[str] = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        name = "n.id || n.dataset.focus || n.getAttribute('aria-label') || n.tagName"
        seen.add(page.evaluate(f"(n => {name})(document.activeElement)"))
        styles = page.evaluate("(n => [n.tagName, getComputedStyle(n).outlineStyle])(document.activeElement)")
        assert styles[0] == "BODY" or styles[1] != "none"
        if styles[0] == "BODY":
            break
    wanted = {"chooser", "key", "theme", "clicks", "exploring", "map", "promote-2", "SUMMARY"}
    wanted |= {f"table-{name}" for name in ("comparison", "clicks", "exploring", "slots", "map")}
    assert wanted <= seen


def test_colours_follow_the_system_and_the_switch(browser: Browser, port: int) -> None:
    """Fails when dark is not dark, or the switch does not win over the system or is forgotten."""
    found = session(browser, port, color_scheme="dark")
    page = found.open("#shop")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_have_text("Colours: light")
    light = page.evaluate(background)
    assert sum(map(int, dark[4:-1].split(","))) < 120 < 600 < sum(map(int, light[4:-1].split(",")))
    page.reload()
    expect(page.locator("#theme")).to_have_text("Colours: light")
    assert page.evaluate(background) == light
    page.context.close()


@pytest.mark.parametrize("name", ["shop", "hostile", "bare"])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, port: int, name: str) -> None:
    """Fails when something is wider than 360 pixels."""
    found = session(browser, port, viewport={"width": 360, "height": 740}, has_touch=True)
    page = found.open(f"#{name}")
    for summary in page.locator("main summary").all()[:8]:
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert found.complaints == []
    page.context.close()


def test_a_lost_connection_is_told_and_comes_back(browser: Browser, shops: dict[str, Watched]) -> None:
    """Fails when a page that shows old numbers looks live, or does not come back."""
    with serving(shops) as port:
        found = session(browser, port)
        page = found.open("#shop")
    expect(page.locator("#connection")).to_contain_text("Connection lost; next try in", timeout=PATIENCE)
    expect(page.locator("#comparison")).to_contain_text("live earns")
    shops["shop"].play(1)
    with serving(shops, port=port):
        page.locator("#retry").click(timeout=PATIENCE)
        expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE)
        newest = shops["shop"].answers()[0]["decision_id"]
        expect(page.locator("#decisions li[data-decision]").first).to_have_attribute("data-decision", newest)
    page.context.close()


def test_a_key_is_asked_for_and_sent(browser: Browser, shops: dict[str, Watched]) -> None:
    """Fails when a service with keys cannot be watched, or the key is kept beyond the tab."""
    with serving(shops, key="nk_secret") as port:
        page = session(browser, port).page
        page.goto(f"http://127.0.0.1:{port}/#shop")
        for given in ("nk_wrong", "nk_secret"):
            expect(page.locator("#ask-key")).to_be_visible(timeout=PATIENCE)
            page.locator("#key-input").fill(given)
            page.keyboard.press("Enter")
        expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE)
        expect(page.locator("#comparison")).to_contain_text("live earns")
        assert page.evaluate("Object.values(localStorage).join()").find("nk_secret") == -1
        assert "nk_" not in page.url + page.locator("body").inner_text()
        page.context.close()
