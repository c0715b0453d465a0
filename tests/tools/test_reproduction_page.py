"""docs/reproduction.md is its template filled with the numbers under docs/records, and nothing else."""

import copy

import pytest

from tools.reproduction_page import PAGE, TEMPLATE, kept_records, render


def test_the_page_is_the_template_with_the_recorded_numbers() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(TEMPLATE.read_text(encoding="utf-8"), kept_records())


def test_another_number_makes_another_page() -> None:
    records = copy.deepcopy(kept_records())
    row = next(row for row in records["movielens"]["rows"] if row["policy"] == "linucb" and row["protocol"] == "ours")
    row["expected_regret_mean"] += 1.0
    assert PAGE.read_text(encoding="utf-8") != render(TEMPLATE.read_text(encoding="utf-8"), records)


def test_a_number_nobody_recorded_is_refused() -> None:
    with pytest.raises(SystemExit, match="not in docs/records"):
        render("{{ measure movielens ours nobody expected_regret }}", kept_records())


def test_what_the_page_claims_of_the_records_is_so() -> None:
    rows = {
        (row["protocol"], row["policy"], row["preset"]): row
        for row in kept_records()["movielens"]["rows"]
        if not row["settings"]
    }
    ours = {policy: row["expected_regret_mean"] for (protocol, policy, _), row in rows.items() if protocol == "ours"}
    assert ours["linucb"] <= 1.0
    assert ours["cn-ucb"] <= 15.0
    assert abs(ours["linucb-disjoint"] - 84) <= 8.4
    assert ours["cc-mab"] > ours["uniform"]
    floor = {round(row["clipped_floor"], 2) for row in rows.values()}
    assert floor == {139.75}


def test_no_clustering_is_better_than_k_means_as_the_page_says() -> None:
    rows = kept_records()["clusterings"]["clusterings"]
    assert {row["env"] for row in rows} == {"clusters", "movielens-25m"}
    assert {row["seeds"] for row in rows} == {5}
    others = [row for row in rows if row["difference"] is not None]
    assert len(others) == 8
    assert all(row["difference"] >= -2 * row["difference_error"] for row in others)
