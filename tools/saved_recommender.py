"""Saves small recommenders of the present version with what they choose next, for a test that loads them ever after.

    python -m tools.saved_recommender            # into tests/recommender/saved_VERSION, once per version

A folder that is there is not made again: a save that today's code wrote would prove nothing of an earlier version.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from neuclust import Category, Features, Recommender, __version__
from neuclust.experiment.shop import DEVICES, SimulatedShop

ROOT = Path(__file__).parents[1]
POLICIES = ("linucb", "auto:linear")
SEED, LEARNED, NEXT, SLATE_SIZE = 7, 50, 12, 3
ITEMS, USERS = 36, 20  # of the 300 and 400 of the simulated shop: the save is to be small
LARGEST = 200_000  # bytes of all files together


def folder_of(version: str) -> Path:
    return ROOT / "tests" / "recommender" / f"saved_{version.replace('.', '_')}"


def place_of(policy: str) -> str:
    """The folder of a policy's save."""
    return policy.replace(":", "-")


def opened(shop: SimulatedShop, policy: str) -> Recommender:
    """A recommender of the first items and users of the shop; titles, one per item, are left out."""
    features = Features(items={"title": "ignore"}, context={"device": Category(DEVICES)}, cross=[("segment", "price")])
    return Recommender(
        shop.items[:ITEMS], item_id="sku", users=shop.users[:USERS], user_id="user", slate_size=SLATE_SIZE,
        policy=policy, seed=SEED, remember=20, features=features,
    )  # fmt: skip


def go_on(shop: SimulatedShop, recommender: Recommender, first: int, count: int) -> list[dict[str, Any]]:
    """Requests from number `first` on with their clicks: what was asked, shown and believed."""
    found = []
    for t in range(first, first + count):
        asked, user = shop.request(t), f"u{1 + t % (USERS + 1)}"  # the last one is not known
        eligible = [sku for sku, row in zip(asked.eligible, asked.rows, strict=True) if row < ITEMS]
        choice = recommender.recommend(user, eligible=eligible, context=asked.context)
        clicked = shop.clicks(t, asked, [asked.eligible.index(str(sku)) for sku in choice.items])
        recommender.feedback(choice.id, dict(zip(choice.items, map(float, clicked), strict=True)))
        found.append({
            "user": user, "context": asked.context, "eligible": eligible, "clicks": clicked,
            "items": choice.items, "means": choice.means, "bonuses": choice.bonuses,
        })  # fmt: skip
    return found


def save(policy: str, folder: Path) -> None:
    """One recommender after its first requests, and what it does in the next ones."""
    shop = SimulatedShop.of(SEED)
    recommender = opened(shop, policy)
    go_on(shop, recommender, 1, LEARNED)
    recommender.save(folder)
    told = {"version": __version__, "policy": policy, "learned": LEARNED}
    requests = go_on(shop, recommender, LEARNED + 1, NEXT)
    text = json.dumps(told | {"requests": requests}, separators=(",", ":"))
    folder.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    folder = folder_of(__version__)
    if folder.exists():
        raise SystemExit(f"{folder.relative_to(ROOT)} is there already: it is of the version that it was made by")
    folder.mkdir()
    for policy in POLICIES:
        save(policy, folder / place_of(policy))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder.relative_to(ROOT)}: {size:,} bytes")
    assert size < LARGEST


if __name__ == "__main__":
    main()
