"""KuaiRand's published layout: rows, pools, features, broken files, and the truth of a generated folder."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from neuclust.data.logged.exposures import Exposures, seen_pools
from neuclust.data.logged.kuairand import (
    KuaiRandOptions,
    KuaiRandTables,
    kuairand_contexts,
    kuairand_exposures,
    read_kuairand,
)
from neuclust.data.logged.kuairand_files import kuairand_files
from neuclust.data.logged.kuairand_generate import KuaiRandSize, click_chances, generate_kuairand
from neuclust.errors import ConfigError, DataError

LOG, BEFORE = "log_random_4_22_to_5_08_pure.csv", "log_standard_4_08_to_4_21_pure.csv"
USERS, VIDEOS = "user_features_pure.csv", "video_features_basic_pure.csv"
SIZE = KuaiRandSize(rows=10_000, users=150, videos=20)
SEED = 4


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kuairand")
    generate_kuairand(SIZE, folder, SEED)
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """A copy to spoil, as published: with the files in `data`."""
    shutil.copytree(published, tmp_path / "KuaiRand-Pure" / "data")
    return tmp_path / "KuaiRand-Pure"


def read(place: Path, options: KuaiRandOptions | None = None) -> tuple[KuaiRandTables, Exposures]:
    options = options or KuaiRandOptions()
    tables = read_kuairand(kuairand_files(place), options)
    return tables, kuairand_exposures(tables, options)


def spoil(folder: Path, name: str, old: str, new: str) -> None:
    file = folder / "data" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def line_of(folder: Path, name: str, number: int) -> str:
    return (folder / "data" / name).read_text().splitlines()[number - 1]


def test_every_random_row_becomes_an_exposure_of_its_user_and_video(published: Path) -> None:
    """Fails when a row loses its user, video, reward, time or line, or the log is not in the order of time."""
    tables, exposures = read(published)
    raw = pl.read_csv(published / LOG)
    assert tables.report.rows_read == tables.report.rows_kept == len(exposures) == SIZE.rows
    assert exposures.line.tolist() == list(range(2, SIZE.rows + 2))
    assert exposures.arm_ids[exposures.arm].tolist() == raw["video_id"].to_list()
    assert exposures.user is not None
    assert exposures.user.tolist() == raw["user_id"].to_list()
    assert exposures.reward.tolist() == raw["is_click"].to_list()
    assert exposures.time.tolist() == (raw["time_ms"].to_numpy() / 1000).tolist()
    assert np.allclose(exposures.propensity, 1 / SIZE.videos, rtol=1e-15)
    assert exposures.uniform


@pytest.mark.parametrize("reward", ["is_click", "long_view", "is_like"])
def test_the_reward_is_the_signal_asked_for(published: Path, reward: Any) -> None:
    """Fails when another signal than the one asked for is the reward."""
    tables, exposures = read(published, KuaiRandOptions(history=False, reward=reward))
    expected = pl.read_csv(published / LOG)[reward]
    assert exposures.reward.tolist() == expected.to_list()
    assert tables.report.paid == expected.sum()


def test_ips_of_the_best_tag_by_segment_is_its_known_value(published: Path) -> None:
    """Fails when propensities, pools, rewards or features of a generated folder do not belong together."""
    tables, exposures = read(published)
    chances = np.array(json.loads((published / "truth.json").read_text())["is_click"])
    assert np.array_equal(chances, click_chances(SEED))
    names = exposures.features
    segments = np.array([names.index(f"onehot_feat1={value}") for value in range(7)])
    segment = exposures.queries[:, segments].argmax(axis=1)[exposures.query]
    first = np.array([int(tag.split(",")[0]) for tag in tables.videos["tag"].to_list()])
    best = np.array([chances[each][first].argmax() for each in range(7)])  # rows of videos
    weights = (exposures.arm == best[segment]) / exposures.propensity
    estimate = float((weights * exposures.reward).mean())
    truth = float(chances[segment, first[best[segment]]].mean())
    error = float((weights * exposures.reward).std() / np.sqrt(len(exposures)))
    assert abs(estimate - truth) < 4 * error
    assert error < 0.1 * truth
    assert abs(float(exposures.reward.mean()) - truth) > 8 * error  # so that the agreement says something


def test_contexts_hold_video_tags_tastes_user_and_tab(published: Path) -> None:
    """Fails when profiles ⊙ query is not [video, tags, tags ⊙ rates, user, tab]."""
    tables, exposures = read(published)
    row = 17
    context = dict(
        zip(
            exposures.features,
            exposures.profiles[exposures.arm[row]] * exposures.queries[exposures.query[row]],
            strict=True,
        )
    )
    log = tables.log.row(row, named=True)
    video = tables.videos.filter(pl.col("video_id") == log["video_id"]).row(0, named=True)
    user = tables.users.filter(pl.col("user_id") == log["user_id"]).row(0, named=True)
    own = {name for name, value in context.items() if value == 1}
    assert {f"tag={tag}" for tag in video["tag"].split(",")} == {
        n for n in own if n.startswith("tag=") and "liked" not in n
    }
    assert f"tab={log['tab']}" in own
    assert f"user_active_degree={user['user_active_degree']}" in own
    assert f"follow_user_num_range={user['follow_user_num_range']}" in own
    rates = {name: value for name, value in context.items() if name.endswith("liked") and value}
    assert set(rates) == {f"tag={tag} liked" for tag in video["tag"].split(",")}
    assert 0 < min(rates.values()) <= max(rates.values()) < 1
    assert np.isfinite(exposures.profiles).all()
    assert 0 <= exposures.profiles.min() <= exposures.profiles.max() <= 1


def test_tastes_are_shrunk_rates_of_the_log_before(published: Path) -> None:
    """Fails when rates count other rows than the user's earlier ones, or are shrunk to another centre."""
    tables, _ = read(published)
    tags, c = tables.tags, 5.0
    before = pl.read_csv(published / BEFORE)
    user, tag = 3, tags.names[1].removeprefix("tag=")
    tagged = [
        v for v, each in zip(tables.videos["video_id"], tables.videos["tag"], strict=True) if tag in each.split(",")
    ]
    overall = before["is_click"].mean()
    mine = before.filter(pl.col("user_id") == user)
    assert isinstance(overall, float)
    own = (float(mine["is_click"].sum()) + c * overall) / (mine.height + c)
    seen = mine.filter(pl.col("video_id").is_in(tagged))
    expected = (float(seen["is_click"].sum()) + c * own) / (seen.height + c)
    assert tables.rates[user, 1] == pytest.approx(expected, rel=1e-12)


