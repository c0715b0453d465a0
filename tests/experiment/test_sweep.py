"""Sweeps: keys that mean one run, folders that take up where they were, failures that are kept and tried again."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sweep_files import BROKEN, CLUSTERED, Ear, timeless, tiny_tasks, write_experiment

import neuclust
from neuclust.errors import ConfigError, DataError
from neuclust.experiment import tasks as tasks_module
from neuclust.experiment.engines.engine import Outcome, Watch, play_inline
from neuclust.experiment.run import run
from neuclust.experiment.spec import read_spec
from neuclust.experiment.store import ROOMS, done, read_store, write_run
from neuclust.experiment.sweep import LOCK, Standing, locked, sweep
from neuclust.experiment.tasks import Task, code_version, environment_of, label_of, opened_problem, play_task, tasks_of
from neuclust.randomness import stream
from neuclust.registry import policy_config


def counts(standing: Standing) -> tuple[int, int, int]:
    return len(standing.held), len(standing.failed), len(standing.missing)


def test_every_run_has_its_own_key_and_keeps_it(tmp_path: Path) -> None:
    tasks = tiny_tasks(tmp_path)
    assert [(task.seed, task.contestant.policy) for task in tasks] == [
        (seed, policy) for seed in (0, 1) for policy in ("uniform", "linucb", "cn-ucb")
    ]
    keys = [task.key for task in tasks]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 and set(key) <= set("0123456789abcdef") for key in keys)
    assert [task.key for task in tasks_of(read_spec(tmp_path / "tiny.toml"))] == keys


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rounds = 12", "rounds = 13"),
        ("slate_size = 3", "slate_size = 4"),
        ("seeds = 1", "seeds = [1]"),
        ('data = "tiny.npz"', 'data = "tiny.npz"\nslate_reward = "mean"'),
        ('data = "tiny.npz"', 'data = "tiny.npz"\narms_per_round = 20'),
    ],
)
def test_another_configuration_has_other_keys(tmp_path: Path, before: str, after: str) -> None:
    file = write_experiment(tmp_path, seeds=1)
    keys = {task.key for task in tasks_of(read_spec(file))}
    file.write_text(file.read_text().replace(before, after))
    changed = {task.key for task in tasks_of(read_spec(file))}
    assert len(changed) == 3
    assert not keys & changed


def test_a_default_written_out_is_the_same_run_and_another_value_is_not(tmp_path: Path) -> None:
    entry = '[[policy]]\npolicy = "cn-ucb"\nsettings = {{ gamma = {} }}\n'
    plain = tiny_tasks(tmp_path, seeds=1)
    default = policy_config("cn-ucb").arms.schedule.gamma
    assert tiny_tasks(tmp_path, entry.format(float(default)), seeds=1) == plain
    other = tiny_tasks(tmp_path, entry.format(default + 1.0), seeds=1)
    assert len({task.key for task in other}) == len(plain) + 1


def test_other_data_and_other_code_have_other_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {task.key for task in tiny_tasks(tmp_path)}
    file = tmp_path / "tiny.npz"
    file.write_bytes(file.read_bytes() + b"\0")  # the same arrays, but not the same file
    assert not keys & {task.key for task in tasks_of(read_spec(tmp_path / "tiny.toml"))}
    tiny_tasks(tmp_path)
    monkeypatch.setattr(tasks_module, "code_version", lambda: "0.2.0+0")
    assert not keys & {task.key for task in tasks_of(read_spec(tmp_path / "tiny.toml"))}


def test_the_code_version_covers_folders_inside_folders(tmp_path: Path) -> None:
    for name in ("core.py", "policies/auto/linear.py", "data/twins/yelp.json", "report/page.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = {file.relative_to(tmp_path).as_posix() for file in tasks_module._sources(tmp_path)}
    assert found == {"core.py", "policies/auto/linear.py", "data/twins/yelp.json"}


def test_the_code_version_covers_what_decides_numbers_alone() -> None:
    root = Path(str(neuclust.__file__)).parent
    sources = {file.relative_to(root).as_posix() for file in tasks_module._sources(root)}
    assert {"core.py", "registry.py", "kernels/widths.py", "data/twin.py", "experiment/run.py"} <= sources
    assert not {name for name in sources if name.startswith(("cli/", "report/"))}
    assert code_version().startswith(neuclust.__version__ + "+")


def test_a_file_that_changes_under_a_sweep_is_not_played(tmp_path: Path) -> None:
    task = tiny_tasks(tmp_path, seeds=1)[0]
    (tmp_path / "tiny.npz").write_bytes(b"other")
    with pytest.raises(DataError, match="expected the file the sweep began with"):
        play_task(replace(task, content="0" * 64))


def test_all_policies_meet_the_same_coins(tmp_path: Path) -> None:
    records = [play_task(task) for task in tiny_tasks(tmp_path, seeds=1)]
    assert len({record.best_expected for record in records}) == 1


def test_a_second_sweep_plays_nothing_and_a_longer_one_only_the_rest(tmp_path: Path) -> None:
    folder, few, many = tmp_path / "out", tiny_tasks(tmp_path, seeds=1), tiny_tasks(tmp_path, seeds=3)
    assert counts(sweep(folder, few, play_inline, Ear())) == (3, 0, 0)
    before, ear = read_store(folder), Ear()
    assert counts(sweep(folder, few, play_inline, ear)) == (3, 0, 0)
    assert not ear.starts
    assert counts(sweep(folder, many, play_inline, ear)) == (9, 0, 0)
    assert [task.seed for task in ear.starts] == [1] * 3 + [2] * 3
    assert {key: record for key, record in read_store(folder).items() if key in before} == before


def test_an_engine_that_breaks_down_keeps_what_was_done(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "out", tiny_tasks(tmp_path)

    def breaking(tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        yield from play_inline(tasks[:2], watch)
        raise OSError("the building is on fire")

    with pytest.raises(OSError, match="fire"):
        sweep(folder, tasks, breaking, Ear())
    assert done(folder) == {task.key for task in tasks[:2]}
    assert counts(sweep(folder, tasks, play_inline, Ear())) == (6, 0, 0)
    assert timeless(read_store(folder)) == timeless({task.key: play_task(task) for task in tasks})


def test_failures_are_kept_left_alone_and_tried_again_when_asked(tmp_path: Path) -> None:
    folder, tasks, ear = tmp_path / "out", tiny_tasks(tmp_path, BROKEN, seeds=1), Ear()
    assert counts(sweep(folder, tasks, play_inline, ear)) == (3, 1, 0)
    (file,) = (folder / "failures").iterdir()
    told = json.loads(file.read_text())
    assert file.stem == told["key"] == tasks[-1].key
    assert told["config"]["policy"]["config"]["clustering"]["count"] == 30
    assert "Error" in told["error"]
    assert "Traceback" in told["traceback"]
    assert counts(sweep(folder, tasks, play_inline, Ear())) == (3, 1, 0)
    assert counts(sweep(folder, tasks, play_inline, ear, retry_failed=True)) == (3, 1, 0)
    assert ear.starts.count(tasks[-1]) == 2
    write_run(folder, tasks[-1].key, play_task(tasks[0]))
    assert counts(sweep(folder, tasks, play_inline, Ear())) == (4, 0, 0)


def test_a_failure_that_is_mended_is_forgotten(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "out", tiny_tasks(tmp_path, seeds=1)
    sweep(folder, tasks, play_inline, Ear())
    (folder / "runs" / f"{tasks[0].key}.parquet").unlink()
    (folder / "failures").mkdir()
    failure = folder / "failures" / f"{tasks[0].key}.json"
    failure.write_text("{}")
    assert counts(sweep(folder, tasks, play_inline, Ear())) == (2, 1, 0)
    assert counts(sweep(folder, tasks, play_inline, Ear(), retry_failed=True)) == (3, 0, 0)
    assert not failure.exists()


def test_a_folder_belongs_to_one_sweep_at_a_time(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "out", tiny_tasks(tmp_path, seeds=1)
    sweep(folder, tasks[:1], play_inline, Ear())
    with locked(folder), pytest.raises(ConfigError, match=r"another sweep \(process \d+\) does"):
        sweep(folder, tasks, play_inline, Ear())
    assert len(done(folder)) == 1
    assert (folder / LOCK).exists()
    assert counts(sweep(folder, tasks, play_inline, Ear())) == (3, 0, 0)


def test_a_run_of_a_sweep_is_a_plain_run(tmp_path: Path) -> None:
    task = tiny_tasks(tmp_path, seeds=2)[-1]
    assert task.problem.data is not None
    environment = environment_of(task)
    policy = task.contestant.build(environment, 1)
    plain = run(policy, environment, 12, 1, label=label_of(task, opened_problem(task)))
    assert timeless({"": play_task(task)}) == timeless({"": plain})


def test_damaged_records_are_said_set_aside_and_played_again(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "out", tiny_tasks(tmp_path, seeds=1)
    sweep(folder, tasks, play_inline, Ear())
    clean = read_store(folder)
    runs = [folder / "runs" / f"{task.key}.parquet" for task in tasks]
    runs[0].write_bytes(runs[0].read_bytes()[:-3])
    shutil.copy(runs[2], runs[1])
    (folder / "failures").mkdir()
    (folder / "failures" / f"{tasks[0].key}.json").write_text("{}")  # of an attempt before the record
    ear = Ear()
    assert counts(sweep(folder, tasks, play_inline, ear)) == (3, 0, 0)
    assert ear.starts == list(tasks[:2])
    assert len(ear.sentences) == 2
    assert timeless(read_store(folder)) == timeless(clean)
    assert {file.name for file in (folder / "bad" / "runs").iterdir()} == {file.name for file in runs[:2]}


def test_records_of_other_settings_are_not_touched_by_a_sweep(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "out", tiny_tasks(tmp_path, seeds=1)
    sweep(folder, tasks, play_inline, Ear())
    other = folder / "runs" / "0123.parquet"
    other.write_bytes(b"damaged")
    after = sweep(folder, tasks, play_inline, Ear())
    assert (counts(after), after.others) == ((3, 0, 0), 1)
    assert other.read_bytes() == b"damaged"


def foreign_parquet() -> bytes:
    content = io.BytesIO()
    pl.DataFrame({"price": [1.0, 2.0]}).write_parquet(content)
    return content.getvalue()


def damage(folder: Path, kind: str, keys: Sequence[str], generator: np.random.Generator) -> str:
    """Do one thing to one file of the store; answers what it was."""
    room = ROOMS[int(generator.integers(len(ROOMS)))]
    files = [file for key in keys if (file := folder / room / f"{key}.parquet").exists()]
    one, two = (files[int(place)] for place in generator.choice(len(files), 2, replace=False))
    content = bytearray(one.read_bytes())
    place = int(generator.integers(len(content)))
    if kind == "truncation":
        one.write_bytes(content[:place])
    elif kind == "end":  # within seal, footer, its length or the magic
        one.write_bytes(content[: -int(generator.integers(1, 13))])
    elif kind == "flip":
        content[place] ^= 1 << int(generator.integers(8))
        one.write_bytes(content)
    elif kind == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
        one.write_bytes(content)
    elif kind == "swap":
        one.write_bytes(two.read_bytes())
        two.write_bytes(content)
    elif kind == "copy":
        shutil.copy(two, one)
    elif kind == "empty":
        one.write_bytes(b"")
    elif kind == "foreign":
        one.write_bytes(foreign_parquet())
    elif kind == "longer":
        one.write_bytes(content + generator.bytes(place + 1))
    else:
        one.unlink()
    return f"{kind} of {room}/{one.name} at {place}"


KINDS = ("truncation", "end", "flip", "flip", "flip", "zeros", "swap", "copy", "empty", "foreign", "longer", "gone")


def attack(tmp_path: Path, tried: int) -> tuple[int, int]:
    """Damage a store in many ways; how often a run was played again, and how often nothing had happened to it."""
    clean, tasks = tmp_path / "clean", tiny_tasks(tmp_path, CLUSTERED.replace("3", "2") + CLUSTERED, seeds=2, rounds=4)
    sweep(clean, tasks, play_inline, Ear())
    expected, generator = timeless(read_store(clean)), stream(0, "damaged records")
    replayed = 0
    for number in range(tried):
        folder = tmp_path / "damaged"
        shutil.copytree(clean, folder)
        what = damage(folder, KINDS[number % len(KINDS)], [task.key for task in tasks], generator)
        ear = Ear()
        assert counts(sweep(folder, tasks, play_inline, ear)) == (len(tasks), 0, 0), what
        assert timeless(read_store(folder)) == expected, what
        assert bool(ear.sentences) == (folder / "bad").exists(), what
        replayed += bool(ear.starts)
        shutil.rmtree(folder)
    return replayed, tried - replayed


def test_a_dozen_damages_are_mended(tmp_path: Path) -> None:
    assert sum(attack(tmp_path, len(KINDS))) == len(KINDS)


@pytest.mark.soak
def test_two_hundred_damages_are_mended(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    replayed, harmless = attack(tmp_path, 240)
    report_counts("damaged records", tried=240, mended=replayed, harmless=harmless)
    assert harmless < 24
