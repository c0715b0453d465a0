"""Saves: whole or not at all, never pickled, and refused in one sentence where they are not what they should be."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from small_problems import play, same_state, small_environment, snapshot

from neuclust.core import Policy
from neuclust.errors import StateError
from neuclust.persistence import MANIFEST, TENSORS, read_state, write_state
from neuclust.presets import build_policy, load_policy


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
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(manifest | changes))


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
    with pytest.raises(TypeError):
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
    rewrite(saved, format=99)
    with pytest.raises(StateError, match="expected format 1, got 99"):
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
