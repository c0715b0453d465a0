"""Saves: whole or not at all, never pickled, and refused in one sentence where they are not what they should be."""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from damage import write_sealed, write_unchecked
from small_problems import play, same_state, small_environment, snapshot

from neuclust.core import Policy
from neuclust.errors import SaveError, StateError
from neuclust.persistence import MANIFEST, NEXT_MANIFEST, NEXT_TENSORS, TENSORS, read_state, write_state
from neuclust.policies.linear import LinearConfig, SharedLinUCB
from neuclust.registry import build_policy, load_policy


def learned(rounds: int = 3, name: str = "neuclust") -> Policy:
    environment = small_environment()
    policy = build_policy(name, environment=environment, clusters=4)
    play(policy, environment, range(1, rounds + 1))
    return policy


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    learned().save(tmp_path / "save")
    return tmp_path / "save"


def rewrite(saved: Path, **changes: Any) -> None:
    """Other entries in the manifest, with checksums that fit."""
    manifest, state = read_state(saved)
    write_sealed(saved, manifest | changes, state)


def test_a_save_is_a_manifest_people_can_read_and_tensors(saved: Path) -> None:
    assert {p.name for p in saved.iterdir()} == {MANIFEST, TENSORS}
    manifest = json.loads((saved / MANIFEST).read_text())
    assert manifest["policy"] == "neuclust"
    assert (manifest["dim"], manifest["slate_size"], manifest["seed"]) == (6, 3, 0)
    assert manifest["config"]["clustering"]["count"] == 4


def test_nothing_is_pickled(saved: Path) -> None:
    for path in saved.iterdir():
        content = path.read_bytes()
        assert content[:1] != b"\x80"
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError)):
            pickle.loads(content)  # noqa: S301


def test_a_pickle_in_place_of_the_tensors_is_never_run(saved: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    (saved / TENSORS).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(StateError, match="damaged"):
        load_policy(saved)
    assert not (tmp_path / "sprung").exists()


def test_saving_again_replaces_the_earlier_save(saved: Path) -> None:
    policy = learned(rounds=6)
    policy.save(saved)
    assert same_state(snapshot(load_policy(saved)), snapshot(policy))
    assert {p.name for p in saved.parent.iterdir()} == {"save"}


def test_parents_are_made_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    learned().save(tmp_path / "a" / "b" / "save")
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["save"]


def test_a_foreign_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StateError, match="other files"):
        learned().save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "save").write_text("mine")
    with pytest.raises(StateError, match="other files"):
        learned().save(tmp_path / "save")
    assert (tmp_path / "save").read_text() == "mine"


def test_a_save_that_fails_leaves_the_earlier_one(saved: Path) -> None:
    before = {p.name: p.read_bytes() for p in saved.iterdir()}
    with pytest.raises(SaveError, match="expected settings of numbers, words and flags, got <object"):
        write_state(saved, {"policy": object()}, {"a": torch.zeros(2)})
    assert {p.name: p.read_bytes() for p in saved.iterdir()} == before
    assert [p.name for p in saved.parent.iterdir()] == ["save"]


def test_tensors_that_share_memory_are_saved_all_the_same(tmp_path: Path) -> None:
    """A fresh policy's weights are its initial weights."""
    shared = torch.arange(6.0)
    write_state(tmp_path / "save", {}, {"a": shared, "b": shared, "row": shared.reshape(2, 3)[1]})
    _, state = read_state(tmp_path / "save")
    assert state["a"].tolist() == state["b"].tolist() == list(range(6))
    assert state["row"].tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", ["neuclust", "cn-ucb", "linucb", "uniform"])
def test_a_policy_that_never_played_can_be_saved(name: str, tmp_path: Path) -> None:
    policy = learned(rounds=0, name=name)
    policy.save(tmp_path / "save")
    assert same_state(snapshot(load_policy(tmp_path / "save")), snapshot(policy))


