"""How should user and item columns meet where nothing is stated? Clicks collected on invented shops, rule by rule.

    python -m benchmarks.crossing [--policy linucb ...] [--shop NAME ...] [--rule NAME ...] [--seeds 4] [--out FILE]

Each run answers 1,500 requests: a user at random, 200 of 1,000 items eligible, slates of 5. The figure is the share of
expected clicks collected between random slates and the best ones, in per cent, the mean over seeds. `true` is given the
crosses that the clicks are made of, `none` the columns alone. With --out one line per run is kept, and what the file
holds is not played again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.crossing_shops import SHOPS, Shop, make_shop
from benchmarks.tables import markdown, one_thread
from neuclust import build_policy
from neuclust.core import Feedback, Round
from neuclust.errors import LearningWarning
from neuclust.randomness import stream
from neuclust.recommender.crossing.design import Design
from neuclust.recommender.crossing.inferred import (
    FACTOR,
    Sample,
    main_terms,
    outer_terms,
    principal_terms,
    product_terms,
)
from neuclust.recommender.crossing.stated import Term, stated

Matrix = NDArray[np.float64]
Row = dict[str, Any]
REQUESTS, ELIGIBLE, SLATE, WIDTH = 1500, 200, 5, 128
POLICIES = ("linucb", "auto:linear")


@dataclass(frozen=True)
class Wish:
    """Stated crosses and matches, without a bound."""

    cross: Sequence[Sequence[str]] | None
    match: Sequence[Sequence[str]] | None
    width: int = 2000


@dataclass(frozen=True)
class Rule:
    """Features beyond the main columns, as many as there is room for, and a factor on products not stated."""

    terms: Callable[[Shop, int], list[Term]]
    factor: float = 1.0
    user: bool = True  # whether the user's columns stand among the features by themselves

    def features(self, shop: Shop) -> Features:
        """The features of this rule in a shop."""
        mains = [term for term in main_terms(sample_of(shop), WIDTH) if self.user or term.user == ()]
        room = WIDTH - len(mains)
        products = [
            replace(term, factor=self.factor if term.factor == FACTOR else 1.0) for term in self.terms(shop, room)
        ]
        sample = sample_of(shop, room if self.terms is chosen_terms else 0)
        return Features(shop, Design.of(sample, [*mains, *products]))


@dataclass(frozen=True)
class Features:
    """The design of a shop."""

    shop: Shop
    design: Design

    def rows(self, items: NDArray[np.int64], user: int) -> Matrix:
        """(n, width) of some items for one user."""
        return self.design.rows(self.shop.items.rows[items], self.shop.users.rows[user])

    @property
    def content(self) -> bytes:
        """Equal for rules that make the same features of a shop."""
        design = self.design
        return design.pairs.tobytes() + design.factors.tobytes() + "".join(design.labels).encode()


def true_terms(shop: Shop, room: int) -> list[Term]:  # noqa: ARG001
    """What the clicks are made of, whatever its width."""
    return [term for each in stated(Wish(shop.cross, shop.match), shop.items, shop.users) for term in each.terms()]


def chosen_terms(shop: Shop, room: int) -> list[Term]:
    """The default: columns alike are matched, the others multiplied, in projections where they do not fit."""
    return product_terms(sample_of(shop, room), room)[0]


def all_terms(shop: Shop, room: int) -> list[Term]:
    """All products where they fit, else the principal ones; nothing is matched."""
    sample = sample_of(shop)
    return outer_terms(sample) if sample.free <= room else principal_terms(sample, room)


def principal_alone(most: int) -> Callable[[Shop, int], list[Term]]:
    """Principal products, at most so many, also where all would fit."""
    return lambda shop, room: principal_terms(sample_of(shop), min(room, most))


def level_terms(shop: Shop, room: int) -> list[Term]:
    """Products of categories and tags alone, where they fit."""
    named = [
        (user, item)
        for user, item in product(shop.users.names, shop.items.names)
        if shop.users.levels(user) and shop.items.levels(item)
    ]
    found = [term for each in stated(Wish(named, []), shop.items, shop.users) for term in each.terms()]
    return found if len(found) <= room else principal_terms(sample_of(shop), room)


def matched_and_all(shop: Shop, room: int) -> list[Term]:
    """Columns alike are matched, and principal products of all columns stand beside that."""
    found = [term for each in sample_of(shop, room).matches for term in each.terms()]
    return [*found, *principal_terms(sample_of(shop), room - len(found))]


def sample_of(shop: Shop, room: int = 0) -> Sample:
    """With as many matches of columns alike as there is room for."""
    tables = shop.items.rows, shop.users.rows
    return Sample.of(shop.items, shop.users, *tables).matching(room, *tables)


RULES = {
    "true": Rule(true_terms),
    "none": Rule(lambda *_: []),
    "default": Rule(chosen_terms, FACTOR),
    "default, whole": Rule(chosen_terms),
    "default, half": Rule(chosen_terms, 0.5),
    "all": Rule(all_terms),
    "all, half": Rule(all_terms, factor=0.5),
    "all, no user": Rule(all_terms, user=False),
    "levels": Rule(level_terms),
    "principal": Rule(principal_alone(WIDTH)),
    "principal, double": Rule(principal_alone(WIDTH), factor=2.0),
    "principal 32": Rule(principal_alone(32)),
    "matched and all": Rule(matched_and_all),
}


@dataclass(frozen=True)
class Match:
    """One run, as it is named in the file."""

    shop: str
    policy: str
    rule: str
    seed: int


def play(match: Match, features: Features, requests: int) -> Row:
    """Expected clicks of the policy, of random slates and of the best ones."""
    shop, width = features.shop, features.design.width
    policy = build_policy(match.policy, dim=width, slate_size=SLATE, seed=match.seed)
    got = best = random = 0.0
    for t in range(1, requests + 1):
        rng = stream(match.seed, "requests", t)
        user = int(rng.integers(len(shop.users.rows)))
        items = np.sort(rng.choice(len(shop.items.rows), ELIGIBLE, replace=False))
        chances, coins = shop.chances[user, items], rng.random(ELIGIBLE)
        asked = Round(t, torch.from_numpy(items), torch.from_numpy(features.rows(items, user)), None, SLATE)
        slate = policy.select(asked)
        chosen = slate.positions.numpy()
        clicks = torch.from_numpy((coins < chances)[chosen].astype(np.float64))
        policy.update(asked, slate, Feedback(clicks, clicks.sum()))
        got += float(chances[chosen].sum())
        best += float(np.sort(chances)[-SLATE:].sum())
        random += SLATE * float(chances.mean())
    sums = {"clicks": round(got, 3), "best": round(best, 3), "random": round(random, 3)}
    return {**asdict(match), "requests": requests, "width": width, **sums}


def shares(rows: Sequence[Row], policy: str) -> str:
    """Per cent of the clicks between random and best, one line per shop, and the mean over shops."""
    names = [name for name in RULES if any(row["rule"] == name for row in rows)]
    lines = []
    for shop in [name for name in SHOPS if any(row["shop"] == name for row in rows)]:
        here = [row for row in rows if row["shop"] == shop and row["policy"] == policy]
        lines.append([shop, *(_mean([row for row in here if row["rule"] == name]) for name in names)])
    means = [_average([line[at] for line in lines]) for at in range(1, 1 + len(names))]
    return markdown([policy, *names], [*lines, ["mean", *means]])


def _mean(rows: Sequence[Row]) -> str:
    found = [(row["clicks"] - row["random"]) / (row["best"] - row["random"]) for row in rows]
    return f"{100 * sum(found) / len(found):.1f}" if found else ""


def _average(cells: Sequence[str]) -> str:
    return f"{sum(map(float, cells)) / len(cells):.1f}" if all(cells) else ""


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", help=f"default: {', '.join(POLICIES)}")
    parser.add_argument("--shop", action="append", choices=list(SHOPS))
    parser.add_argument("--rule", action="append", choices=list(RULES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--out", type=Path, help="one JSON line per run")
    options = parser.parse_args(words)
    one_thread()
    warnings.simplefilter("ignore", LearningWarning)
    policies, shops = options.policy or list(POLICIES), options.shop or list(SHOPS)
    rows = _kept(options.out)
    for seed, shop, policy in product(range(options.seeds), shops, policies):
        matches = [Match(shop, policy, rule, seed) for rule in options.rule or RULES]
        for row in _played(matches, rows, options.requests):
            rows.append(row)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    for policy in policies:
        print(shares([row for row in rows if row["requests"] == options.requests], policy), end="\n\n")


def _played(matches: Sequence[Match], rows: Sequence[Row], requests: int) -> Iterator[Row]:
    """The rows that are not there yet; rules that make the same features of a shop are played once."""
    held = {(*(row[key] for key in Match.__annotations__), row["requests"]): row for row in rows}
    shop = make_shop(matches[0].shop, matches[0].seed)
    found: dict[bytes, Row] = {}
    todo = []
    for match in matches:
        features = RULES[match.rule].features(shop)
        row = held.get((*asdict(match).values(), requests))
        if row is None:
            todo.append((match, features))
        else:
            found[features.content] = row
    for match, features in todo:
        if features.content not in found:
            found[features.content] = play(match, features, requests)
        yield {**found[features.content], "rule": match.rule}


def _kept(file: Path | None) -> list[Row]:
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
