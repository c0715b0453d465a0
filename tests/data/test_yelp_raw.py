"""Yelp from raw files: tf-idf contexts, both user vectors, the order of users, filters and bad rows."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from dataclasses import replace
from functools import partial
from io import BytesIO
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import completed

from neuclust.data import yelp_files
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.raw import RawFile, line_chunks, tar_member
from neuclust.data.yelp import YelpOptions, YelpReport, category_contexts, document, prepare_yelp
from neuclust.errors import ConfigError, DataError

ALL = YelpOptions(min_term_weight=0.0, skip_rounds=0)

BUSINESSES: list[dict[str, Any]] = [
    {"business_id": "bank", "city": "Tampa", "categories": "Banks & Credit Unions"},
    {"business_id": "plain", "city": "Tampa", "categories": "Restaurants"},
    {"business_id": "grill", "city": "Reno", "categories": "Fast Food, Restaurants, Burgers"},
    {"business_id": "lost", "city": "Tampa", "categories": None},
    {"business_id": "cafe", "city": "Tampa", "categories": "Coffee & Tea, Food, Restaurants"},
    {"business_id": "equip", "city": "Tampa", "categories": "Restaurants Supplies, Food"},
]


def review(user: str, business: str, stars: float, date: str = "2018-07-07 22:09:11") -> dict[str, Any]:
    return {"review_id": "r", "user_id": user, "business_id": business, "stars": stars, "text": "é\n", "date": date}


REVIEWS = [
    review("anna", "bank", 1.0, "2016-01-01 00:00:00"),
    review("anna", "grill", 4.0, "2017-01-01 00:00:00"),
    review("bob", "cafe", 5.0, "2018-01-01 00:00:00"),
    review("anna", "cafe", 2.0, "2019-01-01 00:00:00"),
    review("Bob", "plain", 3.0, "2020-01-01 00:00:00"),
    review("bob", "cafe", 2.0, "2021-01-01 00:00:00"),
]


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write(folder: Path, business: str, reviews: str) -> tuple[RawFile, RawFile]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "business.json").write_text(business, encoding="utf-8")
    (folder / "review.json").write_text(reviews, encoding="utf-8")
    return RawFile(folder / "business.json"), RawFile(folder / "review.json")


def prepare(
    folder: Path, reviews: str | None = None, business: str | None = None, options: YelpOptions = ALL
) -> tuple[ProfileDataset, YelpReport]:
    files = write(folder, lines(BUSINESSES) if business is None else business, reviews or lines(REVIEWS))
    return prepare_yelp(*files, options)


def tastes(dataset: ProfileDataset, row: int) -> dict[str, float]:
    named = zip(dataset.features, dataset.rounds[row].tolist(), strict=True)
    return {term: value for term, value in named if value}


def test_contexts_are_tf_idf_of_the_categories_by_hand(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path)
    assert dataset.arm_ids.tolist() == [2, 3, 5]  # line numbers; `Restaurants Supplies` is no restaurant
    assert dataset.features == ("burgers", "coffee", "fast", "food", "restaurants", "tea")
    assert dataset.arms[0].tolist() == [0, 0, 0, 0, 1, 0]
    rare, common = log(4 / 2) + 1, log(4 / 3) + 1  # one and two of three documents
    length = sqrt(2 * rare**2 + common**2 + 1)
    expected = [rare, 0, rare, common, 1, 0]
    np.testing.assert_allclose(dataset.arms[1], np.array(expected) / length, rtol=1e-6)
    assert (report.businesses, report.restaurants, report.terms) == (6, 3, 6)


def test_ampersands_are_removed_and_part_no_words() -> None:
    assert document(("Coffee & Tea", "A&W", "Food")) == "Coffee  Tea AW Food"


def test_terms_need_weight_and_rows_keep_their_length(tmp_path: Path) -> None:
    everything, _ = prepare(tmp_path)
    dataset, _ = prepare(tmp_path, options=replace(ALL, min_term_weight=0.7))
    weights = dict(zip(everything.features, everything.arms.sum(0), strict=True))
    assert dataset.features == tuple(term for term, weight in weights.items() if weight >= 0.7)
    assert 0 < len(dataset.features) < 6
    columns = [everything.features.index(term) for term in dataset.features]
    np.testing.assert_array_equal(dataset.arms, everything.arms[:, columns])  # not normalised again
    with pytest.raises(DataError, match="the largest sums to 1"):
        category_contexts([("Restaurants",)], 50.0)


def test_fixed_tastes_are_mean_stars_a_term(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path)
    assert dataset.round_ids.tolist() == [2, 3, 5]  # the line of each user's first review of a restaurant
    assert tastes(dataset, 0) == {"burgers": 4, "fast": 4, "food": 3, "restaurants": 3, "coffee": 2, "tea": 2}
    assert tastes(dataset, 1) == {"food": 3.5, "restaurants": 3.5, "coffee": 3.5, "tea": 3.5}
    assert tastes(dataset, 2) == {"restaurants": 3}  # `Bob` is not `bob`
    assert (report.reviews_read, report.reviews_kept, report.users) == (6, 5, 3)


def test_authors_tastes_miss_categories_of_several_words(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(ALL, user_vector="authors"))
    assert tastes(dataset, 0) == {"burgers": 2.0, "restaurants": 3.0, "food": 1.0}  # sums over all 2 reviews
    assert tastes(dataset, 1) == {"food": 3.5, "restaurants": 3.5}


def test_first_user_is_left_out_by_default_and_rounds_are_capped(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=YelpOptions(min_term_weight=0.0))
    assert dataset.round_ids.tolist() == [3, 5]
    dataset, report = prepare(tmp_path, options=YelpOptions(min_term_weight=0.0, rounds=1))
    assert dataset.round_ids.tolist() == [3]
    assert tastes(dataset, 0)["food"] == 3.5  # later reviews of a user already admitted still count
    assert report.reviews_kept == 2
    everyone, _ = prepare(tmp_path, options=replace(ALL, rounds=None))
    assert len(everyone.rounds) == 3


def test_city_and_dates_are_filters(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(ALL, cities=("TAMPA",)))
    assert dataset.arm_ids.tolist() == [2, 5]
    with pytest.raises(DataError, match="restaurants in Atlantis, got none in 6 businesses"):
        prepare(tmp_path, options=replace(ALL, cities=("Atlantis",)))
    cut = 1_483_228_800  # 2017-01-01 00:00:00: the review in that very second is out
    dataset, _ = prepare(tmp_path, options=replace(ALL, after=cut))
    assert dataset.round_ids.tolist() == [3, 4, 5]
    dataset, _ = prepare(tmp_path, options=replace(ALL, after=cut - 1, before=1_577_836_800))
    assert dataset.round_ids.tolist() == [2, 3]
    with pytest.raises(DataError, match="got none among 6; widen the filters"):
        prepare(tmp_path, options=replace(ALL, after=2_000_000_000))


def test_every_packing_gives_the_same_problem(tmp_path: Path) -> None:
    expected, _ = prepare(tmp_path)
    business, reviews = lines(BUSINESSES).encode(), lines(REVIEWS).encode()
    for mode in ("w", "w:gz"):
        path = tmp_path / f"yelp.{'tgz' if ':' in mode else 'tar'}"
        with tarfile.open(path, mode) as tape:
            for name, data in (("business", business), ("checkin", b"{}"), ("review", reviews)):
                entry = tarfile.TarInfo(f"data/yelp_academic_dataset_{name}.json")
                entry.size = len(data)
                tape.addfile(entry, BytesIO(data))
        names = [(f"yelp_academic_dataset_{kind}.json",) for kind in ("business", "review")]
        dataset, _ = prepare_yelp(tar_member(path, names[0]), tar_member(path, names[1]), ALL)
        assert np.array_equal(dataset.rounds, expected.rounds)
        assert np.array_equal(dataset.arms, expected.arms)
    (tmp_path / "review.json.gz").write_bytes(gzip.compress(reviews))
    dataset, _ = prepare_yelp(RawFile(tmp_path / "business.json"), RawFile(tmp_path / "review.json.gz"), ALL)
    assert np.array_equal(dataset.rounds, expected.rounds)


def test_odd_tars_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "climb.tar", "w") as tape:
        tape.addfile(tarfile.TarInfo("../review.json"))
    with pytest.raises(DataError, match="points outside the archive"):
        tar_member(tmp_path / "climb.tar", ("review.json",))
    with tarfile.open(tmp_path / "link.tar", "w") as tape:
        link = tarfile.TarInfo("review.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tape.addfile(link)
    with pytest.raises(DataError, match=r"expected review\.json inside"):
        tar_member(tmp_path / "link.tar", ("review.json",))
    (tmp_path / "text.tar").write_text("no tar")
    with pytest.raises(DataError, match="expected a tar archive"):
        tar_member(tmp_path / "text.tar", ("review.json",))
    with zipfile.ZipFile(tmp_path / "Yelp-JSON.zip", "w") as archive:
        archive.writestr("Yelp JSON/yelp_dataset.tar", "tar")
    with pytest.raises(DataError, match="expected a tar archive"):
        tar_member(tmp_path / "Yelp-JSON.zip", ("review.json",))


def test_layouts_of_earlier_rounds_of_the_dataset(tmp_path: Path) -> None:
    old = [
        {**one, "categories": None if one["categories"] is None else one["categories"].split(", ")}
        for one in BUSINESSES
    ]
    days = [{**one, "date": one["date"][:10], "stars": int(one["stars"])} for one in REVIEWS]
    expected, _ = prepare(tmp_path)
    dataset, _ = prepare(tmp_path, lines(days), lines(old))
    assert np.array_equal(dataset.rounds, expected.rounds)
    assert np.array_equal(dataset.arms, expected.arms)


BAD_REVIEWS = {
    "a cut line": ('{"user_id": "anna", "business_id": "caf', "one whole JSON object"),
    "a list": ("[1, 2]", r"one JSON object, got \[1, 2\]"),
    "no user": (json.dumps({**REVIEWS[1], "user_id": None}), "a user_id, got nothing"),
    "text for stars": (json.dumps({**REVIEWS[1], "stars": "good"}), "stars from 1 to 5, got 'good'"),
    "NaN stars": (json.dumps({**REVIEWS[1], "stars": float("nan")}), "stars from 1 to 5, got nan"),
    "no stars": (json.dumps({key: v for key, v in REVIEWS[1].items() if key != "stars"}), "stars from 1 to 5"),
    "ten stars": (json.dumps({**REVIEWS[1], "stars": 10}), "stars from 1 to 5, got 10"),
    "no date": (json.dumps({**REVIEWS[1], "date": "yesterday"}), "a date such as .*, got 'yesterday'"),
    "a blank before the date": (json.dumps({**REVIEWS[1], "date": " 2018-07-07"}), "a date such as .*, got ' 2018"),
    "second 60": (json.dumps({**REVIEWS[1], "date": "2018-07-07 00:00:60"}), "a date such as .*, got '2018.*:60'"),
    "an unknown business": (json.dumps({**REVIEWS[1], "business_id": "x"}), "business of the business file, got 'x'"),
}


@pytest.mark.parametrize("name", BAD_REVIEWS)
def test_bad_reviews_are_named_by_line(name: str, tmp_path: Path) -> None:
    row, expected = BAD_REVIEWS[name]
    spoilt = lines(REVIEWS[:3]) + row + "\n" + lines(REVIEWS[3:])
    with pytest.raises(DataError, match=rf"review\.json:4: expected .*{expected}"):
        prepare(tmp_path, spoilt)
    clean, _ = prepare(tmp_path)
    dataset, report = prepare(tmp_path, spoilt, options=replace(ALL, skip_bad=1))
    assert report.bad_rows == 1
    assert np.array_equal(dataset.rounds, clean.rounds)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"business_id": "half', "one whole JSON object"),
        ('{"categories": "Restaurants"}', "a business_id, got nothing"),
        ('{"business_id": "x", "categories": 5}', "categories as text, got 5"),
        ('{"business_id": "bank"}', "each business_id once, got bank again"),
    ],
)
def test_bad_businesses_are_named_by_line(row: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"business\.json:7: expected {expected}"):
        prepare(tmp_path, business=lines(BUSINESSES) + row + "\n")


def test_wrong_encoding_and_empty_files_are_refused(tmp_path: Path) -> None:
    business, reviews = write(tmp_path, lines(BUSINESSES), lines(REVIEWS))
    reviews.path.write_bytes(lines(REVIEWS).encode("latin-1"))
    with pytest.raises(DataError, match=r"review\.json:1: expected utf-8 text, got byte 0xe9"):
        prepare_yelp(business, reviews, ALL)
    reviews.path.write_text("")
    with pytest.raises(DataError, match=r"review\.json:1: expected one review per line"):
        prepare_yelp(business, reviews, ALL)
    business.path.write_text("\n")
    with pytest.raises(DataError, match=r"business\.json:1: expected one business per line"):
        prepare_yelp(business, reviews, ALL)


def test_line_numbers_and_users_hold_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = prepare(tmp_path)
    monkeypatch.setattr(yelp_files, "line_chunks", partial(line_chunks, chunk_bytes=150))
    pieces, _ = prepare(tmp_path)
    assert np.array_equal(whole.rounds, pieces.rounds)
    assert np.array_equal(whole.round_ids, pieces.round_ids)
    with pytest.raises(DataError, match=r"review\.json:7: "):
        prepare(tmp_path, lines(REVIEWS) + "{}\n")


def test_cap_on_users_holds_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [review(user, "plain", 3.0) for user in ("anna", "anna", "bill", "carl", "bill")]
    two_lines = len(lines(rows[:2]).encode()) + 10
    monkeypatch.setattr(yelp_files, "line_chunks", partial(line_chunks, chunk_bytes=two_lines))
    dataset, report = prepare(tmp_path, lines(rows), options=replace(ALL, rounds=2))
    assert dataset.round_ids.tolist() == [1, 3]
    assert report.reviews_kept == 4


def test_blank_lines_do_not_shift_the_numbers(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, "\n" + lines(REVIEWS[:2]) + "\n\n" + lines(REVIEWS[2:]))
    assert dataset.round_ids.tolist() == [3, 6, 8]


def test_options_that_cannot_work_are_refused() -> None:
    wrong: Any = "mine"
    with pytest.raises(ConfigError, match=r"^user_vector: expected fixed or authors"):
        YelpOptions(user_vector=wrong)
    with pytest.raises(ConfigError, match=r"^before: expected a date later than 10"):
        YelpOptions(after=10, before=10)
    with pytest.raises(ConfigError, match=r"^rounds: expected 1 or more"):
        YelpOptions(rounds=0)


def test_command_writes_equal_bytes_and_leaves_nothing_on_bad_data(tmp_path: Path) -> None:
    business, reviews = write(tmp_path, lines(BUSINESSES), lines(REVIEWS))
    words = ["data", "prepare", "yelp", "--business", str(business.path)]
    words += ["--review", str(reviews.path), "--min-term-weight", "0", "--max-users", "2"]
    for name in ("one.npz", "two.npz"):
        done = completed(*words, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert "3 arms (restaurants), 2 rounds (users), 6 features" in done.stdout
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert load_dataset(tmp_path / "one.npz").counts is None
    reviews.path.write_text(lines(REVIEWS) + "{}\n")
    done = completed(*words, "--out", tmp_path / "bad.npz")
    assert done.returncode == 65
    assert "review.json:7: expected a user_id, got nothing" in done.stderr
    assert not list(tmp_path.glob("*bad.npz*"))
