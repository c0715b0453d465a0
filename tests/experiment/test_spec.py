"""Experiment files: what they mean, and the line of every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_files import write_problem

from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.spec import read_spec

FILES = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
SHIPPED = [file for file in FILES if not file.stem.startswith("multiverse")]  # grids of readings have their own tests

GOOD = """\
name = "good"
rounds = 20
slate_size = 3
seeds = {first = 100, count = 3}

[[environment]]
data = "tiny.npz"

[[environment]]
env = "clusters"
rounds = 7
arms_per_round = 50

[[policy]]
policy = "neuclust"
preset = "paper"
clusters = 4
settings = { "arms.schedule.gamma" = 0.5 }
grid = { "arms.network.width" = [8, 16], "slate.sort_input" = [true, false] }

[[policy]]
policy = "linucb"
"""


def spec_file(folder: Path, text: str) -> Path:
    write_problem(folder)
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


def test_environments_policies_grids_and_seeds(tmp_path: Path) -> None:
    spec = read_spec(spec_file(tmp_path, GOOD))
    assert (spec.name, spec.seeds, spec.rounds) == ("good", (100, 101, 102), (20, 7))
    assert [problem.name for problem in spec.problems] == ["tiny", "clusters"]
    assert [problem.slate_size for problem in spec.problems] == [3, 3]
    assert spec.problems[0].data == tmp_path / "tiny.npz"
    combinations = [("8", "true"), ("8", "false"), ("16", "true"), ("16", "false")]
    assert spec.contestants[:4] == tuple(
        Contestant(
            "neuclust",
            "paper",
            4,
            {"arms.schedule.gamma": "0.5", "arms.network.width": width, "slate.sort_input": sort},
        )
        for width, sort in combinations
    )
    assert spec.contestants[4:] == (Contestant("linucb"),)
    assert (len(spec.problems), len(spec.contestants), len(spec.seeds)) == (2, 5, 3)


@pytest.mark.parametrize(("text", "seeds"), [("3", (0, 1, 2)), ("[5, 2]", (5, 2)), ("{first = 9, count = 1}", (9,))])
def test_seeds_in_three_ways(tmp_path: Path, text: str, seeds: tuple[int, ...]) -> None:
    assert read_spec(spec_file(tmp_path, GOOD.replace("{first = 100, count = 3}", text))).seeds == seeds


def test_dots_without_quotes_and_tables_mean_the_same(tmp_path: Path) -> None:
    quoted = read_spec(spec_file(tmp_path, GOOD))
    loose = GOOD.replace('"arms.schedule.gamma"', "arms.schedule.gamma").replace(
        'grid = { "arms.network.width" = [8, 16], "slate.sort_input" = [true, false] }',
        '[policy.grid]\n"arms.network.width" = [8, 16]\nslate.sort_input = [true, false]',
    )
    assert read_spec(spec_file(tmp_path, loose)) == quoted


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("count = 3", "count = ", 4, "expected TOML"),
        ("rounds = 20", 'rounds = "many"', 2, "rounds: expected a whole number of at least 1, got 'many'"),
        ("rounds = 20", "rounds = 0", 2, "got 0"),
        ("rounds = 20", "rouns = 20", 2, "expected one of name, rounds"),
        ('"good"', '"../up"', 1, "name: expected letters"),
        ("count = 3", "count = 0", 4, "seeds: expected a number, a list"),
        ("{first = 100, count = 3}", "[1, 1]", 4, "seeds"),
        ("{first = 100, count = 3}", "[]", 4, "seeds"),
        ("{first = 100, count = 3}", "-1", 4, "seeds"),
        ('data = "tiny.npz"', 'data = "none.npz"', 7, "none.npz: expected a prepared .npz file"),
        ('data = "tiny.npz"', "", 6, "expected either env or data, got neither"),
        ('env = "clusters"', 'env = "clusters"\ndata = "tiny.npz"', 11, "expected either env or data, got both"),
        ('env = "clusters"', 'env = "clustres"', 10, "no built-in problem 'clustres'; did you mean clusters?"),
        ("arms_per_round = 50", 'slate_reward = "thresh"', 12, "thresh"),
        ('"neuclust"', '"neucluster"', 15, "no policy 'neucluster'; did you mean neuclust"),
        ('policy = "linucb"', 'preset = "default"', 21, "expected policy = NAME"),
        ('"paper"', '"papper"', 16, "did you mean paper"),
        ("clusters = 4", "clusters = 4.5", 17, "clusters: expected a whole number"),
        ('"arms.schedule.gamma" = 0.5', '"arms.schedule.gama" = 0.5', 18, "no such setting"),
        ("= 0.5", '= "a lot"', 18, "arms.schedule.gamma: expected a number, got 'a lot'"),
        ("[8, 16]", "[8, 1.5]", 19, "arms.network.width: expected a whole number, got '1.5'"),
        ("[8, 16]", "8", 19, "expected a list of values, got 8"),
        ("[8, 16]", "[8, 8]", 19, "expected each value once"),
        ('"arms.network.width" =', '"gamma" =', 19, "expected each setting once, got arms.schedule.gamma"),
        ('"arms.network.width" =', '"clustering.count" =', 19, "got clustering.count as clusters"),
        ('policy = "linucb"', 'policy = "linucb"\n[[policy]]\npolicy = "linucb"', 23, "the one of line 21 again"),
        ("clusters = 4", "clusters = 4000", 14, "expected at most as many clusters as arms"),
        ("rounds = 20", "rounds = 61", 7, "expected at most the 60 rounds"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, before: str, after: str, line: int, words: str) -> None:
    assert before in GOOD
    file = spec_file(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(ConfigError) as refusal:
        read_spec(file)
    assert str(refusal.value).startswith(f"{file}:{line}: ")
    assert words in str(refusal.value)


def test_a_mistake_in_a_grid_of_several_lines_has_its_own_line(tmp_path: Path) -> None:
    text = GOOD.replace(
        'grid = { "arms.network.width" = [8, 16], "slate.sort_input" = [true, false] }',
        '# slate.sort_input = "a comment"\n[policy.grid]\n"arms.network.width" = [8, 16]\n"slate.sort_input" = ["x"]',
    )
    with pytest.raises(ConfigError, match=r"experiment\.toml:22: .*expected true or false, got 'x'"):
        read_spec(spec_file(tmp_path, text))


def test_nothing_to_play_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"at least one \[\[environment\]\]"):
        read_spec(spec_file(tmp_path, 'name = "empty"\n'))
    with pytest.raises(ConfigError, match="could not read it"):
        read_spec(tmp_path / "absent.toml")


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_experiments_are_sound(file: Path) -> None:
    assert read_spec(file).name == file.stem


def test_there_are_shipped_experiments() -> None:
    assert {"quick", "clusters"} <= {file.stem for file in SHIPPED}
