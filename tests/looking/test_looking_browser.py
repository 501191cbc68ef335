"""The saved page in a real browser, opened from disk with the network cut."""

from pathlib import Path

import pytest
import torch

from regard.attention import Label, Look
from regard.looking import Curves, Looks

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Saves, opens, and afterwards insists that nothing went wrong or went out."""
    context = browser.new_context(offline=True)
    complaints, asked = [], []

    def visit(saved, name="look.html"):
        saved.save(tmp_path / name)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / name).as_uri())
        return page

    yield visit
    context.close()
    assert complaints == []
    assert all(url.startswith(("file:", "data:")) for url in asked)


def hover(page, row, column, rows, columns, name="#look-0-map-0"):
    """Point at the middle of a cell, wherever the browser has put it."""
    box = page.locator(f"{name} .frame").first.bounding_box()
    page.mouse.move(
        box["x"] + box["width"] * (column + 0.5) / columns,
        box["y"] + box["height"] * (row + 0.5) / rows,
    )
    return page.locator("#tip").inner_text().split("\n")


def test_pointing_at_a_cell_tells_who_looks_at_whom_and_how_much(opened, small):
    page = opened(Looks([small]))
    assert hover(page, 0, 1, 2, 3) == ["a → y", "0.7500", "characters 0–1 → characters 2–3"]
    assert page.locator("mark.query").inner_text() == "a"
    assert page.locator("mark.key").inner_text() == "y"
    page.mouse.move(0, 0)
    assert page.locator("#tip").is_hidden()
    assert page.locator("mark").count() == 0


def test_a_masked_cell_says_so_and_a_zero_is_a_number(opened, small):
    page = opened(Looks([small]))
    assert hover(page, 0, 2, 2, 3)[1] == "masked: may not look"
    assert hover(page, 1, 0, 2, 3)[1] == "0"


def test_a_row_that_does_not_sum_to_one_tells_its_sum(opened):
    look = Look.of_weights(torch.tensor([[0.25, 0.5], [0.5, 0.5]]), queries="ab", keys="xy")
    page = opened(Looks([look]))
    assert "row sums to 0.7500" in hover(page, 0, 0, 2, 2)
    assert not any("sums" in line for line in hover(page, 1, 0, 2, 2))


def test_places_in_the_text_count_characters_as_python_does(opened):
    keys = [Label("😀", 0, 1), Label("dog", 2, 5)]
    look = Look.of_weights(torch.ones(1, 2) / 2, queries="a", keys=keys, key_text="😀 dog 😀")
    page = opened(Looks([look]))
    hover(page, 0, 1, 1, 2)
    assert page.locator("mark.key").inner_text() == "dog"


def test_a_weight_beyond_the_scale_is_told_as_it_is(opened, causal):
    page = opened(Looks([causal]))
    assert page.locator("svg text:text-is('≥ 0.6')").is_visible()
    assert hover(page, 0, 0, 4, 4)[:2] == ["the → the", "1.0000"]
    assert hover(page, 2, 0, 4, 4)[:2] == ["runs → the", "0.6000"]


def test_arrow_keys_read_the_cells(opened, heads):
    page = opened(Looks([heads]))
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    told = page.locator("#tip").inner_text().split("\n")
    assert told[:3] == ["q1 → key1", f"{heads.weights[0, 1, 1]:.4f}", "head 0"]


def test_a_small_multiple_opens_large_and_gives_way_to_the_next(opened, heads):
    page = opened(Looks([heads]))
    page.locator("#look-0-map-1").click()
    assert page.locator("dialog").is_visible()
    assert page.locator("#large-list").input_value() == "head 1"
    labels = page.locator("dialog svg text").all_text_contents()
    assert {"q4", "key6"} <= set(labels)
    page.locator("#large-after").click()
    assert page.locator("#large-list").input_value() == "head 2"
    assert hover(page, 4, 5, 5, 7, "dialog .map")[:2] == [
        "q4 → key5",
        f"{heads.weights[2, 4, 5]:.4f}",
    ]
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    # The browser tells of the closing a moment later, and only then can the focus move on.
    page.locator("#look-0-map-2:focus").wait_for()


def test_enter_opens_the_map_that_has_the_focus(opened, heads):
    page = opened(Looks([heads]))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#large-list").input_value() == "head 1"


def test_an_image_of_many_cells_still_answers(opened, large):
    page = opened(Looks([large]))
    assert hover(page, 137, 53, 211, 211)[:2] == ["t137 → t53", f"{large.weights[0, 137, 53]:.4f}"]
    assert hover(page, 53, 137, 211, 211)[1] == "masked: may not look"


def test_a_cell_of_an_image_grid_is_the_key_at_its_place(opened):
    weights = torch.rand(2, 15)
    keys = [f"{row},{column}" for row in range(3) for column in range(5)]
    look = Look.of_weights(weights, kind="image", queries=["dog", "."], keys=keys, grid=(3, 5))
    page = opened(Looks([look]))
    told = hover(page, 2, 1, 3, 5, "#look-0-map-1")
    assert told[:2] == [". → 2,1", f"{weights[1, 11]:.4f}"]


def test_a_persian_strip_is_read_from_the_right(opened):
    words = ["دختر", "بالا", "می‌رود"]
    look = Look.of_weights(torch.tensor([[0.5, 0.3, 0.2]]), kind="pool", queries=["s"], keys=words)
    page = opened(Looks([look]))
    box = page.locator("#look-0-map-0 .frame").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 10)
    assert page.locator("#tip").inner_text().split("\n")[:2] == ["s → دختر", "0.5000"]


def test_hostile_tokens_run_nothing_and_are_shown_as_they_are(opened, hostile):
    page = opened(Looks([hostile]))
    told = hover(page, 0, 2, 11, 11)
    assert told[0] == "<script>window.harmed=1</script> → <img src=x onerror=window.harmed=1>"
    page.locator("#look-0-map-0").click()
    page.wait_for_timeout(100)
    assert page.evaluate("window.harmed") is None


def test_even_a_script_that_got_in_would_not_run(browser, tmp_path, small):
    Looks([small]).save(tmp_path / "look.html")
    text = (tmp_path / "look.html").read_text()
    smuggled = "<script>window.harmed=1</script><img src=x onerror='window.harmed=1'>"
    (tmp_path / "look.html").write_text(text.replace("<main>", "<main>" + smuggled))
    page = browser.new_page()
    page.goto((tmp_path / "look.html").as_uri())
    page.wait_for_timeout(100)
    assert page.evaluate("window.harmed") is None
    page.close()


def test_tokens_beside_their_rows_end_where_the_cells_begin(opened, persian):
    """A leftward token anchored by the wrong end would lie on the cells."""
    page = opened(Looks([persian]))
    cells = page.locator("#look-0-map-0 .frame").bounding_box()
    for label in persian.queries:
        box = page.locator(f"svg text:text-is('{label.text}')").bounding_box()
        assert cells["x"] - 12 < box["x"] + box["width"] <= cells["x"]


def test_a_notebook_shows_the_same_page_in_a_frame(browser, tmp_path, small):
    shown = Looks([small])._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}")
    page = browser.new_page()
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#look-0-map-0 .frame").hover()
    assert frame.locator("#tip").is_visible()
    page.close()


def test_curves_open_as_a_page_too(opened):
    page = opened(Curves({"loss": [3.0, 2.0, 1.0]}, "Loss", "step", "loss"), "loss.html")
    assert page.locator("svg").is_visible()