# --- refusals -------------------------------------------------------------------------------------------------


def test_a_folder_without_a_save_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="found none"):
        load_policy(tmp_path)
    with pytest.raises(StateError, match="found none"):
        load_policy(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '"policy"', "\x00\x01"])
def test_a_damaged_manifest_is_said(saved: Path, text: str) -> None:
    (saved / MANIFEST).write_text(text)
    with pytest.raises(StateError, match=MANIFEST):
        load_policy(saved)


def test_another_format_is_said(saved: Path) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(StateError, match="expected format 2 or 1, got 99"):
        load_policy(saved)


@pytest.mark.parametrize("keep", [0, 7, 0.5, 0.99])
def test_cut_tensors_are_said(saved: Path, keep: float) -> None:
    content = (saved / TENSORS).read_bytes()
    (saved / TENSORS).write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(StateError, match="damaged"):
        load_policy(saved)


def test_missing_tensors_are_said(saved: Path) -> None:
    (saved / TENSORS).unlink()
    with pytest.raises(StateError, match=TENSORS):
        load_policy(saved)


def test_an_unknown_policy_is_said_with_the_known_ones(saved: Path) -> None:
    rewrite(saved, policy="magic")
    with pytest.raises(StateError, match=r"no policy 'magic'.*neuclust"):
        load_policy(saved)


def test_a_tensor_that_is_not_there_is_said(saved: Path) -> None:
    manifest, state = read_state(saved)
    del state["arms.weight.0"]
    write_state(saved, {k: v for k, v in manifest.items() if k != "format"}, state)
    with pytest.raises(StateError, match="complete save"):
        load_policy(saved)


@pytest.mark.parametrize(
    "change",
    [
        {"dim": 7},  # the tensors were learned with 6
        {"slate_size": 4},
        {"dim": "six"},
        {"config": None},
        {"config": {}},  # every entry at its default: another net than was saved
        {"config": {"arms": {"widht": 3}}},
        {"config": "default"},
        {"seed": None},
        {"seed": 2**63},
        {"seed": True},
        {"dim": -1},
        {"dim": 2**40},
        {"dim": 6.0},
        {"slate_size": 0},
        {"slate_size": 1_000_000},
        {"surplus": 1},
    ],
)
def test_a_manifest_that_does_not_fit_its_tensors_is_said(saved: Path, change: dict[str, Any]) -> None:
    if change == {"config": {}}:
        small = build_policy("neuclust", environment=small_environment(), clusters=4, overrides={"network.width": "8"})
        play(small, small_environment(), range(1, 3))
        small.save(saved)
    rewrite(saved, **change)
    with pytest.raises(StateError):
        load_policy(saved)


def test_a_state_of_another_policy_is_said(saved: Path) -> None:
    rewrite(saved, policy="linucb", config={})
    with pytest.raises(StateError, match="linucb"):
        load_policy(saved)


def test_the_oracle_says_what_cannot_be_saved(tmp_path: Path) -> None:
    environment = small_environment()
    build_policy("oracle", environment=environment).save(tmp_path / "save")
    with pytest.raises(StateError, match="means"):
        load_policy(tmp_path / "save")
    assert load_policy(tmp_path / "save", means=environment.means).select(environment.round(1)).positions.shape == (3,)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("neuclust", "arms.network.width", 10**9),
        ("neuclust", "arms.network.depth", 10**12),
        ("neuclust", "slate.width", 10**12),
        ("neuclust", "arms.confidence.ridge", "1"),
        ("neuclust", "arms.confidence.refresh", 1.5),
        ("neuclust", "arms.encoder.duplicate", "no"),
        ("neuclust", "clustering.seed", -1),
        ("neural-linear", "net.adam.rate", 2),
        ("neural-linear", "net.width", 10**7),
        ("auto", "ensemble.options.index.members", 10**9),
        ("auto", "ensemble.options.index.frequencies", 10**9),
        ("auto", "ensemble.options.net.width", 10**8),
        ("auto", "blocks.cross_limit", 0),
        ("auto", "ensemble.learners", "linear,linear"),
        ("cc-mab", "horizon", 10**400),
    ],
)
def test_a_setting_that_cannot_be_is_said_before_anything_is_made(
    name: str, setting: str, value: object, tmp_path: Path
) -> None:
    learned(name=name).save(tmp_path / "save")
    manifest, state = read_state(tmp_path / "save")
    *path, last = setting.split(".")
    group = manifest["config"]
    for step in path:
        group = group[step]
    assert last in group
    group[last] = value
    write_sealed(tmp_path / "save", manifest, state)
    with pytest.raises(StateError, match=f"save: expected a complete save of {name}, got ") as said:
        load_policy(tmp_path / "save")
    assert "alloc" not in str(said.value)


