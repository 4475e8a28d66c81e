"""The page in a real browser: it shows what the API says, and asks nobody else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from playwright.sync_api import Browser, Page, Route, expect

from bloomtide.monitor import SourceStats
from tests.server_http.events import EVENTS, NOW, START, open_monitor
from tests.server_http.keys import Keys
from tests.server_http.serving import Served, serve

WIDE = (1440, 1000)
NARROW = (390, 844)


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_monitor(tmp_path_factory.mktemp("page") / "monitor") as monitor:
        yield monitor


@pytest.fixture(scope="module")
def served(monitor: Any) -> Iterator[Served]:
    with serve(monitor=monitor) as served:
        yield served


class Window:
    """A page, what went wrong in it, and whom it asked."""

    def __init__(self, browser: Browser, size: tuple[int, int], scheme: Any = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, timezone_id="UTC"
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.errors: list[str] = []
        self.asked: set[str] = set()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))

    def _hear(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def keep(self, name: str, folder: Path) -> None:
        """A picture of it all; `PAGE_PICTURES` says where to."""
        pictures = Path(os.environ.get("PAGE_PICTURES", folder))
        self.page.screenshot(path=pictures / f"{name}.png", full_page=True)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Any]:
    """Opens windows; an error in one fails the test, as does a request to somebody else."""
    with ExitStack() as leaving:
        windows: list[Window] = []

        def open_window(size: tuple[int, int] = WIDE, scheme: str = "light") -> Window:
            window = Window(browser, size, scheme)
            leaving.callback(window.context.close)
            windows.append(window)
            return window

        yield open_window
        assert [error for window in windows for error in window.errors] == []
        assert {host.split(":")[0] for window in windows for host in window.asked} == {"127.0.0.1"}


def number(text: str) -> float:
    return float(re.sub(r"[^\d.]", "", text))


def shown(page: Page, rows: str) -> list[list[str]]:
    """The cells of a table."""
    cells: list[list[str]] = page.eval_on_selector_all(
        f"#{rows} tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return cells


def wait_until_live(page: Page) -> None:
    expect(page.locator("#state")).to_have_text("Live")


def figure(page: Page, name: str) -> str:
    return page.locator("#figures div", has_text=name).locator("dd").first.inner_text()


def test_the_page_shows_the_numbers_of_the_api(
    opened: Any, served: Served, monitor: Any, tmp_path: Path
) -> None:
    window = opened()
    page = window.page
    page.goto(served.url)
    wait_until_live(page)
    stats = served.send("/api/stats").json["monitor"]
    assert number(figure(page, "since")) == stats["events"] == EVENTS
    assert number(figure(page, "New keys")) == stats["new"]
    assert number(figure(page, "Late events")) == stats["late"]
    hot = served.send("/api/hot?n=25").json["items"]
    rows = shown(page, "hot-rows")
    assert [row[1] for row in rows] == [item["key"] for item in hot]
    for row, item in zip(rows, hot, strict=True):
        assert number(row[5]) == pytest.approx(item["count"], abs=0.5)
    structures = served.send("/api/structures").json["items"]
    rows = shown(page, "structures-rows")
    assert [row[0] for row in rows] == [each["name"] for each in structures]
    assert [number(row[2]) for row in rows] == [
        pytest.approx(each["items"], abs=0.5) for each in structures
    ]
    expect(page.locator("#guards")).to_be_hidden()
    window.keep("light", tmp_path)


def test_a_key_is_looked_up_with_bounds_and_history(opened: Any, served: Served) -> None:
    page = opened().page
    page.goto(served.url)
    wait_until_live(page)
    page.get_by_role("searchbox", name="Key").fill("/late")
    page.get_by_role("button", name="Look up").click()
    facts = page.locator("#facts div")
    expect(facts).to_have_count(4)
    expect(facts.nth(0)).to_contain_text("yes")
    count = served.send("/api/count?key=/late").json
    assert (
        number(facts.nth(1).locator("dd").evaluate("node => node.firstChild.textContent"))
        == (count["value"])
    )
    heat = served.send("/api/heat?key=/late").json
    assert number(facts.nth(2).locator("dd").get_attribute("title") or "") == pytest.approx(
        heat["value"], abs=1e-5
    )
    expect(facts.nth(3)).to_contain_text("50")
    expect(page.locator("#series .stroke").first).to_have_attribute("d", re.compile("^M.*L"))
    expect(page.locator("#said")).to_contain_text("/late: Seen yes, Count 50")
    assert "#key=%2Flate" in page.url
    page.reload()
    expect(facts.nth(3)).to_contain_text("50")
    page.get_by_role("searchbox", name="Key").fill("<img src=x onerror=alert(1)>")
    page.get_by_role("searchbox", name="Key").press("Enter")
    expect(facts.nth(0)).to_contain_text("no")
    expect(facts.nth(0)).to_contain_text("for certain")
    assert page.locator("img[src=x]").count() == 0


def test_what_is_possible_and_not_certain_is_a_band_in_the_chart(
    opened: Any, served: Served
) -> None:
    page = opened().page

    def widen(route: Route) -> None:
        # As if rows were wider than a step: nothing is certain, twice as much is possible.
        reply = route.fetch()
        told = reply.json()
        told["inner"] = [0 for _ in told["inner"]]
        told["upper"] = [2 * value for value in told["upper"]]
        route.fulfill(response=reply, json=told)

    page.route("**/api/history/series*", widen)
    page.goto(f"{served.url}/#key=/page/0")
    shape = page.locator("#series .fill-band")
    expect(shape).to_have_count(1)
    assert shape.evaluate("node => node.getBBox().height") > 100
    chart = page.get_by_role("img", name="History of the key")
    chart.focus()
    chart.press("ArrowLeft")
    chart.press("ArrowLeft")
    expect(page.locator("#series .tell")).to_have_text("1 Jan 00:58: 2 (0 to 4)")


def top_of(served: Served, start: float, end: float) -> list[tuple[str, float]]:
    told = served.send(f"/api/history/top?start={start}&end={end}&n=10").json["items"]
    return [(item["key"], item["count"]) for item in told]


def top_shown(page: Page) -> list[tuple[str, float]]:
    return [(row[1], number(row[2])) for row in shown(page, "top-rows")]


def brushed(page: Page) -> tuple[float, float]:
    """The range that the two handles say."""
    start, end = (
        float(page.get_by_role("slider", name=name).get_attribute("aria-valuenow") or "nan")
        for name in ("Start of the range", "End of the range")
    )
    return START + 60 * start, START + 60 * end


def wait_for_top(page: Page, served: Served) -> None:
    """The table shows the top of the range that is chosen."""
    first = top_of(served, *brushed(page))[0]
    expect(page.locator("#top-rows tr").first.locator("td").nth(2)).to_have_text(f"{first[1]:.0f}")
    assert top_shown(page) == top_of(served, *brushed(page))


def test_a_range_is_chosen_with_the_mouse(opened: Any, served: Served) -> None:
    page = opened().page
    page.goto(served.url)
    page.get_by_role("button", name="All").click()
    expect(page.locator("#past-aside")).to_contain_text("00:00 to 01:00")
    wait_for_top(page, served)
    page.locator("#timeline").scroll_into_view_if_needed()
    box = page.locator("#timeline svg").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * (50.5 / 60), y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (55.5 / 60), y, steps=5)
    page.mouse.up()
    page.mouse.move(5, 5)
    assert brushed(page) == (START + 3000, START + 3360)
    wait_for_top(page, served)
    assert top_shown(page)[0] == ("/late", 30)
    # An edge is dragged on from where it is.
    page.mouse.move(box["x"] + box["width"] * (56 / 60), y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (57.5 / 60), y, steps=5)
    page.mouse.up()
    assert brushed(page) == (START + 3000, START + 3480)
    wait_for_top(page, served)
    page.get_by_role("button", name="Zoom to range").click()
    expect(page.locator("#past-aside")).to_have_text(re.compile("00:50 to 00:58: 8 min"))
    page.get_by_role("button", name="All").click()
    page.locator("#timeline svg").click(position={"x": 30, "y": 30})
    expect(page.get_by_role("button", name="Zoom to range")).to_be_disabled()


def test_a_range_is_chosen_with_the_keyboard_alone(opened: Any, served: Served) -> None:
    page = opened().page
    page.goto(served.url)
    page.get_by_role("button", name="All").press("Enter")
    expect(page.locator("#past-aside")).to_contain_text("00:00 to 01:00")
    start = page.get_by_role("slider", name="Start of the range")
    end = page.get_by_role("slider", name="End of the range")
    start.focus()
    for _ in range(5):
        page.keyboard.press("PageUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(start).to_have_attribute("aria-valuetext", re.compile("00:50"))
    end.focus()
    page.keyboard.press("ArrowLeft")
    assert brushed(page) == (START + 3000, NOW - 60)
    wait_for_top(page, served)
    assert top_shown(page)[0][0] == "/late"
    page.keyboard.press("Home")
    assert brushed(page) == (START + 3000, START + 3060)
    page.keyboard.press("Escape")
    assert brushed(page) == (START, NOW)
    wait_for_top(page, served)


def test_everything_can_be_reached_by_the_tab_key(opened: Any, served: Served) -> None:
    page = opened().page
    page.goto(served.url)
    wait_until_live(page)
    expect(page.locator("#top-rows button").first).to_be_visible()
    reached = set()
    for _ in range(100):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "() => { const at = document.activeElement;"
                " return at.id || at.getAttribute('aria-label') || at.closest('[id]')?.id; }"
            )
        )
    wanted = {"theme", "hot-rows", "key-text", "lookup", "spans", "top-rows"}
    wanted |= {"Start of the range", "End of the range", "All events by time"}
    assert wanted <= reached


def test_a_monitor_without_events_says_how_to_send_one_and_shows_it(
    opened: Any, tmp_path: Path
) -> None:
    window = opened()
    with (
        open_monitor(tmp_path / "empty", filled=False) as monitor,
        serve(monitor=monitor) as served,
    ):
        page = window.page
        page.goto(served.url)
        expect(page.locator("#hot-rows")).to_contain_text("Nothing has come in yet")
        expect(page.locator("#top-rows")).to_contain_text("Nothing has happened yet")
        window.keep("empty", tmp_path)
        said = page.locator("#hot-rows code").inner_text()
        assert f"{served.url}/api/events" in said
        served.send("/api/events", b'{"key": "/hello"}', Content_Type="application/x-ndjson")
        expect(page.locator("#hot-rows button")).to_have_text("/hello")
        expect(page.locator("#top-rows button")).to_have_text("/hello")
        page.goto("about:blank")


def test_a_server_of_named_structures_shows_them_and_no_stream(opened: Any) -> None:
    window = opened()
    page = window.page
    with serve(keyspace=Keys()) as served:
        page.goto(served.url)
        expect(page.locator("#structures-rows tr")).to_have_count(3)
        assert [row[0] for row in shown(page, "structures-rows")] == [
            each["name"].replace("\n", "⟨U+000A⟩")
            for each in served.send("/api/structures").json["items"]
        ]
        expect(page.locator("#hot")).to_be_hidden()
        assert shown(page, "commands-rows") == [["BF.ADD", "10", "1"], ["GET", "2", "0"]]
        assert number(figure(page, "3 errors")) == 12
        assert "192 B" in page.locator("#figures").inner_text()
        page.goto("about:blank")
    with serve() as served:
        page.goto(served.url)
        expect(page.locator("#structures-rows")).to_contain_text("No structure yet")
        page.goto("about:blank")


def test_a_lost_server_is_said_and_found_again(opened: Any, monitor: Any, tmp_path: Path) -> None:
    window = opened(scheme="dark")
    page = window.page
    with serve(monitor=monitor) as served:
        page.goto(served.url)
        wait_until_live(page)
    expect(page.locator("#state")).to_have_text("Connection lost")
    expect(page.locator("#main")).to_have_attribute("data-state", "lost")
    expect(page.locator("#hot-rows button").first).to_have_text("/late")
    window.keep("lost", tmp_path)
    with serve(monitor=monitor, port=served.port):
        wait_until_live(page)
        expect(page.locator("#main")).to_have_attribute("data-state", "live")
        page.goto("about:blank")


def test_an_error_is_shown_with_its_hint(opened: Any, served: Served) -> None:
    page = opened().page
    refusal = '{"error": {"message": "the disk is gone", "hint": "buy one"}}'
    page.route("**/api/history/top*", lambda route: route.fulfill(status=503, body=refusal))
    page.goto(served.url)
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("the disk is gone")
    expect(notice).to_contain_text("buy one")
    wait_until_live(page)


def test_before_the_first_picture_the_page_says_that_it_connects(
    opened: Any, served: Served
) -> None:
    page = opened().page
    page.route("**/api/live", lambda route: None)
    page.goto(served.url)
    expect(page.locator("#state")).to_have_text("Connecting")
    assert page.locator("#hot-rows .ghost").count() > 10
    page.unroute_all(behavior="ignoreErrors")


def test_a_token_is_asked_for_once(opened: Any, monitor: Any) -> None:
    page = opened().page
    with serve(monitor=monitor, token="s3cret") as served:
        page.goto(served.url)
        field = page.get_by_label("This server needs its token")
        field.fill("wrong")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#state")).to_have_text("Token needed")
        field.fill("s3cret")
        page.get_by_role("button", name="Go on").click()
        wait_until_live(page)
        page.reload()
        wait_until_live(page)
        page.goto("about:blank")


def test_a_token_in_the_address_is_used_and_taken_out_of_it(opened: Any, monitor: Any) -> None:
    page = opened().page
    with serve(monitor=monitor, token="s3cret") as served:
        page.goto(f"{served.url}/#token=s3cret")
        wait_until_live(page)
        assert "s3cret" not in page.url
        page.goto("about:blank")


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(page: Page, selector: str) -> float:
    """Of a text and the panel that it stands on."""
    two: list[str] = page.evaluate(
        "selector => [getComputedStyle(document.querySelector(selector)).color,"
        " getComputedStyle(document.querySelector('.panel')).backgroundColor]",
        selector,
    )
    low, high = sorted(luminance(colour) for colour in two)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_text_can_be_read_in_both_themes_and_nothing_is_cut_off(
    opened: Any, served: Served, scheme: str, size: tuple[int, int], tmp_path: Path
) -> None:
    window = opened(size, scheme)
    page = window.page
    page.goto(served.url)
    wait_until_live(page)
    expect(page.locator("#facts div")).to_have_count(4)
    expect(page.locator("#hot-rows tr[aria-current]")).to_have_count(1)
    for selector in ("dd", "dt", ".aside", "td.soft", ".legend", "tr[aria-current] button"):
        assert contrast(page, selector) >= 4.5, selector
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= size[0]
    window.keep(f"{scheme}-{size[0]}", tmp_path)


def test_the_theme_can_be_switched_and_stays(opened: Any, served: Served) -> None:
    page = opened().page
    page.goto(served.url)
    wait_until_live(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.locator("#theme")
    expect(button).to_have_text("Theme: system")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    assert luminance(page.evaluate(ground)) < 0.05 < luminance(light)
    page.reload()
    expect(button).to_have_text("Theme: dark")
    button.click()
    expect(button).to_have_text("Theme: system")
    assert page.evaluate(ground) == light


# --- an old log, and what it is read from


class Logs:
    """What `bloomtide watch` tells of two logs."""

    def stop(self) -> None:
        pass

    def about_sources(self) -> list[SourceStats]:
        bad = ("a.log, line 7: not COMBINED: x",)
        clean = {"lines": 90, "counted": 90, "skipped": 0, "without": 0, "field": "path"}
        return [
            SourceStats(
                name="a.log", lines=100, counted=95, skipped=1, without=4, field="path", bad=bad
            ),
            SourceStats(name="b.log", bad=(), **clean),  # type: ignore[arg-type]
        ]

    def about_problems(self) -> list[str]:
        return ["waiting for c.log"]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The hour of traffic as a log of years ago, with a key whose marks turn the text around."""
    path = tmp_path_factory.mktemp("page") / "old"
    with open_monitor(path, clock=NOW + 40 * 86400) as monitor:
        monitor.add_many(["/\u202egpj.exe"] * 40, at=[NOW - 1800.0 - i for i in range(40)])
        with serve(monitor=monitor, feeding=Logs()) as served:
            yield served


