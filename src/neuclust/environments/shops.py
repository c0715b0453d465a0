"""Simulated shops with known truth, all made of one declared record: `shop-rare` to `long-life`, and 50 drawn ones.

Everything is a function of the seed: items, coefficients, requests, coins. A shop's slate reward is the mean of its
arms' rewards unless another one is asked for.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.environments import shop_truths as truths
from neuclust.environments.beyond import Switch, Turn
from neuclust.environments.dealing import Arms, Delivery, Recorded
from neuclust.environments.payments import NET, Amounts, PositionBias
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.rewards import mean
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.structured import StructuredReward
from neuclust.errors import ConfigError
from neuclust.randomness import stream

SHOPS = 50  # drawn ones: even numbers to develop on, odd ones to report
MEDIAN_PRICE, PRICE_SPREAD = 30.0, 0.7  # of `money`: price = 30 exp(0.7 v_0), v_0 an item's first feature
DELAYS = ((0, 0), (5, 60), (20, 200))  # of drawn shops, in requests
LOST = (0.0, 0.05, 0.1, 0.2)
LONG_LIFE = 20_000  # rounds in which the coefficients of `long-life` turn by a right angle


@dataclass(frozen=True, slots=True)
@checked(
    click_rate=(1e-6, 0.5), dim=(8, 1000), items=AT_LEAST_ONE, eligible=AT_LEAST_ONE, signal=POSITIVE,
    item_effect=NON_NEGATIVE, earliest=NON_NEGATIVE, latest=NON_NEGATIVE, lost=(0.0, 1.0), turnover=NON_NEGATIVE,
    drift=NON_NEGATIVE,
)  # fmt: skip
class ShopSpec:
    """A shop: what its truth is like, what is offered, and when clicks come."""

    click_rate: float = 0.02  # mean chance of a click over requests and items, where the item is looked at
    dim: int = 30  # d, features per request and item
    items: int = 3000  # at a time
    eligible: int = 300  # per request
    link: truths.Link = "logistic"
    layout: truths.Layout = "crossed"  # of what models read where the link is best-price
    signal: float = 1.3  # s.d. over requests and items of what features explain, in log-odds
    item_effect: float = 0.0  # s.d. of an item's own effect, in log-odds
    earliest: int = 0  # feedback comes `earliest` to `latest` requests late
    latest: int = 0
    lost: float = 0.0  # share of the requests whose feedback never comes
    slots: bool = False  # whether slot j is looked at with chance 0.7^(j − 1) only
    amounts: bool = False  # whether arms pay amounts of money instead of clicks
    turnover: float = 0.0  # new items per request, each replaces the oldest
    drift: int = 0  # requests in which linear coefficients turn by a right angle; 0: they stay

    def __post_init__(self) -> None:
        if self.latest < self.earliest:
            raise ConfigError(f"ShopSpec.latest: expected a delay of at least {self.earliest}, got {self.latest}")
        if self.slots and self.amounts:
            raise ConfigError("ShopSpec: expected slots or amounts, got both; set one of them to false")
        if self.drift and self.link == "best-price":
            raise ConfigError("ShopSpec.drift: expected 0 where the link is best-price; use another link")
        if self.layout != "crossed" and self.link != "best-price":
            raise ConfigError(f"ShopSpec.layout: expected crossed where the link is {self.link}, got {self.layout}")

    def delivery(self, seed: int) -> Delivery | None:
        """When the feedback of a request comes; None: at once."""
        if self.latest == 0 and self.lost == 0:
            return None
        return Delivery(seed, late=1.0 - self.lost, delay=self.earliest, lost=self.lost, latest=self.latest)


def build_shop(name: str, shop: ShopSpec, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """A shop as an environment; `arms_per_round` defaults to its eligible items, the slate reward to the mean.

    Log-odds of a click are b + s where the link is logistic or best-price, its chance is c (1 + s)₊ where it is linear,
    s = scale · (score(z) − mean) + e_i: z is the context (`shop_truths.Crossing`), the score is z·θ, or a best price
    for every segment and category, and e_i is the item's own effect. scale and b or c give `signal` and `click_rate`.
    """
    spec = ProblemSpec.of(spec, fields)
    offered = shop.eligible if spec.arms_per_round is None else spec.arms_per_round
    if not 1 <= offered <= shop.items:
        raise ConfigError(f"{name}: expected 1 to {shop.items} items offered per request, got {offered}")
    if spec.reward is not None and (shop.slots or shop.amounts):
        raise ConfigError(f"{name}: expected no slate reward but its own, got {spec.reward.name}")
    spec = replace(spec, arms_per_round=offered, reward=spec.reward or mean(spec.slate_size))
    n = shop.items + math.ceil(shop.turnover * spec.horizon)
    contexts, chances = shop_truth(shop, n, spec)
    prices = MEDIAN_PRICE * torch.exp(PRICE_SPREAD * contexts.items[:, 0])
    worth = NET * prices if shop.amounts else torch.ones(n, dtype=torch.float64)
    rounds = truths.ShopRounds(chances, contexts, shop.items, shop.turnover, offered, spec.seed, worth)
    arms, delivery = Arms(contexts.items, torch.arange(n)), shop.delivery(spec.seed)
    pays: StructuredReward | None = PositionBias(spec.slate_size) if shop.slots else None
    if shop.amounts:
        pays = Amounts(spec.slate_size, prices)
    return SlateEnvironment(name, arms, Recorded(rounds, contexts=contexts), spec, pays=pays, delivery=delivery)


def shop_truth(shop: ShopSpec, n: int, spec: ProblemSpec) -> tuple[truths.Crossing, truths.Chances]:
    """Contexts of n items and of the horizon's requests, and the chances of a click, calibrated."""
    seed, priced = spec.seed, shop.link == "best-price"
    size, requests = (n, spec.horizon, shop.dim, seed), truths.segment_requests if priced else truths.user_requests
    contexts = truths.priced_contexts(*size, shop.layout) if priced else truths.mixed_contexts(*size)
    frame = np.linalg.qr(stream(seed, "shop coefficients").standard_normal((shop.dim, 2)))[0]
    first, then = (torch.from_numpy(frame[:, k].copy()) for k in range(2))
    tastes = Turn(first, then, shop.drift) if shop.drift else Switch(first, first, 0)
    score = truths.best_prices(seed) if priced else truths.LinearScore(tastes)
    effects = shop.item_effect * torch.from_numpy(truths.normal_rows(seed, "shop effects", n, 1)[:, 0])
    sampled = contexts.with_requests(requests(seed, "shop sample requests", truths.SAMPLED_REQUESTS))
    raw = truths.Chances(score, effects, linear=shop.link == "linear")
    return contexts, raw.calibrated(sampled, shop.items, (shop.signal, shop.click_rate), seed)


