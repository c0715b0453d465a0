import tomllib
from pathlib import Path

import pytest

from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.problem import Problem
from neuclust.experiment.spec import read_spec
from neuclust.experiment.suite import SUITE, SuiteInputs, chosen_problems, find_inputs, references, suite_spec

ROOT = Path(__file__).parents[2]
SMALL = ("clusters", "coverage", "redundancy", "cascade", "drift-abrupt", "turnover", "shop-slots", "money")
BY_NAME = {problem.name: problem for problem in SUITE}


def test_every_problem_says_what_it_separates_and_exists() -> None:
    assert len(BY_NAME) == len(SUITE) == 27
    assert all(problem.separates.endswith(".") for problem in SUITE)
    assert all(problem.env in ENVIRONMENTS or problem.source == "replay" for problem in SUITE)


@pytest.mark.parametrize("name", SMALL)
def test_references_are_ordered(name: str) -> None:
    found = references(BY_NAME[name].build(seed=1, horizon=30), 30)
    assert found.oracle > 0
    assert min(found.top_k, found.static, found.cluster) >= -1e-9
    assert found.uniform > (1.0 if name == "shop-slots" else 5.0)
    if name in ("clusters", "cascade", "shop-slots", "money"):
        assert found.top_k == pytest.approx(0.0, abs=1e-9)
        assert found.cluster < found.uniform
    if name == "coverage":
        assert found.static == pytest.approx(0.0, abs=1e-9)  # the best slate by true means, which stay
        assert found.cluster > 5.0
        assert found.top_k > 5.0
    if name == "drift-abrupt":
        assert 1.0 < found.static < found.uniform


def test_twins_say_that_they_are_twins() -> None:
    assert BY_NAME["ml-ideal"].problem(SuiteInputs()).name == "ml-ideal (twin)"
    real = SuiteInputs(movielens=Path("/somewhere/movielens-25m.npz"))
    assert BY_NAME["ml-ideal"].problem(real).name == "ml-ideal"
    assert Problem(data=Path("x/mine.npz")).name == "mine"


def test_replay_is_played_only_on_recorded_ratings() -> None:
    assert "replay" not in {problem.name for problem in chosen_problems((), SuiteInputs())}
    assert len(chosen_problems((), SuiteInputs(replay=Path("replay.npz")))) == 27
    with pytest.raises(ConfigError, match="real ratings"):
        BY_NAME["replay"].build(seed=0)
    with pytest.raises(ConfigError, match="problem: "):
        chosen_problems(("bumps",), SuiteInputs())


def test_inputs_are_found_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEUCLUST_SHARED_DATA", raising=False)
    assert find_inputs(None) == SuiteInputs()
    (tmp_path / "movielens-25m.npz").touch()
    monkeypatch.setenv("NEUCLUST_SHARED_DATA", str(tmp_path))
    assert find_inputs(None).movielens == tmp_path / "movielens-25m.npz"
    with pytest.raises(ConfigError, match="data: "):
        find_inputs(tmp_path / "nowhere")


def test_a_quick_suite_is_short() -> None:
    spec = suite_spec(chosen_problems((), SuiteInputs()), (Contestant("uniform"),), (0,), SuiteInputs(), quick=True)
    assert max(spec.rounds) <= 60
    assert suite_spec(SUITE[4:6], (), (0,), SuiteInputs(), rounds=7).rounds == (7, 7)


def test_the_experiment_file_holds_the_suite() -> None:
    file = ROOT / "experiments" / "suite.toml"
    listed = {entry["env"]: entry for entry in tomllib.loads(file.read_text())["environment"]}
    wanted = {problem.env: problem for problem in SUITE if problem.source != "replay"}
    assert list(listed) == list(wanted)
    for env, problem in wanted.items():
        assert listed[env].get("rounds", 500) == problem.rounds
        assert listed[env].get("slate_size", 5) == problem.slate_size


def test_an_experiment_file_may_name_a_problem_and_its_data(tmp_path: Path) -> None:
    file = tmp_path / "both.toml"
    text = '[[environment]]\nenv = "{env}"\ndata = "nothing.npz"\n[[policy]]\npolicy = "uniform"\n'
    file.write_text(text.format(env="bump"))
    with pytest.raises(ConfigError, match="either env or data"):
        read_spec(file)
    file.write_text(text.format(env="ml-ideal"))
    with pytest.raises(ConfigError, match="found nothing"):
        read_spec(file)
