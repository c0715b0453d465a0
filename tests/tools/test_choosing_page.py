"""docs/choosing.md is its template filled with docs/records/choosing.json; the arithmetic is held to plain numpy."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuclust.configuration import keys
from neuclust.experiment.suite import SUITE
from neuclust.registry import policy_config
from tools.choosing_page import PAGE, PICTURE, RECORD, TEMPLATE, kept_record, main, page_text, reasons_of
from tools.choosing_picture import picture_text, relative_regrets
from tools.choosing_record import (
    HORIZON_BOUND,
    OWN_HORIZON,
    REPORTED,
    condense,
    contest,
    digest_of,
    ratio_of,
    seed_range,
)
from tools.choosing_tables import verdict
from tools.reproduction_page import DOCS

SEEDS = range(2000, 2020)
WORDS = TEMPLATE.read_text(encoding="utf-8")
Regret = Callable[[int, int], float]  # of seed and round


def played(problem: str, policy: str, regret: Regret, rounds: int = 1000, seeds: Sequence[int] = SEEDS) -> list[Any]:
    """Made-up lines of benchmarks.contest."""
    return [
        {
            "problem": problem,
            "policy": policy,
            "seed": seed,
            "rounds": rounds,
            "regret": {str(t): regret(seed, t) for t in range(100, rounds + 1, 100)},
            "seconds": 0.004 * rounds,
            "restarts": 0,
        }
        for seed in seeds
    ]


def rate(level: float, noise: float = 0.0, salt: int = 0) -> Regret:
    """`level` a round, other seeds a little more or less."""

    def regret(seed: int, t: int) -> float:
        return level * t * (1 + noise * float(np.random.default_rng([seed, salt]).normal()))

    return regret


def line(page: str, heading: str, start: str) -> list[str]:
    """Cells of the first table row below a heading that begins with `start`."""
    below = page.split(heading, 1)[1]
    found = next(one for one in below.splitlines() if one.startswith(f"| {start}"))
    return [cell.strip() for cell in found.strip("|").split("|")]


# --- what is committed ---------------------------------------------------------------------------------------------


def test_the_page_is_the_template_with_the_recorded_numbers() -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == page_text(WORDS, kept_record(DOCS))


def test_the_picture_is_of_the_record() -> None:
    if not (DOCS / RECORD).exists():
        pytest.skip("docs/records/choosing.json: no runs taken yet")
    assert digest_of(kept_record(DOCS)) in (DOCS / PICTURE).read_text(encoding="utf-8")


def test_another_number_in_the_record_makes_another_page() -> None:
    if not (DOCS / RECORD).exists():
        pytest.skip("docs/records/choosing.json: no runs taken yet")
    record = copy.deepcopy(kept_record(DOCS))
    record["rows"][0]["regret"][0] += 100.0
    assert page_text(WORDS, record) != (DOCS / PAGE).read_text(encoding="utf-8")


def test_every_problem_has_a_place_for_its_reason() -> None:
    assert set(reasons_of(WORDS)) == set(OWN_HORIZON)


def test_policies_and_settings_the_page_names_exist() -> None:
    named = re.findall(r"--policy (?:\"([^\"]+)\"|([\w:@=-]+))", WORDS)
    assert len(named) > 10
    for title in [quoted or plain for quoted, plain in named]:
        name, _, preset = title.partition("@")[0].partition(":")
        policy_config(name, preset or "default")
    settings = re.findall(r"--set ([\w.]+)=", WORDS)
    assert set(settings) <= set(keys(policy_config("neuclust-across", "default")))
    assert settings


# --- from runs to the record ---------------------------------------------------------------------------------------


def test_only_the_three_problems_depend_on_how_long_they_are_played() -> None:
    """What lets a run of 1000 rounds serve the shorter horizon; `yelp` is left out: its twin takes seconds to make."""
    bound = []
    for problem in SUITE:
        if problem.name == "yelp" or problem.source == "replay":
            continue
        short, long = problem.build(1000, problem.rounds), problem.build(1000, max(1000, problem.rounds + 500))
        for t in (1, 57, problem.rounds // 2 + 2, problem.rounds):
            one, other = short.round(t), long.round(t)
            same = torch.equal(one.arm_ids, other.arm_ids) and torch.equal(one.contexts, other.contexts)
            if not same or short.best_expected_reward(one) != long.best_expected_reward(other):
                bound.append(problem.name)
                break
    assert tuple(bound) == HORIZON_BOUND


def test_a_long_run_serves_the_shorter_horizon_where_the_world_allows() -> None:
    rows = [*played("clusters", "auto", rate(0.1)), *played("ml-paper", "auto", rate(0.01))]
    record = condense([*rows, *played("drift-slow", "auto", rate(0.2))], SEEDS)
    found = {(row["problem"], row["horizon"]): row["regret"][0] for row in record["rows"]}
    assert found == {
        ("ml-paper", 200): 2.0,
        ("ml-paper", 1000): 10.0,
        ("clusters", 500): 50.0,
        ("clusters", 1000): 100.0,
        ("drift-slow", 1000): 200.0,
    }


def test_a_run_of_500_rounds_serves_500_only() -> None:
    record = condense(played("turnover", "auto", rate(0.2), rounds=500), SEEDS)
    assert [(row["problem"], row["horizon"]) for row in record["rows"]] == [("turnover", 500)]


def test_a_run_of_the_asked_length_goes_before_a_longer_one() -> None:
    both = [*played("bump", "auto", rate(0.3)), *played("bump", "auto", rate(0.1), rounds=500)]
    for rows in (both, both[::-1]):
        record = condense(rows, SEEDS)
        assert {row["horizon"]: row["regret"][0] for row in record["rows"]} == {500: 50.0, 1000: 300.0}


def test_the_record_keeps_seeds_rounded_regrets_and_seconds_a_round() -> None:
    rows = played("bump", "linucb", lambda seed, t: seed + t / 1000 + 0.0049, seeds=[2003, 2001])
    row = next(row for row in condense(rows, SEEDS)["rows"] if row["horizon"] == 500)
    assert row["seeds"] == [2001, 2003]
    assert row["regret"] == [2001.5, 2003.5]
    assert row["seconds"] == 0.004


def test_the_quickest_run_tells_the_cost() -> None:
    """Runs that shared their core say more of the neighbours than of the policy."""
    rows = [row | {"seconds": 0.5 * place} for place, row in enumerate(played("bump", "auto", rate(0.1)), 2)]
    assert {row["seconds"] for row in condense(rows, SEEDS)["rows"]} == {0.001}


def test_seeds_outside_the_range_are_left_out() -> None:
    rows = played("bump", "auto", rate(0.1), seeds=[300, 1999, 2000, 2019, 2020])
    assert condense(rows, seed_range(REPORTED))["rows"][0]["seeds"] == [2000, 2019]


@pytest.mark.parametrize("text", ["100:101", "150:205", "0:2000", "303:304", "519:600", "403:404"])
def test_development_seeds_are_refused(text: str) -> None:
    with pytest.raises(SystemExit, match="not used for development"):
        seed_range(text)


def test_a_record_with_a_development_seed_makes_no_page() -> None:
    record = condense(played("bump", "auto", rate(0.1)), SEEDS)
    record["rows"][0]["seeds"][0] = 205
    with pytest.raises(SystemExit, match="seed 205"):
        page_text(WORDS, record)


@pytest.mark.parametrize("text", ["1000", "1020:1000", "a:b", "1000:1000"])
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SystemExit, match="FIRST:END"):
        seed_range(text)


def test_the_same_run_twice_counts_once_and_two_results_are_refused() -> None:
    rows = played("bump", "auto", rate(0.1))
    assert condense(rows + rows, SEEDS) == condense(rows, SEEDS)
    with pytest.raises(SystemExit, match="two that differ"):
        condense(rows + played("bump", "auto", rate(0.2), seeds=[2004]), SEEDS)


# --- the arithmetic ------------------------------------------------------------------------------------------------


def test_the_ratio_and_its_error_are_those_of_a_bootstrap() -> None:
    rng = np.random.default_rng(5)
    bottoms = rng.normal(100, 12, size=40)
    tops = 0.6 * bottoms + rng.normal(0, 9, size=40)
    picks = rng.integers(40, size=(20_000, 40))
    resampled = tops[picks].mean(1) / bottoms[picks].mean(1)
    found = ratio_of(tops.tolist(), bottoms.tolist())
    assert found.value == pytest.approx(tops.mean() / bottoms.mean(), rel=1e-12)
    assert found.error == pytest.approx(resampled.std(), rel=0.05)


def test_the_verdict_is_paired_over_common_seeds() -> None:
    rows = [
        *played("clusters", "auto", rate(0.1, 0.3, 1), seeds=range(2000, 2018)),
        *played("clusters", "linucb", rate(0.2, 0.3, 2), seeds=range(2004, 2020)),
    ]
    found = verdict(contest(condense(rows, SEEDS)).at("clusters"))
    common = range(2004, 2018)
    mine = np.round([rate(0.1, 0.3, 1)(seed, 500) for seed in common], 2)
    other = np.round([rate(0.2, 0.3, 2)(seed, 500) for seed in common], 2)
    assert found is not None
    assert (found.rival, found.gap.pairs, found.word) == ("linucb", 14, "ahead")
    assert found.gap.value == pytest.approx((mine - other).mean())
    assert found.gap.error == pytest.approx((mine - other).std(ddof=1) / np.sqrt(14))
    assert found.share == pytest.approx((mine - other).mean() / other.mean())


@pytest.mark.parametrize(
    ("auto", "noise", "seeds", "word"),
    [
        (0.50, 0.01, 20, "ahead"),
        (0.94, 0.001, 20, "equal"),  # surely less, but by less than 10 %
        (1.06, 0.001, 20, "equal"),
        (1.20, 0.60, 20, "equal"),  # 20 %, but 1.5 standard errors
        (1.20, 0.40, 20, "behind"),  # 2.2 of them
        (9.00, 0.01, 4, "unsaid"),
    ],
)
def test_words_of_the_verdict(auto: float, noise: float, seeds: int, word: str) -> None:
    mine = played("bump", "auto", lambda seed, t: t * (auto + noise * (-1) ** seed), seeds=SEEDS[:seeds])
    other = played("bump", "neuclust", rate(1.0), seeds=SEEDS[:seeds])
    found = verdict(contest(condense([*mine, *other], SEEDS)).at("bump"))
    assert found is not None
    assert found.word == word


def test_the_tally_counts_verdicts_on_the_best_other_or_a_named_one() -> None:
    said = "{{ tally own }}; {{ tally own neuclust }}; {{ tally own popular }}"
    rows = [
        *played("bump", "auto", rate(0.2)),
        *played("bump", "linucb", rate(0.1)),
        *played("bump", "neuclust", rate(0.4)),
        *played("clusters", "auto", rate(0.2)),
        *played("clusters", "neuclust", rate(0.2)),
    ]
    assert filled(rows, said) == (
        "ahead on 0, equal on 1 and behind on 1 of 2 problems; ahead on 1, equal on 1 and behind on 0 of 2 problems; "
        "(not measured yet)"
    )


# --- the tables ----------------------------------------------------------------------------------------------------


def everything() -> list[Any]:
    """Policies on the problems that tables A to D speak of, with levels told by name."""
    levels = {"auto": 0.2, "linucb": 0.4, "lin-ts": 0.3, "auto:linear": 0.35, "neuclust": 0.5}
    levels |= {"cn-ucb": 0.45, "cluster-oracle": 0.1, "oracle": 0.0, "uniform": 0.9, "neural-linear:ucb": 0.25}
    return [
        row
        for problem in ("ml-volatile", "clusters", "bump", "delayed", "drift-none")
        for salt, (policy, level) in enumerate(levels.items())
        for row in played(problem, policy, rate(level * (1.5 if problem == "delayed" else 1.0), 0.05, salt))
    ]


def filled(rows: list[Any], words: str = WORDS) -> str:
    return page_text(words, condense(rows, SEEDS))


def test_the_table_names_the_best_linear_and_the_best_other_and_leaves_oracles_out() -> None:
    cells = line(filled(everything()), "## Table A", "`clusters`")
    assert cells[1] == "500"
    assert cells[2].startswith("**")
    assert cells[3].endswith("`lin-ts`")
    assert cells[8].endswith("`neural-linear:ucb`")
    assert "oracle" not in " ".join(cells)
    values = np.round([rate(0.3, 0.05, 2)(seed, 500) for seed in SEEDS], 2)
    assert cells[3] == f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(20):.1f} `lin-ts`"
    assert line(filled(everything()), "## Table B", "`clusters`")[1] == "1000"


def test_only_the_smallest_mean_is_bold() -> None:
    rows = [*everything(), *played("bump", "neural-linear", rate(0.01))]
    cells = line(filled(rows), "## Table A", "`bump`")
    assert [place for place, cell in enumerate(cells) if "**" in cell] == [6, 8]
    assert cells[8] == "**5.00** `neural-linear`"


def test_auto_with_its_linear_learner_is_linear_and_other_variants_are_not() -> None:
    rows = [
        *played("bump", "auto@team.learners=linear;team.prior=1", rate(0.2)),
        *played("bump", "auto@team.learners=linear,net", rate(0.1)),
        *played("bump", "linucb-disjoint", rate(0.15)),
    ]
    cells = line(filled(rows), "## Table A", "`bump`")
    assert cells[3].endswith("`auto@team.learners=linear;team.prior=1`")
    assert cells[8].endswith("`auto@team.learners=linear,net`")


def test_who_played_few_seeds_is_shown_with_their_number_and_not_called_best() -> None:
    lucky = [*everything(), *played("bump", "neural-linear", rate(0.01, 0.1), seeds=SEEDS[:4])]
    cells = line(filled(lucky), "## Table A", "`bump`")
    assert cells[6].endswith("(4 seeds)")
    assert cells[8].endswith("`neural-linear:ucb`")
    quarter = [*everything(), *played("bump", "neural-linear", rate(0.01, 0.1), seeds=SEEDS[:5])]
    assert line(filled(quarter), "## Table A", "`bump`")[8].endswith("`neural-linear`")


def test_regrets_of_a_situation_are_over_the_seeds_its_policies_share() -> None:
    rows = [
        *played("money", "auto", lambda seed, _: float(seed), rounds=1500),
        *played("money", "linucb", rate(0.1), rounds=1500, seeds=SEEDS[2:5]),
    ]
    page = filled(rows, "{{ measured money auto linucb }} and {{ measured money popular }}")
    assert page == "`auto` 2,003.0 ± 0.6, `linucb` 150.0 (3 seeds) and not measured yet"


def test_the_reason_stands_where_auto_is_behind_and_nowhere_else() -> None:
    words = re.sub('"bump": "[^"]*"', '"bump": "one spot is hard to find"', WORDS)
    words = re.sub('"clusters": "[^"]*"', '"clusters": "never said"', words)
    page = filled([*everything(), *played("bump", "neural-linear", rate(0.1))], words)
    said = line(page, "## Table C", "`bump`")[-1]
    assert re.fullmatch(r"\*\*behind\*\* by \d+ % because one spot is hard to find", said)
    assert line(page, "## Table C", "`clusters`")[-1] == "ahead"
    assert "never said" not in page
    assert "because\n{" not in page


def test_the_share_of_the_gap_is_paired_over_three_policies() -> None:
    inside, across, floor = (
        np.round([rate(level, 0.05, salt)(seed, 500) for seed in SEEDS], 2)
        for level, salt in ((0.5, 4), (0.45, 5), (0.1, 6))
    )
    share = (inside - across).mean() / floor.mean()
    left = (inside - across) - share * floor
    error = left.std(ddof=1) / np.sqrt(20) / floor.mean()
    page = filled(everything()).split("## Table D")[1]
    shown = next(one for one in page.splitlines() if "cluster-oracle`:" in one and "`bump`" in one)
    assert f"`cluster-oracle`: {share:.2f} ± {error:.2f} |" in shown


def test_what_a_change_costs_is_taken_from_the_last_hundred_rounds() -> None:
    def after_change(seed: int, t: int) -> float:
        return 0.1 * t + (0.5 + 0.001 * (seed - 2000)) * max(0, t - 400)

    rows = [
        *played("drift-none", "auto", rate(0.1), rounds=1000),
        *played("drift-abrupt", "auto", after_change, rounds=500),
        *played("drift-abrupt", "auto", rate(9.0), rounds=1000),  # another world: of no use here
    ]
    extra = np.asarray([100 * (0.5 + 0.001 * (seed - 2000)) for seed in SEEDS])
    expected = (
        f"{10 + extra.mean():.1f} ± {extra.std(ddof=1) / np.sqrt(20):.1f} and 10.0, difference +{extra.mean():.1f}"
    )
    assert expected in filled(rows).split("## Table D")[1]


def test_late_feedback_is_a_ratio_of_means() -> None:
    cells = line(filled(everything()), "## Table D", "what does late feedback cost?")
    assert cells[2].startswith("`auto`, delayed / prompt: 1.50")
    assert cells[3] == "above 1"


def test_within_one_of_linear_is_answered() -> None:
    near = [*played("ml-volatile", "auto", rate(0.003, 0.1)), *played("ml-volatile", "linucb", rate(0.002, 0.1, 1))]
    far = [*played("ml-volatile", "auto", rate(0.013, 0.1)), *played("ml-volatile", "linucb", rate(0.002, 0.1, 1))]
    assert line(filled(near), "## Table D", "is `auto` within +1")[-1] == "yes"
    assert line(filled(far), "## Table D", "is `auto` within +1")[-1] == "no"


def test_the_picture_compares_policies_on_the_seeds_both_have() -> None:
    rows = [
        *played("money", "auto", lambda seed, _: 300.0 if seed < 2010 else 9000.0, rounds=1500),
        *played("money", "linucb", lambda seed, _: 200.0, rounds=1500, seeds=SEEDS[:10]),
    ]
    scores = contest(condense(rows, SEEDS)).at("money")
    assert relative_regrets(scores, "linucb") == {"auto": 1.5, "best linear": 1.0}


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_takes_runs_and_builds_the_same_page_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(row) + "\n" for row in everything()), encoding="utf-8")
    main(["--take", str(runs), "--docs", str(tmp_path)])
    page, picture = ((tmp_path / name).read_text(encoding="utf-8") for name in (PAGE, PICTURE))
    record = kept_record(tmp_path)
    assert page == page_text(WORDS, record)
    assert picture == picture_text(contest(record), digest_of(record))
    assert f"]({PICTURE})" in page
    (tmp_path / PAGE).unlink()
    main(["--docs", str(tmp_path)])
    assert (tmp_path / PAGE).read_text(encoding="utf-8") == page


def test_later_runs_replace_rows_of_their_problem_horizon_and_policy_alone(tmp_path: Path) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    first = [
        *played("bump", "auto", rate(0.2)),
        *played("bump", "linucb", rate(0.5)),
        *played("yelp", "auto", rate(0.1)),
    ]
    later = played("bump", "auto", rate(0.1))
    for file, rows in ((before, first), (after, later)):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    main(["--take", str(before), "--docs", str(tmp_path)])
    old = {(row["problem"], row["horizon"], row["policy"]): row for row in kept_record(tmp_path)["rows"]}
    main(["--take", str(after), "--onto", "--docs", str(tmp_path)])
    new = {(row["problem"], row["horizon"], row["policy"]): row for row in kept_record(tmp_path)["rows"]}
    assert list(new) == list(old)
    changed = {key for key in new if new[key] != old[key]}
    assert changed == {key for key in old if key[0] == "bump" and key[2] == "auto"}
    assert changed


def test_later_seeds_of_the_same_range_join_those_kept_before(tmp_path: Path) -> None:
    """A seed that is played again counts as it was played last."""
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    first = played("drift-none", "auto", rate(0.2), rounds=500, seeds=range(2000, 2004))
    later = played("drift-none", "auto", rate(0.1), rounds=500, seeds=range(2003, 2006))
    for file, rows in ((before, first), (after, later)):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    main(["--take", str(before), "--docs", str(tmp_path)])
    (old,) = kept_record(tmp_path)["rows"]
    main(["--take", str(after), "--onto", "--docs", str(tmp_path)])
    (new,) = kept_record(tmp_path)["rows"]
    assert new["seeds"] == [2000, 2001, 2002, 2003, 2004, 2005]
    assert new["regret"][:3] == old["regret"][:3]
    assert new["regret"][3:] == [50.0] * 3
    assert new["earlier"] == [*old["earlier"][:3], *[40.0] * 3]


def test_later_runs_of_other_seeds_never_stand_beside_older_ones(tmp_path: Path) -> None:
    """They replace all of their problem and horizon; what is still of older seeds is marked."""
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    older = range(1000, 1020)
    first = [
        *played("bump", "auto", rate(0.2), seeds=older),
        *played("bump", "linucb", rate(0.1), seeds=older),
        *played("yelp", "auto", rate(0.1), seeds=older),
    ]
    later = [*played("bump", "auto", rate(0.3), rounds=500), *played("bump", "neuclust", rate(0.4), rounds=500)]
    for file, rows in ((before, first), (after, later)):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    main(["--take", str(before), "--seeds", "1000:1020", "--docs", str(tmp_path)])
    assert "†" not in (tmp_path / PAGE).read_text(encoding="utf-8").split("## Table A")[1].split("## How")[0]
    main(["--take", str(after), "--onto", "--docs", str(tmp_path)])
    record, page = kept_record(tmp_path), (tmp_path / PAGE).read_text(encoding="utf-8")
    assert record["seeds"] == REPORTED
    assert [(row["horizon"], row["policy"], row["seeds"][0]) for row in record["rows"] if row["problem"] == "bump"] == [
        (500, "auto", 2000),
        (500, "neuclust", 2000),
        (1000, "auto", 1000),
        (1000, "linucb", 1000),
    ]
    assert line(page, "## Table A", "`bump`")[0] == "`bump`"
    assert line(page, "## Table A", "`yelp`")[0] == "`yelp` †"
    assert line(page, "## Table B", "`bump`")[0] == "`bump` †"
    assert line(page, "After 1000 rounds it is", "`bump`")[0] == "`bump` †"


def test_runs_of_the_device_engine_have_regret_and_no_cost() -> None:
    on_device = [row | {"seconds": None} for row in played("bump", "cn-ucb", rate(0.2))]
    page = filled([*played("bump", "linucb", rate(0.5)), *on_device])
    assert line(page, "## Table A", "`bump`")[5] == "**100.0**"
    assert "| `linucb`" in page.split("## What a round costs")[1].split("## How")[0]
    assert "| `cn-ucb`" not in page.split("## What a round costs")[1].split("## How")[0]


def test_runs_that_reach_no_horizon_are_no_record(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps(played("bump", "auto", rate(0.1), rounds=100)[0]) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="got none"):
        main(["--take", str(runs), "--docs", str(tmp_path)])
    assert not (tmp_path / RECORD).exists()


def test_without_a_record_the_page_says_so(tmp_path: Path) -> None:
    page = page_text(WORDS, kept_record(tmp_path))
    assert page.count("*Not measured yet.*") == 7
    assert "{{" not in page