RARE = ShopSpec(click_rate=0.007)
LATE = ShopSpec(click_rate=0.02, earliest=5, latest=60, lost=0.1)
TASTES = ShopSpec(click_rate=0.05, link="best-price")
ITEMS = ShopSpec(click_rate=0.05, items=2000, eligible=100, signal=0.6, item_effect=1.0, turnover=0.1)
SLOTS = ShopSpec(click_rate=0.05, slots=True)
MONEY = ShopSpec(click_rate=0.05, amounts=True)
LONG = ShopSpec(click_rate=0.05, dim=20, items=1000, eligible=100, turnover=0.1, drift=LONG_LIFE)

shop_rare = partial(build_shop, "shop-rare", RARE)
shop_late = partial(build_shop, "shop-late", LATE)
shop_tastes = partial(build_shop, "shop-tastes", TASTES)
shop_items = partial(build_shop, "shop-items", ITEMS)
shop_slots = partial(build_shop, "shop-slots", SLOTS)
money = partial(build_shop, "money", MONEY)
long_life = partial(build_shop, "long-life", LONG)


def draw_shop(number: int) -> ShopSpec:
    """Shop `number` of the 50 that policies are developed on (even numbers) and reported on (odd ones).

    Click rates, d, items and eligible items are log-uniform: 0.5 to 15 %, 8 to 60, 500 to 10,000, 50 to 1,000. Links
    and delays (none, 5 to 60, 20 to 200 requests) are equally likely, and so is feedback of which 0, 5, 10 or 20 %
    is lost; item effects and slots that differ are there in every third shop.
    """
    if not 0 <= number < SHOPS:
        raise ConfigError(f"expected a shop from 0 to {SHOPS - 1}, got {number}", field="shop")
    generator = stream(number, "declared shops")

    def between(low: float, high: float) -> float:
        return float(low * (high / low) ** generator.random())

    rate, dim, items = between(0.005, 0.15), round(between(8, 60)), round(between(500, 10_000))
    eligible = min(items, round(between(50, 1000)))
    links: tuple[truths.Link, ...] = ("logistic", "linear", "best-price")
    link, (earliest, latest) = links[generator.integers(3)], DELAYS[generator.integers(len(DELAYS))]
    lost, effects, slots = LOST[generator.integers(len(LOST))], generator.random() < 1 / 3, generator.random() < 1 / 3
    return ShopSpec(
        click_rate=rate, dim=dim, items=items, eligible=eligible, link=link, item_effect=float(effects),
        earliest=earliest, latest=latest, lost=lost, slots=slots,
    )  # fmt: skip
