"""Damaged saves of a shop: with checksums each is refused in one sentence or harmless; without their help it is refused
or loads a shop that answers, but never ends in a traceback."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from damage import FILE_DAMAGES, ODD, call_it_old, spoil_manifest, spoil_state, swap_with_unchecked, write_sealed
from small_shop import Clock, play, small_shop, told
from torch import Tensor

from neuclust.errors import NeuclustError, SaveError
from neuclust.persistence import read_state
from neuclust.randomness import stream
from neuclust.recommender.recommender import Recommender

Rng = np.random.Generator
State = dict[str, Tensor]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("linucb", {"exploration": 0.2}), ("popular", {}), ("auto", {}), ("neuclust", {}), ("cn-ucb", {}), ("lin-ts", {}),
]  # fmt: skip
TEXTS = ("text.features", "text.schema", "text.answers", "text.unlearned", "items.text", "users.text", "decisions.open")


def saves(folder: Path, kinds: int) -> list[tuple[Path, Path]]:
    """Saves of several policies, each with a later one of the same shop."""
    found = []
    for number, (policy, options) in enumerate(KINDS[:kinds]):
        shop = small_shop(policy, remember=6, **options)
        both = folder / f"{number}", folder / f"{number}-other"
        played = play(shop, range(1, 12))
        shop.save(both[0])
        play(shop, range(12, 18), played.choices)
        shop.add_items([{"sku": "later", "price": 4.0}])
        shop.save(both[1])
        found.append(both)
    return found


def opened(folder: Path) -> Recommender | str:
    """The shop, or the one sentence it was refused with."""
    try:
        return Recommender.load(folder, clock=Clock(1_130.0))
    except SaveError as error:
        said = str(error)
    assert str(folder) in said
    assert "\n" not in said
    assert len(said) < 1_500
    return said


def used(shop: Recommender, folder: Path) -> None:
    """Everything a shop does; refusals in a sentence are allowed, nothing else."""
    steps: list[Callable[[], Any]] = [
        lambda: shop.recommend("u1", context={"hour": 2.0}, at_most={"category": 1}),
        lambda: shop.recommend_many([{"user": f"u{i}"} for i in range(3)]),
        lambda: [shop.feedback(each.id, {}) for each in shop.decisions.open_decisions()],
        lambda: shop.add_items([{"sku": "s1", "price": 2.0}, {"sku": "z", "category": "a"}]),
        lambda: shop.remove_items(["s2"]),
        lambda: str(shop.features),
        lambda: shop.expire(),
        lambda: shop.reader().recommend("u2"),
        lambda: shop.save(folder),
    ]
    for step in steps:
        with contextlib.suppress(NeuclustError, OverflowError):  # of a setting such as 10**30, which is legal
            step()


def attack_files(tmp_path: Path, tries: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    ((path, other),) = saves(tmp_path / "saves", 1)
    whole = told(Recommender.load(path, clock=Clock()).recommend("u1"))
    damages = [each for each in FILE_DAMAGES if each not in (call_it_old, swap_with_unchecked)]  # made for policies
    for i in range(tries):
        folder = tmp_path / "work" / "save"
        shutil.copytree(path, folder)
        damages[i % len(damages)](folder, stream(17, "damage", i), other)
        found = opened(folder)
        counts["refused" if isinstance(found, str) else "harmless"] += 1
        if not isinstance(found, str):
            clock: Any = found.clock
            clock.now = 1_000.0
            assert told(found.recommend("u1")) == whole
        shutil.rmtree(tmp_path / "work")
    return counts


def spoil_text(state: State, rng: Rng) -> None:
    """One entry anywhere in one of the JSON texts."""
    name = TEXTS[int(rng.integers(len(TEXTS)))]
    content = json.loads(state[name].numpy().tobytes())
    places = _containers(content)
    if not places:
        content = ODD[int(rng.integers(len(ODD)))]
    else:
        place = places[int(rng.integers(len(places)))]
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(rng.integers(len(keys)))]
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = ODD[int(rng.integers(len(ODD)))]
    text = json.dumps(content).encode()
    state[name] = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())


def _containers(content: Any) -> list[Any]:
    """All lists and groups that are not empty."""
    inside = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    own = [content] if isinstance(content, dict | list) and content else []
    return own + [place for each in inside for place in _containers(each)]


def swap_array(state: State, other: State, rng: Rng) -> None:
    """One array, or one group of them, of another save."""
    names = sorted(set(state) & set(other))
    name = names[int(rng.integers(len(names)))]
    if rng.random() < 0.5:
        state[name] = other[name]
        return
    group = f"{name.partition('.')[0]}."
    for each in [each for each in state if each.startswith(group)]:
        del state[each]
    state.update({each: tensor for each, tensor in other.items() if each.startswith(group)})


def attack_content(tmp_path: Path, kinds: int, tries: int) -> Counter[str]:
    """Damages that no checksum tells."""
    counts: Counter[str] = Counter()
    originals = saves(tmp_path / "saves", kinds)
    for i in range(tries):
        rng, (path, other) = stream(18, "damage", i), originals[i % len(originals)]
        manifest, state = read_state(path)
        kind = i % 4
        if kind == 0:
            spoil_manifest(manifest, rng)
        elif kind == 1:
            spoil_state(state, rng)
        elif kind == 2:
            spoil_text(state, rng)
        else:
            swap_array(state, read_state(other)[1], rng)
        folder = tmp_path / "work" / "save"
        write_sealed(folder, manifest, state)
        found = opened(folder)
        counts["refused" if isinstance(found, str) else "loaded"] += 1
        if not isinstance(found, str):
            used(found, tmp_path / "work" / "again")
        shutil.rmtree(tmp_path / "work")
    return counts


def test_damaged_files_are_refused_or_harmless(tmp_path: Path) -> None:
    counts = attack_files(tmp_path, 38)
    assert counts["refused"] > 25


def test_damaged_content_is_refused_or_loads_a_shop_that_answers(tmp_path: Path) -> None:
    counts = attack_content(tmp_path, kinds=2, tries=60)
    assert counts["refused"] > 25
    assert counts["loaded"] > 5


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_damages(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    files = attack_files(tmp_path / "files", 500)
    report_counts("damaged files of a shop", tried=500, unnoticed=0, **files)
    content = attack_content(tmp_path / "content", kinds=len(KINDS), tries=1_500)
    report_counts("damaged content of a shop with fitting checksums", tried=1_500, tracebacks=0, **content)


def test_parts_of_different_saves_do_not_go_together(tmp_path: Path) -> None:
    ((path, other),) = saves(tmp_path / "saves", 1)
    manifest, state = read_state(path)
    later = read_state(other)[1]
    for group in ("items", "decisions", "rows"):
        mixed = {name: tensor for name, tensor in state.items() if not name.startswith(f"{group}.")}
        mixed |= {name: tensor for name, tensor in later.items() if name.startswith(f"{group}.")}
        write_sealed(tmp_path / "mixed", manifest, mixed)
        assert isinstance(opened(tmp_path / "mixed"), str)


@pytest.mark.parametrize(
    "entry", ["recommender", "settings", "clock", "last", "policy", "schema", "items", "decisions"]
)
@pytest.mark.parametrize("value", [None, -1, [], {}])
def test_wrong_entries_are_refused(entry: str, value: Any, frozen: tuple[Path, dict[str, Any], State]) -> None:
    folder, manifest, state = frozen
    write_sealed(folder, {**manifest, entry: value}, state)
    assert isinstance(opened(folder), str)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], State]:
    folder = tmp_path_factory.mktemp("shops")
    ((path, _),) = saves(folder, 1)
    return (folder / "wrong", *read_state(path))