def test_a_manifest_and_tensors_that_tell_different_seeds_are_said(tmp_path: Path) -> None:
    learned(name="cucb").save(tmp_path / "save")
    rewrite(tmp_path / "save", seed=5)
    with pytest.raises(StateError, match="seed 5"):
        load_policy(tmp_path / "save")


def test_tensors_nobody_asked_for_are_said(saved: Path) -> None:
    manifest, state = read_state(saved)
    write_sealed(saved, manifest, state | {"arms.surplus": torch.zeros(2)})
    with pytest.raises(StateError, match=r"does not have: arms\.surplus"):
        load_policy(saved)


# --- checksums ------------------------------------------------------------------------------------------------


def test_a_flipped_bit_is_said(saved: Path) -> None:
    content = bytearray((saved / TENSORS).read_bytes())
    content[-3] ^= 1  # the last digits of a number: nothing else would notice
    (saved / TENSORS).write_bytes(bytes(content))
    with pytest.raises(StateError, match=f"{TENSORS}: .*damaged"):
        load_policy(saved)


@pytest.mark.parametrize("change", [{"seed": 1}, {"dim": 6.0}, {"policy": "cn-ucb"}, {"note": "mine"}])
def test_an_edited_manifest_is_said(saved: Path, change: dict[str, Any]) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(manifest | change))
    with pytest.raises(StateError, match=f"{MANIFEST}: .*damaged"):
        load_policy(saved)


def test_tensors_of_another_save_are_said(saved: Path, tmp_path: Path) -> None:
    learned(rounds=4).save(tmp_path / "other")
    (saved / TENSORS).write_bytes((tmp_path / "other" / TENSORS).read_bytes())
    with pytest.raises(StateError, match="other tensors than were saved"):
        load_policy(saved)


def test_the_order_and_spaces_of_a_manifest_do_not_matter(saved: Path) -> None:
    before = snapshot(load_policy(saved))
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(dict(reversed(manifest.items()))))
    assert same_state(before, snapshot(load_policy(saved)))


@pytest.mark.parametrize("name", [MANIFEST, TENSORS])
def test_a_pipe_is_said_and_not_waited_for(saved: Path, name: str) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(StateError, match=f"{name}: expected a plain file"):
        load_policy(saved)


# --- the first format -----------------------------------------------------------------------------------------


@pytest.fixture
def unchecked(saved: Path, tmp_path: Path) -> Path:
    write_unchecked(tmp_path / "old", *read_state(saved))
    return tmp_path / "old"


def test_a_save_without_checksums_loads_with_a_warning(unchecked: Path, saved: Path) -> None:
    with pytest.warns(UserWarning, match="old: this save .* no checksum.*; saving the policy again adds one") as said:
        policy = load_policy(unchecked)
    assert len(said) == 1
    assert same_state(snapshot(policy), snapshot(load_policy(saved)))