def test_pools_of_a_day_are_the_videos_of_that_day(published: Path) -> None:
    """Fails when a day's pool holds other videos, or a sample or a range of dates shrinks the pool."""
    tables, exposures = read(published, KuaiRandOptions(pool="day", rows=300, after=1_650_900_000))
    raw = pl.read_csv(published / LOG)
    assert exposures.pool_names == tuple(str(day) for day in sorted(raw["date"].unique()))
    for row in (0, 150, 299):
        day = int(exposures.pool_names[exposures.pool[row]])
        shown = raw.filter(pl.col("date") == day)["video_id"].unique().sort()
        pool = exposures.pools[exposures.pool[row]]
        assert exposures.arm_ids[pool].tolist() == shown.to_list()
        assert exposures.propensity[row] == 1 / len(shown)
        assert pool[exposures.positions[row]] == exposures.arm[row]
    report = tables.report
    assert (report.rows_kept, len(exposures)) == (300, 300)
    assert report.outside_dates == raw.filter(pl.col("time_ms") <= 1_650_900_000_000).height > 0
    assert report.not_sampled + report.rows_kept + report.outside_dates == SIZE.rows
    assert exposures.time.min() > 1_650_900_000
    assert (np.diff(exposures.time) >= 0).all()


def test_sampling_depends_on_the_seed_alone(published: Path) -> None:
    """Fails when equal seeds give other rows, or other seeds the same."""
    lines = [read(published, KuaiRandOptions(rows=50, seed=seed, history=False))[1].line.tolist() for seed in (0, 0, 1)]
    assert lines[0] == lines[1] != lines[2]


def test_uniform_draws_have_a_dispersion_near_one_and_others_do_not(published: Path) -> None:
    """Fails when the check of the assumption cannot tell uniform exposures from popular ones."""
    dispersion, deviation = read(published, KuaiRandOptions(history=False))[0].report.dispersion
    assert abs(dispersion - 1) < 4 * deviation
    popular = pl.read_csv(published / BEFORE)["video_id"].to_numpy()
    assert seen_pools(np.zeros(len(popular), np.int64), popular).dispersion > 50