def test_an_old_log_says_what_its_now_is_and_draws_its_own_time(
    opened: Any, old: Served, tmp_path: Path
) -> None:
    window = opened()
    page = window.page
    page.clock.set_fixed_time(datetime(2027, 3, 1, tzinfo=UTC))
    page.goto(old.url)
    wait_until_live(page)
    expect(page.locator("#old")).to_contain_text(
        "now, wherever this page says it, is 1 Jan 2026 00:59:48"
    )
    expect(page.locator("#hot-spark")).to_have_text("Last 1 h")
    expect(page.locator("#past-aside")).to_contain_text("1 Jan 2026, 00:00 to 01:00")
    late = page.locator("#hot-rows tr", has_text="/late")
    assert late.locator(".spark path").count() == 1
    assert late.locator(".t").get_attribute("data-trend") == "up"
    window.keep("old-log", tmp_path)


def test_what_fell_has_no_arrow_up_and_marks_of_direction_are_shown(
    opened: Any, old: Served
) -> None:
    page = opened().page
    page.goto(old.url)
    wait_until_live(page)
    turned = page.locator("#hot-rows tr", has_text="gpj.exe")
    expect(turned.locator("button")).to_have_text("/⟨U+202E⟩gpj.exe")
    assert turned.locator(".t").get_attribute("data-trend") != "up"
    turned.locator("button").click()
    count = page.locator("#facts div", has_text="Count").locator("dd")
    expect(count).to_have_text("40exact, in 95 of 100 answers")
    expect(page.get_by_label("Key", exact=True)).to_have_value("/⟨U+202E⟩gpj.exe")
    page.get_by_role("button", name="Look up").click()
    expect(count).to_have_text("40exact, in 95 of 100 answers")


def test_the_page_tells_of_its_sources_and_hides_guards_that_are_not_there(
    opened: Any, old: Served
) -> None:
    page = opened().page
    page.goto(old.url)
    wait_until_live(page)
    rows = shown(page, "sources-rows")
    assert [row[1:] for row in rows] == [["100", "95", "5"], ["90", "90", "0"]]
    for text in ("a.log", "4 lines without a path", "1 not understood", "line 7: not COMBINED: x"):
        assert text in rows[0][0]
    expect(page.locator("#sources-problems")).to_have_text("waiting for c.log")
    expect(page.locator("#guards")).to_be_hidden()
    ground = "getComputedStyle(document.querySelector('#status'), '::before').backgroundColor"
    red, green, _ = (int(part) for part in re.findall(r"\d+", page.evaluate(ground))[:3])
    assert green > red, "live does not look like an alarm"
