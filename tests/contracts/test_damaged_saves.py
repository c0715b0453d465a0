"""Damaged saves: with checksums each is refused in one sentence or harmless; without their help it is refused or loads,
but never ends in a traceback, a hang or a demand for more memory than there is."""

from __future__ import annotations

import resource
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from damage import FILE_DAMAGES, spoil_header, spoil_manifest, spoil_state, write_sealed, write_unchecked
from small_problems import play, same_state, small_environment, snapshot

from neuclust.core import Policy
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import clusters
from neuclust.errors import StateError
from neuclust.persistence import TENSORS, read_state
from neuclust.randomness import stream
from neuclust.registry import build_policy, load_policy

KINDS: list[tuple[str, dict[str, str]]] = [
    ("neuclust", {}),
    ("neuclust-online", {}),
    ("cn-ucb", {"confidence.solver": "dual"}),
    ("auto", {}),
    ("neural-mab", {"shortcut": "no", "slate_kind": "plain"}),
    ("acc-ucb", {"horizon": "3"}),
    ("linucb-hybrid", {}),
    ("neuclust-across", {"explore": "1"}),
    ("cn-ucb", {"confidence.pruning": "on"}),
    ("neural-ucb", {}),
    ("neural-linear", {}),
    ("neural-linucb", {}),
    ("lin-ts", {}),
    ("linucb", {}),
    ("cc-mab", {}),
    ("cucb", {}),
    ("static", {}),
    ("uniform", {}),
]
ROOM = 3 << 30  # bytes beyond what is in use: far more than any of these policies needs


def problem(size: int) -> SlateEnvironment:
    if size == 0:
        return small_environment(counts=True)
    if size == 1:
        return small_environment(n=90, d=9, slate_size=4, counts=True)
    return clusters(n_arms=130, n_clusters=5, arms_per_round=None, horizon=30, slate_size=3)  # whose contexts are dense


def saves(folder: Path, kinds: int, sizes: int) -> list[tuple[Path, Path]]:
    """Saves of several policies and sizes, each with another one of the same policy."""
    found = []
    for number, (name, overrides) in enumerate(KINDS[:kinds]):
        for size in range(sizes):
            environment = problem(size)
            both = folder / f"{number}-{size}", folder / f"{number}-{size}-other"
            for path, rounds, seed in zip(both, (11, 9), (1, 2), strict=True):
                policy = build_policy(name, environment=environment, clusters=4, seed=seed, overrides=overrides)
                play(policy, environment, range(1, rounds + 1))
                policy.save(path)
            found.append(both)
    return found


@contextmanager
def limited_memory() -> Iterator[None]:
    """Whoever asks for terabytes is told at once; where the system does not say what is in use, nobody is."""
    usage = Path("/proc/self/statm")
    if not usage.exists():
        yield
        return
    used = int(usage.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def sentence(folder: Path) -> str | Policy:
    """The policy, or the one sentence it was refused with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return load_policy(folder)
        except StateError as error:
            said = str(error)
    assert str(folder) in said
    assert "\n" not in said
    assert "alloc" not in said.lower(), said  # refused before anything was made
    return said


def making(policy: Any) -> tuple[object, ...]:
    return policy.name, policy.config, policy.dim, policy.slate_size, policy.seed


def attack_files(tmp_path: Path, kinds: int, sizes: int, tries: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    originals = saves(tmp_path / "saves", kinds, sizes)
    whole = {path: load_policy(path) for path, _ in originals}
    for i in range(tries):
        rng, (path, other) = stream(7, "damage", i), originals[i % len(originals)]
        damage = FILE_DAMAGES[i // len(originals) % len(FILE_DAMAGES)]
        folder = tmp_path / "work" / f"{i}"
        shutil.copytree(path, folder)
        damage(folder, rng, other)
        found = sentence(folder)
        if isinstance(found, str):
            counts["refused"] += 1
        else:
            same = same_state(snapshot(found), snapshot(whole[path])) and making(found) == making(whole[path])
            assert same, f"{damage.__name__} of {path.name} (try {i}) loaded other content"
            counts["harmless"] += 1
        shutil.rmtree(tmp_path / "work")
    return counts


def attack_content(
    tmp_path: Path, kinds: int, sizes: int, tries: int, write: Callable[..., None], header: bool
) -> Counter[str]:
    """Damages that no checksum tells; those of the header only where there is none."""
    counts: Counter[str] = Counter()
    originals = [(path, *read_state(path)) for path, _ in saves(tmp_path / "saves", kinds, sizes)]
    for i in range(tries):
        rng = stream(8, "damage", i)
        folder = tmp_path / "work" / "save"
        path, _, _ = originals[i % len(originals)]
        manifest, state = read_state(path)
        kind = int(rng.integers(3 if header else 2))
        if kind == 0:
            spoil_manifest(manifest, rng)
        elif kind == 1:
            spoil_state(state, rng)
        write(folder, manifest, state)
        if kind == 2:
            spoil_header(folder / TENSORS, rng)
        found = sentence(folder)
        counts["refused" if isinstance(found, str) else "loaded"] += 1
        shutil.rmtree(tmp_path / "work")
    return counts


def test_damaged_files_are_refused_or_harmless(tmp_path: Path) -> None:
    with limited_memory():
        counts = attack_files(tmp_path, kinds=2, sizes=1, tries=44)
    assert counts["refused"] > 30
    assert counts["harmless"] > 0


@pytest.mark.parametrize("write", [write_sealed, write_unchecked])
def test_damaged_content_never_ends_in_a_traceback(write: Callable[..., None], tmp_path: Path) -> None:
    with limited_memory():
        counts = attack_content(tmp_path, 3, 1, 30, write, header=write is write_unchecked)
    assert counts["refused"] > 15


@pytest.mark.soak
def test_a_thousand_damaged_saves(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    with limited_memory():
        counts = attack_files(tmp_path, len(KINDS), 2, 1000)
    report_counts("damaged saves", tried=1000, refused=counts["refused"], harmless=counts["harmless"], unnoticed=0)
    assert counts.total() == 1000


@pytest.mark.soak
@pytest.mark.parametrize("write", [write_sealed, write_unchecked])
def test_a_thousand_damages_without_a_checksum_to_tell(
    write: Callable[..., None], tmp_path: Path, report_counts: Callable[..., None]
) -> None:
    with limited_memory():
        counts = attack_content(tmp_path, len(KINDS), 3, 1000, write, header=write is write_unchecked)
    name = "damaged saves of the first format" if write is write_unchecked else "damaged saves with fitting checksums"
    report_counts(name, tried=1000, refused=counts["refused"], loaded=counts["loaded"], tracebacks=0)
    assert counts.total() == 1000
