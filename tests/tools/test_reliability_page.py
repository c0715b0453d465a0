"""docs/reliability.md is its template filled with the counts that `make soak` kept."""

from __future__ import annotations

import copy

from tools.reliability_page import KINDS, PAGE, TEMPLATE
from tools.reproduction_page import kept_records, render


def test_the_page_is_the_template_with_the_counts_kept() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(TEMPLATE.read_text(encoding="utf-8"), kept_records(), KINDS)


def test_another_count_makes_another_page() -> None:
    records = copy.deepcopy(kept_records())
    first = next(iter(records["reliability"].values()))
    first[next(iter(first))] += 1
    assert PAGE.read_text(encoding="utf-8") != render(TEMPLATE.read_text(encoding="utf-8"), records, KINDS)
