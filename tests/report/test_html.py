"""The page holds what the records say, in words people understand, and nothing in it runs or leaves."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import browse, rendered
from invented_records import MakeRecord
from PIL import Image

from neuclust.analysis.groups import problems
from neuclust.analysis.sources import Failure, Source
from neuclust.experiment.records import RunRecord
from neuclust.report.drawing import inline_svg, svg_text, write_picture
from neuclust.report.folder import sections, slugs, write_report
from neuclust.report.html import Provenance, page, page_versions, run_versions
from neuclust.report.pictures import MOST_DRAWN, pictures

SCRIPT = "<script>document.title='owned'</script>"


class Outline(HTMLParser):
    """Tags, attributes and the text of table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")
        if tag == "span" and self._in_cell:
            self.rows[-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] = f"{self.rows[-1][-1]}{data}".lstrip()


def some_runs(record: MakeRecord) -> list[RunRecord]:
    """A winner, one within noise of it, one far behind and an oracle, with clusters for the winner."""
    regrets = {"neuclust": (10.0, 12.0, 11.0), "cn-ucb": (13.0, 9.0, 12.5), "uniform": (40.0, 41.0, 42.0)}
    runs = [record(name, seed, regret) for name, row in regrets.items() for seed, regret in enumerate(row)]
    runs = [
        replace(run, chosen_clusters=(3, 1) * 50, version="0.1.0") if run.policy == "neuclust" else run for run in runs
    ]
    return [*runs, *(record("oracle", seed, 0.0) for seed in range(3))]


def page_of(records: list[RunRecord], *failures: Failure, title: str = "Results") -> str:
    again = ["neuclust run --env bump --policy oracle"] if records else []
    made = Provenance("neuclust report somewhere", run_versions(records), page_versions(), again)
    return page(title, sections(records), failures, made)


def page_on_disk(folder: Path, records: list[RunRecord], *failures: Failure, title: str = "Results") -> Path:
    file = folder / "page.html"
    file.write_text(page_of(records, *failures, title=title), encoding="utf-8")
    return file


def files_of(records: list[RunRecord], out: Path) -> dict[str, bytes]:
    """What a whole report leaves in its folder, by name."""
    write_report(Source(tuple(records), ()), out, title="Results", command="neuclust report somewhere")
    return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}


def test_the_table_is_sorted_and_says_its_verdicts_in_words(record: MakeRecord) -> None:
    heading, *rows = Outline(page_of(some_runs(record))).rows
    assert heading[:5] == ["policy", "seeds", "expected regret", "versus best", "verdict"]
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("oracle", "0.000 ± 0.000", "-11.00 ± 0.58", "knows the truth: a yardstick, no rival"),
        ("neuclust", "11.00 ± 0.58", "–", "least regret"),
        ("cn-ucb", "11.50 ± 1.26", "+0.500 ± 1.803", "too few seeds to tell from neuclust"),
        ("uniform", "41.00 ± 0.58", "+30.00 ± 0.58", "too few seeds to tell from neuclust"),
    ]
    assert rows[1][5:7] == ["24.80 ± 0.46", "16.00"]
    assert rows[1][7] == "69.00 ± 0.58 best: 80.00"
    assert rows[1][8] == "2.00 1.25 + 0.50"


def test_the_page_says_what_was_found_and_how_to_get_it_again(record: MakeRecord) -> None:
    text = page_of(some_runs(record), title="A & B")
    assert "<h1>A &amp; B</h1>" in text
    assert "neuclust has the least expected regret, 11.00 ± 0.58; not told from it: cn-ucb, uniform." in text
    assert "One hidden spot on the sphere is good" in text
    assert "12 runs of 4 policies on 1 problem" in text
    assert "<pre>neuclust run --env bump --policy oracle</pre>" in text
    assert "Runs: neuclust 0.1.0." in text
    assert re.search(r"Python 3\.\d+\.\d+, torch \d\S*, numpy \d", text)
    assert "even a perfect policy pays the floor" in text
    assert "The floor is an expectation: a single run scatters about it and can fall below it" in text