def test_saving_again_adds_the_checksums(unchecked: Path) -> None:
    with pytest.warns(UserWarning, match="no checksum"):
        policy = load_policy(unchecked)
    policy.save(unchecked)
    assert {p.name for p in unchecked.iterdir()} == {MANIFEST, TENSORS}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same_state(snapshot(load_policy(unchecked)), snapshot(policy))


def test_a_manifest_of_the_first_format_does_not_fit_checked_tensors(unchecked: Path, saved: Path) -> None:
    (saved / MANIFEST).write_bytes((unchecked / MANIFEST).read_bytes())
    with pytest.raises(StateError, match="another manifest"):
        load_policy(saved)


def test_a_save_of_the_first_format_passes_the_same_checks(unchecked: Path) -> None:
    with pytest.warns(UserWarning, match="no checksum"):
        manifest, state = read_state(unchecked)
    state["arms.history.groups"][0] = 99
    write_unchecked(unchecked, manifest, state)
    with pytest.warns(UserWarning, match="no checksum"), pytest.raises(StateError, match=r"old: .*groups from 0"):
        load_policy(unchecked)


# --- where a save cannot be written ---------------------------------------------------------------------------


@contextmanager
def nobody() -> Iterator[None]:
    """Rights count for everybody but root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    policy = learned(name="cucb")
    (tmp_path / "shut").mkdir(mode=0o555)
    with (
        nobody(),
        pytest.raises(StateError, match=r"save: expected a save that can be written \(permission denied\); ask"),
    ):
        policy.save(tmp_path / "shut" / "save")
    assert not (tmp_path / "shut" / "save").exists()


def test_a_file_on_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StateError, match="file is no folder"):
        learned(name="cucb").save(tmp_path / "file" / "save")


def test_a_dangling_link_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "save").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StateError, match="other files"):
        learned(name="cucb").save(tmp_path / "save")


def test_a_file_too_large_is_said_and_the_earlier_save_stays(saved: Path) -> None:
    """As on a full disk: the write of the tensors ends half way."""
    before = {p.name: p.read_bytes() for p in saved.iterdir()}
    policy = learned(rounds=6)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(
            StateError, match=r"save: expected a save that can be written \(the file would be too large"
        ):
            policy.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {p.name: p.read_bytes() for p in saved.iterdir()} == before
    policy.save(saved)
    assert same_state(snapshot(load_policy(saved)), snapshot(policy))


def test_a_full_disk_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk to fill can only be mounted by root on Linux")
    try:
        with pytest.raises(StateError, match=r"can be written \(no room is left on its disk\); make room"):
            learned().save(disk / "save")
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_a_killed_save_left_is_no_foreign_file(saved: Path) -> None:
    (saved / NEXT_TENSORS).write_bytes(b"half")
    (saved / NEXT_MANIFEST).write_bytes(b"{")
    policy = learned(rounds=6)
    load_policy(saved)
    policy.save(saved)
    assert {p.name for p in saved.iterdir()} == {MANIFEST, TENSORS}
    assert same_state(snapshot(load_policy(saved)), snapshot(policy))


def test_numbers_of_other_libraries_are_saved_as_numbers(tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"refresh": np.int64(100), "alpha": np.float32(0.5)}
    dim: Any = np.int64(4)
    seed: Any = np.int64(3)
    SharedLinUCB(LinearConfig(**numbers), dim, 2, seed).save(tmp_path / "save")
    again: Any = load_policy(tmp_path / "save")
    assert (again.config.refresh, again.config.alpha, again.seed) == (100, 0.5, 3)


def test_a_seed_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="expected a seed below 2"):
        SharedLinUCB(LinearConfig(), 4, 2, seed=2**63).save(tmp_path / "save")
    assert not (tmp_path / "save").exists()


def test_a_refused_save_has_the_exit_code_of_bad_data(saved: Path) -> None:
    (saved / MANIFEST).write_text("{")
    with pytest.raises(SaveError) as caught:
        load_policy(saved)
    assert caught.value.exit_code == 65
    assert isinstance(caught.value, StateError)