def test_rows_that_were_not_random_are_left_out_and_counted(folder: Path) -> None:
    """Fails when a recommended video counts as a random one, in the rows or in the pool."""
    number = 100
    line = line_of(folder, LOG, number)
    spoil(folder, LOG, line, line[: line.rindex(",1,")] + ",0," + line.split(",")[-1])
    tables, exposures = read(folder)
    assert tables.report.not_random == 1
    assert number not in exposures.line.tolist()


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (0, "9223372036854775808", "expected a whole number from 0 to 9223372036854775807 for user_id"),
        (0, "999", "expected a user_id of .*user_features_pure.csv, got the unknown 999"),
        (1, "777777777777", "expected a video_id of .*video_features_basic_pure.csv, got the unknown 777777777777"),
        (2, "20221301", "expected a date such as 20220422, got 20221301"),
        (4, "noon", "for time_ms, got 'noon'"),
        (5, "2", "expected 0 or 1 for is_click, got '2'"),
        (17, "", "for is_rand, got ''"),
    ],
)
def test_broken_rows_are_named_and_can_be_skipped(folder: Path, place: int, value: str, sentence: str) -> None:
    """Fails when a broken row of the log is taken, or not named by its line."""
    line = line_of(folder, LOG, 50)
    fields = line.split(",")
    fields[place] = value
    spoil(folder, LOG, line, ",".join(fields))
    with pytest.raises(DataError, match=rf"log_random_4_22_to_5_08_pure\.csv:50: .*{sentence}"):
        read(folder, KuaiRandOptions(history=False))
    tables, exposures = read(folder, KuaiRandOptions(skip_bad=1, history=False))
    assert tables.report.bad_rows == 1
    assert ":50: " in tables.report.bad_examples[0]
    assert 50 not in exposures.line.tolist()
    assert len(exposures) == SIZE.rows - 1


def test_big_ids_are_kept_to_the_last_digit(folder: Path) -> None:
    """Fails when ids pass through floating point or 32 bits."""
    big = 2**63 - 1
    for name in (LOG, BEFORE, VIDEOS):
        file = folder / "data" / name
        frame = pl.read_csv(file, schema_overrides={"tag": pl.String}).with_columns(pl.col("video_id") + (big - 19))
        frame.write_csv(file)
    _, exposures = read(folder)
    assert exposures.arm_ids.tolist() == list(range(big - 19, big + 1))


@pytest.mark.parametrize("name", [LOG, USERS, VIDEOS])
def test_missing_and_doubled_files_are_named(folder: Path, name: str) -> None:
    """Fails when a missing file is a traceback, or one of two versions is taken without a word."""
    original = folder / "data" / name
    shutil.copy(original, original.with_name(name.replace("pure", "1k")))
    with pytest.raises(DataError, match=r"expected one (version|file).* pass (one|a) folder"):
        read(folder)
    original.with_name(name.replace("pure", "1k")).unlink()
    original.unlink()
    with pytest.raises(DataError, match=rf"expected a file such as {name}, got .*pass the folder as published"):
        read(folder)


def test_unknown_columns_are_ignored_and_missing_ones_named(folder: Path) -> None:
    """Fails when a further column shifts the others, or a missing one is taken for zeros."""
    before = read(folder)[1]
    file = folder / "data" / USERS
    frame = pl.read_csv(file)
    frame.insert_column(1, pl.Series("shoe_size", np.arange(len(frame)))).write_csv(file)
    assert np.array_equal(read(folder)[1].queries, before.queries)
    frame.drop("onehot_feat7").write_csv(file)
    with pytest.raises(DataError, match=r"user_features_pure\.csv:1: .* without onehot_feat7"):
        read(folder)


def test_users_and_videos_met_twice_are_bad_rows(folder: Path) -> None:
    """Fails when the second row of a user or video replaces the first one without a word."""
    for name, key in ((USERS, "user_id"), (VIDEOS, "video_id")):
        file = folder / "data" / name
        text = file.read_text()
        lines = text.splitlines()
        file.write_text(text + lines[1] + "\n")
        with pytest.raises(DataError, match=rf"{name}:{len(lines) + 1}: expected each {key} once, got 0 again"):
            read(folder)
        file.write_text(text)


def test_missing_values_are_zeros(folder: Path) -> None:
    """Fails when an empty tag, type, duration or date stops the work or becomes NaN."""
    line = line_of(folder, VIDEOS, 2)
    fields = line.split(",")
    spoil(folder, VIDEOS, line, f"{fields[0]},1,,,,,,,,,,")
    tables, exposures = read(folder)
    known = [
        name for name in exposures.features if name.startswith(("log ", "tag=", "video_type", "upload", "upright"))
    ]
    columns = [exposures.features.index(name) for name in known if "num" not in name and "days" not in name]
    assert not exposures.profiles[0, columns].any()
    assert tables.tags.values[0].sum() == 0
    assert np.isfinite(exposures.queries).all()


