"""A shop that was saved and loaded answers and learns as the one that went on; what is no such save is refused."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_shop import ITEMS, USERS, Clock, play, small_shop, told
from torch import Tensor

import neuclust
from neuclust import registry
from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError, DataError, SaveError
from neuclust.persistence import MANIFEST, MOST_MANIFEST, read_state, save_policy
from neuclust.recommender.recommender import Recommender
from neuclust.recommender.tables.features import Features

POLICIES: dict[str, dict[str, Any]] = {
    "linucb": {}, "popular": {}, "auto": {"exploration": 0.3}, "neuclust": {"exploration": 0.2}, "auto:linear": {},
    "lin-ts": {"exploration": 0.1, "seed": 7}, "cn-ucb": {}, "epsilon-greedy": {"seed": 3}, "neural-linear": {},
    "uniform": {},
}  # fmt: skip


def loaded(shop: Recommender, folder: Path, **given: Any) -> Recommender:
    """A copy through a save, with a clock of its own that stands where the shop's does."""
    shop.save(folder)
    clock: Any = shop.clock
    return Recommender.load(folder, **{"clock": Clock(clock.now), **given})


def learned(shop: Recommender, folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """All that is saved but what ids of decisions are in."""
    shop.save(folder)
    manifest, state = read_state(folder)
    named = ("decisions.open", "decisions.closed.keys", "decisions.messages", "text.answers")
    return manifest, {name: tensor for name, tensor in state.items() if not name.startswith(named)}


def same(first: tuple[dict[str, Any], dict[str, Tensor]], second: tuple[dict[str, Any], dict[str, Tensor]]) -> bool:
    """Bit for bit; NaN is NaN."""
    alike = first[0] == second[0] and first[1].keys() == second[1].keys()
    return alike and all(
        tensor.dtype == second[1][name].dtype
        and np.array_equal(tensor.numpy(), second[1][name].numpy(), equal_nan=tensor.is_floating_point())
        for name, tensor in first[1].items()
    )


SELDOM = [pytest.param(name, marks=pytest.mark.soak) for name in list(POLICIES)[6:]]


@pytest.mark.parametrize("policy", [*list(POLICIES)[:6], *SELDOM])
def test_a_loaded_shop_goes_on_as_the_one_that_was_saved(policy: str, tmp_path: Path) -> None:
    shop = small_shop(policy, **POLICIES[policy])
    before = play(shop, range(1, 31))
    assert shop.decisions.counts.open > 2
    other = loaded(shop, tmp_path / "shop")
    assert same(learned(shop, tmp_path / "first"), learned(other, tmp_path / "second"))
    went_on, came_back = (play(each, range(31, 50), before.choices) for each in (shop, other))
    assert went_on.seen == came_back.seen
    assert {"learned", "open"} <= {each for each in went_on.seen if isinstance(each, str)}
    assert same(learned(shop, tmp_path / "first"), learned(other, tmp_path / "second"))


def test_further_items_rules_and_many_requests_agree(tmp_path: Path) -> None:
    shop = small_shop(exploration=0.5)
    before = play(shop, range(1, 10))
    shop.remove_items(["s3", "s4"])
    other = loaded(shop, tmp_path / "shop")
    for each in (shop, other):
        changes = each.add_items([{"sku": "s4", "price": 1.0, "colour": "red"}, {"sku": "new", "category": "z"}])
        assert changes.added == ["s4", "new"]
        each.add_users([{"user": "u99", "age": 33, "segment": "gold"}])
    requests = [{"user": "u99", "context": {"hour": hour, "late": True}} for hour in range(6)]
    first, second = shop.recommend_many(requests), other.recommend_many(requests)
    assert [told(choice) for choice in first] == [told(choice) for choice in second]
    assert str(shop.features) == str(other.features)
    assert "colour" in str(other.features)
    assert "late" in str(other.features)
    assert play(shop, range(10, 30), before.choices).seen == play(other, range(10, 30), before.choices).seen


def test_a_draft_is_saved_too(tmp_path: Path) -> None:
    shop = small_shop("auto:linear", features=Features(items={"price": "number"}, cross=[("segment", "category")]))
    other = loaded(shop, tmp_path / "shop")
    assert other.schema is None
    assert str(other.features) == str(shop.features)
    assert play(shop, range(1, 12)).seen == play(other, range(1, 12)).seen


def test_a_later_version_of_the_features_is_saved(tmp_path: Path) -> None:
    shop = small_shop(log=tmp_path / "log.jsonl")
    old = shop.recommend("u1", context={"hour": 2.0})
    stale = shop.reader()
    before = play(shop, range(2, 12), [old])
    shop.refit()
    with pytest.raises(DataError, match="make a new reader"):
        shop.accept(stale.recommend("u1"))
    other = loaded(shop, tmp_path / "shop", log=tmp_path / "other.jsonl")
    assert other.schema is not None
    assert other.schema.version == 2
    assert play(shop, range(12, 24), before.choices).seen == play(other, range(12, 24), before.choices).seen


def test_a_shop_without_items_is_saved_with_its_empty_answers(tmp_path: Path) -> None:
    shop = Recommender([], "sku", clock=Clock())
    empty = shop.recommend(request_id=1)
    other = loaded(shop, tmp_path / "shop")
    assert other.recommend(request_id=1) == empty
    other.add_items(ITEMS)
    assert len(other.recommend()) == 5


def test_the_same_request_has_its_answer_after_loading_and_no_id_comes_twice(tmp_path: Path) -> None:
    shop = small_shop()
    answered = shop.recommend("u1", context={"hour": 3}, request_id="once")
    shop.save(tmp_path / "shop")
    later = [shop.recommend("u1").id for _ in range(5)]
    seen = {answered.id, *later}
    for _ in range(3):  # an older save, restored several times
        other = Recommender.load(tmp_path / "shop", clock=Clock())
        again = other.recommend("u1", context={"hour": 3}, request_id="once")
        assert again == answered
        fresh = {other.recommend("u1").id for _ in range(5)}
        assert not fresh & seen
        seen |= fresh
    assert other.feedback(answered.id, {answered.items[0]: 1}).status == "learned"


def test_open_decisions_learn_the_rows_they_were_made_with(tmp_path: Path) -> None:
    """The item's values change while the shop is down; what is learned is what was shown."""
    shop = small_shop()
    choice = shop.recommend("u1", context={"hour": 5})
    other = loaded(shop, tmp_path / "shop")
    for each in (shop, other):
        each.add_items([{"sku": item, "price": 900.0, "category": "c"} for item in choice.items])
        each.feedback(choice.id, dict.fromkeys(choice.items, 1))
    assert same(learned(shop, tmp_path / "first"), learned(other, tmp_path / "second"))


# --- what cannot be saved -------------------------------------------------------------------------------------


def refusal(folder: Path, **given: Any) -> str:
    with pytest.raises(SaveError) as refused:
        Recommender.load(folder, **given)
    said = str(refused.value)
    assert str(folder) in said
    assert "\n" not in said
    return said


def best_of(values: list[float]) -> float:
    return max(values)


def test_functions_are_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shop = small_shop(reward=best_of)
    play(shop, range(1, 6))
    shop.save(folder)
    assert "clock: expected the function" in refusal(folder)
    assert "reward: expected the function" in refusal(folder, clock=Clock())
    assert "reward: expected 'function'" in refusal(folder, clock=Clock(), reward="any")
    other = Recommender.load(folder, clock=Clock(1_100.0), reward=best_of)
    assert other.settings.reward.name == "function"
    wrong: Any = 3
    with pytest.raises(ConfigError, match="clock: expected a function"):
        Recommender.load(folder, clock=wrong)


def test_the_system_clock_is_not_asked_for(tmp_path: Path) -> None:
    shop = small_shop(clock=time.time)
    shop.recommend("u1")
    shop.save(tmp_path / "shop")
    assert Recommender.load(tmp_path / "shop").clock is time.time


def test_transformers_are_given_again_fitted(tmp_path: Path) -> None:
    from sklearn.preprocessing import QuantileTransformer, StandardScaler

    folder = tmp_path / "shop"
    declared = Features(items={"price": StandardScaler()}, users={"age": StandardScaler()})
    shop = small_shop(features=declared)
    before = play(shop, range(1, 6))
    fitted = shop.transformers
    assert set(fitted) == {"price", "age"}
    shop.save(folder)
    assert "StandardScaler of column 'price'" in refusal(folder, clock=Clock())
    assert "fitted StandardScaler" in refusal(folder, clock=Clock(), transformers={**fitted, "age": StandardScaler()})
    other = QuantileTransformer(n_quantiles=5).fit([[1.0], [2.0], [3.0], [4.0], [5.0]])
    assert "QuantileTransformer" in refusal(folder, clock=Clock(), transformers={**fitted, "age": other})
    back = Recommender.load(folder, clock=Clock(), transformers=fitted)
    assert play(shop, range(6, 12), before.choices).seen == play(back, range(6, 12), before.choices).seen
    wrong: Any = StandardScaler()
    with pytest.raises(ConfigError, match="transformers: expected a dictionary"):
        Recommender.load(folder, clock=Clock(), transformers=wrong)


def test_transformers_of_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    from sklearn.preprocessing import StandardScaler

    items = [{"sku": i, "age": float(i)} for i in range(9)]
    users = [{"user": i, "age": 100.0 + 3 * i} for i in range(9)]
    shop = Recommender(
        items, "sku", users=users, user_id="user", slate_size=2, policy="linucb", remember=9,
        features=Features(columns={"age": StandardScaler()}),
    )  # fmt: skip
    shop.recommend(3)
    assert set(shop.transformers) == {"items.age", "users.age"}
    shop.save(tmp_path / "shop")
    other = Recommender.load(tmp_path / "shop", transformers=shop.transformers)
    assert told(other.recommend(4))[:4] == told(shop.recommend(4))[:4]


# --- policies from outside --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstConfig:
    """Nothing can be set."""


class First:
    """The first arms, whatever they are."""

    name = "first-of-all"
    save = save_policy

    def __init__(self, config: FirstConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.updates = 0

    def select(self, round: Round) -> Slate:
        none = torch.zeros(round.slate_size, dtype=torch.float64)
        return Slate(torch.arange(round.slate_size), none + self.updates, none)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        self.updates += 1

    def state_dict(self) -> dict[str, Tensor]:
        return {"updates": torch.tensor(self.updates)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.updates = int(state["updates"])


def test_a_policy_from_outside_is_registered_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    registry.register_policy("first", First)
    shop = small_shop("first")
    choice = shop.recommend("u1")
    shop.feedback(choice.id, {})
    other = loaded(shop, tmp_path / "shop")
    assert other.recommend("u1").means == [1.0, 1.0, 1.0]
    registry.REGISTRY.registered.clear()
    assert "registered before" in refusal(tmp_path / "shop", clock=Clock())


# --- places and sizes -------------------------------------------------------------------------------------------


def test_other_folders_are_told_apart(tmp_path: Path) -> None:
    assert "expected a saved recommender (manifest.json" in refusal(tmp_path / "none")
    neuclust.build_policy("linucb", dim=3, slate_size=2).save(tmp_path / "policy")
    assert "got a saved policy" in refusal(tmp_path / "policy")
    small_shop().save(tmp_path / "shop")
    with pytest.raises(SaveError, match="got a saved recommender"):
        neuclust.load(tmp_path / "shop")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(SaveError, match="found other files"):
        small_shop().save(tmp_path / "full")
    wrong: Any = 3
    with pytest.raises(ConfigError, match="path of a folder"):
        small_shop().save(wrong)


def test_saving_changes_nothing_and_replaces_the_earlier_save(tmp_path: Path) -> None:
    shop, untouched = small_shop("auto"), small_shop("auto")
    first = play(shop, range(1, 8))
    shop.save(str(tmp_path / "shop"))
    shop.save(tmp_path / "shop")
    second = play(untouched, range(1, 8))
    assert play(shop, range(8, 16), first.choices).seen == play(untouched, range(8, 16), second.choices).seen
    assert set(os.listdir(tmp_path / "shop")) == {"manifest.json", "state.safetensors"}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_save_has_one_size_for_ever(tmp_path: Path) -> None:
    shop = small_shop(remember=10)
    sizes = []
    for first in (1, 61):
        for _ in range(first, first + 60):
            choice = shop.recommend("u1", context={"hour": 3})
            shop.feedback(choice.id, {choice.items[0]: 1})
        shop.save(tmp_path / "shop")
        sizes.append(size_of(tmp_path / "shop"))
    assert abs(sizes[1] - sizes[0]) < 20  # digits of counts
    usual = Recommender(ITEMS, "sku", users=USERS, user_id="user", policy="linucb")
    usual.recommend("u1")
    usual.save(tmp_path / "usual")
    assert size_of(tmp_path / "usual") < 20 << 20


def test_the_manifest_stays_small_however_much_is_stocked(tmp_path: Path) -> None:
    items = [{"sku": f"{i}" * 150, "name": "é" * 300, "tags": [f"{i}-{j}" * 20 for j in range(9)]} for i in range(400)]
    shop = Recommender(items, "sku", policy="linucb", remember=9, width=1_000)
    for i in range(9):
        shop.recommend({f"column {i}" * 50: i}, request_id=f"{i}" * 900)
    shop.save(tmp_path / "shop")
    assert (tmp_path / "shop" / MANIFEST).stat().st_size < 10_000 < MOST_MANIFEST
    json.loads((tmp_path / "shop" / MANIFEST).read_text())
    assert Recommender.load(tmp_path / "shop").recommend({"a": 1}).items == shop.recommend({"a": 1}).items


def test_ids_and_text_of_any_kind_come_back(tmp_path: Path) -> None:
    items = [{"sku": name, "kind": kind, "price": price} for name, kind, price in (
        (1, "🛒", 1e-300), ("01", "\ud800", None), (10**20, "", 1e30), ("ünï", None, -0.0), ("x" * 1000, "\n\0", 5),
    )]  # fmt: skip
    try:
        shop = Recommender(items, "sku", policy="linucb", slate_size=5, remember=9)
    except DataError:  # a lone surrogate is no text of a table
        items[1]["kind"] = "s"
        shop = Recommender(items, "sku", policy="linucb", slate_size=5, remember=9)
    choice = shop.recommend({"taste": "🛒"}, request_id="r\u2028")
    shop.save(tmp_path / "shop")
    other = Recommender.load(tmp_path / "shop")
    assert other.recommend({"taste": "🛒"}, request_id="r\u2028") == choice
    assert other.feedback(choice.id, {10**20: 1}).status == "learned"