def test_every_picture_is_inside_and_beside_the_page(record: MakeRecord, tmp_path: Path) -> None:
    files = files_of(some_runs(record), tmp_path)
    text = files["report.html"].decode()
    names = ("regret", "reward", "clipped", "runtime", "clusters")
    assert re.findall(r'<figure id="bump-(\w+)">', text) == list(names)
    assert Outline(text).tags.count("svg") == len(names)
    drawn = {f"figures/bump-{name}.{ending}" for name in names for ending in ("svg", "pdf")}
    assert set(files) == drawn | {"tables/bump.tex", "tables/bump.csv", "report.html"}


def test_ids_are_given_once_and_links_find_them(record: MakeRecord) -> None:
    runs = some_runs(record)
    text = page_of([*runs, *(replace(run, env="other") for run in runs)], Failure("x", "broke"))
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert {first or second for first, second in targets} <= set(ids)
    assert 'href="#failures"' in text


def test_nothing_is_fetched_and_nothing_runs(record: MakeRecord) -> None:
    text = page_of(some_runs(record))
    outline = Outline(text)
    assert not {"script", "img", "iframe", "link", "object"} & set(outline.tags)
    assert not [value for _, value in outline.attributes if "//" in value]
    assert not [name for name, _ in outline.attributes if name.startswith("on")]
    assert "http" not in text.replace("http-equiv", "")


def test_the_same_records_give_the_same_bytes(record: MakeRecord, tmp_path: Path) -> None:
    assert files_of(some_runs(record), tmp_path / "first") == files_of(some_runs(record), tmp_path / "second")


def test_hostile_texts_stay_texts(record: MakeRecord) -> None:
    runs = [
        replace(run, policy=f"{SCRIPT}$x_{{$", env=f'"><{SCRIPT}', settings={"key": SCRIPT}, version=SCRIPT)
        for run in some_runs(record)[:3]
    ]
    text = page_of(runs, Failure(SCRIPT, SCRIPT, SCRIPT), title=f"</title>{SCRIPT}")
    assert "<script" not in text
    assert text.count("&lt;script") >= 8
    assert not {"script", "img"} & set(Outline(text).tags)


def test_failures_are_shown_with_their_reason(record: MakeRecord) -> None:
    text = page_of(some_runs(record), Failure("linucb, seed 3", "Z lost definiteness", "line 7"))
    assert '<a href="#failures">1 run failed</a>' in text
    assert "<dt>linucb, seed 3</dt><dd>Z lost definiteness<details>" in text
    assert "1 run ended in an error and is not in any table" in text
    assert 'id="failures"' not in page_of(some_runs(record))


def test_failures_alone_are_worth_a_page() -> None:
    text = page_of([], Failure("x", "broke"))
    assert "<dt>x</dt><dd>broke</dd>" in text
    assert "The same runs again" not in text


def test_records_without_curves_still_give_a_page(record: MakeRecord) -> None:
    text = page_of([record("a", 0, 10.0, curve=(), reward_curve=())])
    assert re.findall(r'<figure id="bump-(\w+)">', text) == ["clipped", "runtime"]
    assert "No regret curves" in text
    assert "No reward curves" in text


def test_a_crowd_is_drawn_in_part_and_the_page_says_so(record: MakeRecord) -> None:
    crowd = [record("neuclust", 0, 10.0 + place, settings={"gamma": str(place)}) for place in range(MOST_DRAWN + 3)]
    text = page_of(crowd)
    assert f"The pictures show the {MOST_DRAWN} with the least regret; 3 more are in the table." in text
    assert len(Outline(text).rows) == 1 + MOST_DRAWN + 3
    assert text.count('class="swatch"') == MOST_DRAWN


def test_unequal_seeds_are_never_called_worse_without_reason(record: MakeRecord) -> None:
    apart = [record("a", 0, 10.0), record("b", 5, 12.0)]
    assert Outline(page_of(apart)).rows[2][3:5] == ["–", "no common seeds with a"]
    single = [record("a", 0, 10.0), record("b", 0, 12.0)]
    assert Outline(page_of(single)).rows[2][3:5] == ["+2.00", "too few seeds to tell from a"]
    ahead = [record("a", seed, regret) for seed, regret in enumerate([20.0] * 6 + [1.0] * 6)]
    ahead += [record("b", seed, 18.0) for seed in range(6)]
    assert Outline(page_of(ahead)).rows[2][3:5] == ["-2.00 ± 0.00", "less regret than a on the seeds both played"]


