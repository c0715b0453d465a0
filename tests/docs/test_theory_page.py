"""docs/theory.md: its example runs as shown, its figures are those of the record, and the record shows what it must."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "theory.md").read_text(encoding="utf-8")
RECORD: dict[str, Any] = json.loads((DOCS / "records" / "theory.json").read_text(encoding="utf-8"))


def test_the_example_prints_what_the_page_shows() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "<theory.md>", "exec"), {})  # noqa: S102  # our own page
    assert out.getvalue() == shown


def test_methods_agree_within_their_errors_and_stand_on_the_page() -> None:
    exact, bracket, probes = RECORD["methods"]
    assert RECORD["contexts"] == 2000
    assert bracket["low"] <= exact["value"] <= bracket["high"]
    assert probes["low"] <= exact["value"] <= probes["high"]
    for each in RECORD["methods"]:
        assert f"| {each['method']} | {each['value']:.4f} | {each['low']:.4f} | {each['high']:.4f} |" in PAGE


def test_errors_of_widths_fall_like_one_over_the_root_and_stand_on_the_page() -> None:
    for depth, found in RECORD["widths"].items():
        assert len(found["errors"]) >= 4
        assert -0.6 < found["exponent"] < -0.4
        cells = ", ".join(f"{each['error']:.3f} at {each['width']:,}" for each in found["errors"])
        assert f"| {depth} | {cells} | {found['exponent']:.2f} |" in PAGE


def test_a_million_contexts_stand_on_the_page() -> None:
    large = RECORD["large"]
    assert large["contexts"] >= 1_000_000
    assert large["peak_gigabytes"] < 4
    assert large["processor_seconds"] < 120
    row = f"{large['contexts']:,} contexts, rank {large['rank']}: d̃ between {large['low']:.1f} and {large['high']:.1f}"
    assert row in PAGE.replace("\n", " ")