def test_archive_and_packed_files_are_read_in_place(folder: Path, tmp_path: Path) -> None:
    """Fails when the archive as published, or gzipped files, are read otherwise than the folder."""
    expected = read(folder)[1]
    with tarfile.open(tmp_path / "KuaiRand-Pure.tar.gz", "w:gz") as archive:
        archive.add(folder, "KuaiRand-Pure")
    found = read(tmp_path / "KuaiRand-Pure.tar.gz")[1]
    assert np.array_equal(found.queries, expected.queries)
    assert np.array_equal(found.reward, expected.reward)
    file = folder / "data" / LOG
    (folder / "data" / f"{LOG}.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert np.array_equal(read(folder)[1].reward, expected.reward)
    (tmp_path / "odd.tar.gz").write_text("<html>")
    with pytest.raises(DataError, match="expected a folder, zip or tar"):
        read(tmp_path / "odd.tar.gz")
    with pytest.raises(DataError, match="expected a folder or an archive"):
        read(tmp_path / "nowhere")


def test_parts_of_the_log_before_are_added_up(folder: Path) -> None:
    """Fails when one of several parts, as 27K has them, is left out."""
    whole = read(folder)[0]
    lines = (folder / "data" / BEFORE).read_text().splitlines(keepends=True)
    for part, some in ((1, lines[1:4000]), (2, lines[4000:])):
        (folder / "data" / BEFORE.replace(".csv", f"_part{part}.csv")).write_text(lines[0] + "".join(some))
    (folder / "data" / BEFORE).unlink()
    parted = read(folder)[0]
    assert parted.report.earlier_exposures == whole.report.earlier_exposures == SIZE.rows
    assert np.array_equal(parted.rates, whole.rates)


def test_without_the_log_before_there_are_no_tastes(folder: Path) -> None:
    """Fails when tastes are invented, or contexts to simulate on are made without any."""
    (folder / "data" / BEFORE).unlink()
    tables, exposures = read(folder)
    assert not [name for name in exposures.features if name.endswith("liked")]
    assert exposures.profiles.shape[1] == exposures.queries.shape[1] == len(exposures.features)
    with pytest.raises(DataError, match="expected log_standard_4_08_to_4_21"):
        kuairand_contexts(tables)


def test_contexts_to_simulate_are_tags_and_rates(published: Path) -> None:
    """Fails when arms are not the tags of videos, or rounds not five times the rates of users."""
    tables, _ = read(published)
    dataset = kuairand_contexts(tables)
    assert dataset.arm_ids.tolist() == tables.videos["video_id"].to_list()
    assert np.array_equal(dataset.arms, tables.tags.values)
    assert dataset.round_ids.tolist() == tables.users["user_id"].to_list()
    assert np.allclose(dataset.rounds, 5 * tables.rates)
    assert dataset.features == tables.tags.names


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reward": "is_hate"}, "^reward: expected is_click or long_view or is_like"),
        ({"pool": "week"}, "^pool: expected all or day"),
        ({"rows": 0}, "^rows: expected 1 or more"),
        ({"after": 5, "before": 5}, "^before: "),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], sentence: str) -> None:
    """Fails when a mistyped option is taken."""
    with pytest.raises(ConfigError, match=sentence):
        KuaiRandOptions(**options)


def test_dates_without_rows_are_said(published: Path) -> None:
    """Fails when an empty range of dates writes an empty log."""
    with pytest.raises(DataError, match="expected random exposures within the dates, got none"):
        read(published, KuaiRandOptions(after=2_000_000_000))


def test_generated_files_depend_on_the_seed_alone(tmp_path: Path) -> None:
    """Fails when equal seeds give other bytes, or the columns differ from the published ones."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate_kuairand(KuaiRandSize(200, 20, 10), tmp_path / name, seed)
    for file in (LOG, BEFORE, USERS, VIDEOS, "truth.json"):
        contents = [(tmp_path / name / file).read_bytes() for name in "abc"]
        assert contents[0] == contents[1] != contents[2]
    header = (tmp_path / "a" / LOG).read_text().splitlines()[0]
    assert header == (
        "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,"
        "play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab"
    )
    with pytest.raises(ConfigError, match=r"^rows: expected 1 or more"):
        KuaiRandSize(rows=0)
