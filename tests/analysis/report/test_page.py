"""The report is one file that says what the runs' files say, runs nothing of theirs, and works in a browser."""

import html.parser
import json
import os
import re
import shutil

import numpy as np
import pytest
from folders import make_run
from matplotlib.image import imsave

from cfn.analysis.figures.panels import Style
from cfn.analysis.grouping import group
from cfn.analysis.report.page import page
from cfn.analysis.report.slider import MAX_FRAMES, slider_data
from cfn.runs.record import load_runs

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def report(tmp_path, problems=()):
    groups, _ = group(load_runs([tmp_path])[0])
    return page(groups, Style(), problems, tmp_path)


class Reader(html.parser.HTMLParser):
    """Tags, their attributes, and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_has_tables_figures_settings_and_links(tmp_path):
    for seed in (0, 1):
        make_run(tmp_path, seed=seed, config={"bonus.lr": 0.125}, tables=2)
    make_run(tmp_path, "rnd", env="taxi5")
    reader = Reader(report(tmp_path, ["something was left out"]))
    words = " ".join(reader.words)
    assert "3 runs: gridworld, taxi5" in words
    assert "something was left out" in words
    assert "bonus.lr" in words
    assert "0.125" in words
    assert len(reader.of("svg")) == 3, "curves of both, count errors of the one that means to count"
    assert len(reader.of("input")) == 2
    links = [a["href"] for a in reader.of("a") if not a["href"].startswith("#")]
    assert len(links) == 3 * 4
    assert all((tmp_path / link.replace("%3D", "=")).exists() for link in links)


def test_rooms_settings_and_what_could_not_be_read_are_told(tmp_path):
    folder = make_run(tmp_path, env="montezuma", overrides=["env=montezuma", "seed=0"], tables=0)
    table = "state,count,true_bonus,predicted_bonus\n77 235 1,4,0.5,0.4\n"
    (folder / "counts" / "step_000000100.csv").write_text(table)
    (folder / "rooms").mkdir()
    imsave(folder / "rooms" / "1.png", np.zeros((84, 84), np.uint8), cmap="gray")
    broken = make_run(tmp_path, "rnd", env="montezuma")
    (broken / "counts" / "step_000000100.csv").write_text("x")
    reader = Reader(report(tmp_path))
    words = " ".join(reader.words)
    assert "room 1: 4 visits" in words
    assert "the command env=montezuma" in " ".join(words.split())
    assert "steps 1000" in " ".join(words.split()), "how long a run is belongs to it, too"
    assert "it needs the columns state, count" in words
    (rooms,) = (attributes for _, attributes in reader.tags if "with-image" in attributes.get("class", ""))
    assert rooms["class"] == "figure with-image", "which a dark page does not turn into its negative"


def test_a_run_that_was_killed_is_not_running(tmp_path):
    make_run(tmp_path, state="running")
    assert "seed 0, killed at step 200" in " ".join(Reader(report(tmp_path)).words)


def test_names_that_are_no_letters(tmp_path):
    folder = make_run(tmp_path)
    folder.rename(os.fsdecode(os.fsencode(folder) + b"\xff"))
    links = [link["href"] for link in Reader(report(tmp_path)).of("a")]
    assert any(link.endswith("seed%3D0%FF/metrics.jsonl") for link in links)


def test_it_needs_no_network(tmp_path):
    make_run(tmp_path)
    reader = Reader(report(tmp_path))
    for _, attributes in reader.tags:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert not re.match(r"[a-z]+:(?!,)|//", attributes.get(name, ""), re.I), attributes
    assert reader.of("link") == [{"rel": "icon", "href": "data:,"}]


def test_what_comes_from_files_is_text(tmp_path):
    folder = make_run(tmp_path, config={"bonus.name": NASTY, "env.mode": NASTY})
    make_run(tmp_path, config={"bonus.name": "{{script}}", "env.mode": NASTY})
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"state": NASTY, "env": NASTY, "bonus": NASTY}))
    text = report(tmp_path, [NASTY])
    reader = Reader(text)
    assert len(reader.of("script")) == 2, "the data and the page's own"
    assert reader.of("img") == []
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert sum(word.count("alert(1)") for word in reader.words) >= 4, "it is shown, as text"
    assert "<" not in text[text.index('id="sliders">') + 13 : text.rindex("</script>\n<script>")]


def test_the_slider_is_thinned_and_ends_with_the_last_table(tmp_path):
    make_run(tmp_path, tables=40, config={"env.size": 64})
    one = slider_data(group(load_runs([tmp_path])[0])[0])
    panel = one["panels"][0]
    steps = [frame["step"] for frame in panel["frames"]]
    assert len(steps) == MAX_FRAMES
    assert (steps[0], steps[-1]) == (100, 4000)
    assert one["steps"][-1] == 4000
    frame = panel["frames"][-1]
    assert frame["counts"] == [1, 2, 3, 4, 5]
    assert frame["bonus"][3] * panel["unit"] == pytest.approx(0.5)
    assert panel["grid"] is None, "64 x 64 cells are too many for a page"


def test_maps_know_the_place_of_each_state(tmp_path):
    make_run(tmp_path, tables=3, config={"env.size": 7})
    panel = slider_data(group(load_runs([tmp_path])[0])[0])["panels"][0]
    assert panel["grid"] == [7, 7]
    assert panel["frames"][2]["cells"] == [14, 15, 16, 17, 18], "(0, 2) to (4, 2), row by row"


def test_without_count_tables_there_is_no_slider(tmp_path):
    make_run(tmp_path, tables=0)
    assert Reader(report(tmp_path)).of("input") == []


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "light"), (390, "dark")])
def test_in_a_browser_it_loads_fits_and_the_slider_moves(tmp_path, browser, width, scheme):
    make_run(tmp_path, tables=5, config={"env.size": 7, "bonus.name": NASTY})
    make_run(tmp_path, "rnd", tables=5, config={"env.size": 7})
    path = tmp_path / "report.html"
    path.write_text(report(tmp_path), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    tab.goto(path.as_uri())
    assert said == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    pictures = tab.locator(".slider canvas")
    assert pictures.count() == 6, "a scatter and two maps of each"
    before = [pictures.nth(i).evaluate("canvas => canvas.toDataURL()") for i in range(6)]
    assert len(set(before)) > 3, "they are drawn"
    assert tab.locator(".slider output").inner_text() == "step 500"
    tab.locator(".slider input").press("Home")
    assert tab.locator(".slider output").inner_text() == "step 100"
    after = [pictures.nth(i).evaluate("canvas => canvas.toDataURL()") for i in range(6)]
    assert after[1] != before[1], "the map moved"
    assert "5 states after 100 steps" in tab.locator(".state").first.inner_text()
    assert said == []
    context.close()