def test_paper_files_are_one_column_wide_with_fonts_inside(record: MakeRecord, tmp_path: Path) -> None:
    (problem,) = problems(some_runs(record))
    for picture in pictures(problem):
        assert picture.figure.get_figwidth() == pytest.approx(3.4)
        (file,) = write_picture(picture.figure, tmp_path, picture.name, "pdf")
        pdf = file.read_bytes()
        assert pdf.startswith(b"%PDF")
        assert b"/FontFile2" in pdf  # TrueType
        assert b"/Type3" not in pdf
        assert b"CreationDate" not in pdf
        assert "<dc:date>" not in svg_text(picture.figure)
        assert "<text" in inline_svg(picture.figure, "p", "l")


def test_log_axes_show_numbers_and_no_markup(record: MakeRecord) -> None:
    far = [record("a", 0, 0.3, seconds=0.05), record("b", 0, 300.0, seconds=3.0), record("oracle", 0, 0.0, seconds=0.1)]
    (problem,) = problems(far)
    for picture in pictures(problem):
        assert "mathdefault" not in inline_svg(picture.figure, "p", "l")


def test_the_floor_is_a_dashed_line_in_its_place(record: MakeRecord) -> None:
    (problem,) = problems(some_runs(record))
    axes: Any = next(picture.figure for picture in pictures(problem) if picture.name == "clipped").axes[0]
    (floor,) = [line for line in axes.lines if list(line.get_xdata()) == [16.0, 16.0]]
    assert floor.get_linestyle() == "--"
    assert [text.get_text() for text in axes.texts] == ["floor 16.00, on average"]


def test_problems_get_names_that_are_safe_and_their_own(record: MakeRecord) -> None:
    names = ("A b/../c", "a-b-c", "a-b-c-2", "7th", "???", "made")
    found = problems([record("linucb", 0, 1.0, env=name) for name in names])
    given_names = slugs(found)
    assert len(set(given_names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in given_names)
    assert "made" not in given_names


def test_a_browser_shows_the_table_and_pictures_and_runs_no_script(record: MakeRecord, tmp_path: Path) -> None:
    runs = [replace(run, settings={"note": SCRIPT}) for run in some_runs(record)]
    shown = rendered(page_on_disk(tmp_path, runs, Failure("x", SCRIPT), title="Honest title"), tmp_path)
    assert "<title>Honest title</title>" in shown
    assert "<script" not in shown
    assert shown.count("<svg") == shown.count("</svg>") == 5
    assert len(Outline(shown).rows) == 5


def test_the_page_forbids_scripts_even_if_one_slipped_in(record: MakeRecord, tmp_path: Path) -> None:
    file = page_on_disk(tmp_path, some_runs(record), title="Honest title")
    slipped = file.read_text(encoding="utf-8").replace("</main>", f"{SCRIPT}</main>")
    file.write_text(slipped, encoding="utf-8")
    assert "<title>Honest title</title>" in rendered(file, tmp_path)
    file.write_text(re.sub(r"<meta http-equiv[^>]*>", "", slipped), encoding="utf-8")
    assert "<title>owned</title>" in rendered(file, tmp_path)  # so the browser would have run it


@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_is_painted_dark_on_light(record: MakeRecord, tmp_path: Path, width: int) -> None:
    shot = tmp_path / "shot.png"
    file = page_on_disk(tmp_path, some_runs(record))
    browse(file, tmp_path, f"--screenshot={shot}", f"--window-size={width},4200")
    pixels = np.asarray(Image.open(shot).convert("RGB")).reshape(-1, 3)
    assert (np.median(pixels, axis=0) == 255).all()
    assert 0.005 < (pixels.max(1) < 128).mean() < 0.3
    assert (pixels == (0x08, 0x51, 0x9C)).all(1).sum() > 1000  # the most played cluster is drawn
