"""Seven simulated shops, each a function of a seed; `RATES` holds the mean chance of a click in the first slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import shop_tables as raw
from benchmarks.handmade import Reals, filled
from benchmarks.shop import ITEMS, USERS, Columns, Shop, Tables, Whole, calibrated
from benchmarks.shop_tables import Rng, Rows
from neuclust.randomness import stream

RATES = {"linear": 0.05, "nonlinear": 0.05, "rare": 0.01, "slots": 0.05, "tastes": 0.05, "tags": 0.05, "context": 0.05}

CATEGORIES = ("shoes", "shirts", "toys", "books", "garden", "kitchen")
BRANDS = ("Abelard", "Brix", "Cosima", "Dune", "Elan", "Fjord", "Gusto", "Helix")
COUNTRIES = ("DE", "FR", "IT", "PL", "US")
GENRES = ("drama", "comedy", "crime", "western", "horror", "romance", "war")
TAGS = ("red", "wool", "vegan", "gift", "outdoor", "retro", "kids", "luxury", "compact", "handmade")
DEVICES = ("phone", "tablet", "desktop")
DAYPARTS = ("night", "morning", "afternoon", "evening")


def codes(values: Sequence[Any], among: Sequence[str]) -> Whole:
    """Numbers of levels, the last one for a missing value: (n,)."""
    return np.array([len(among) if value is None else among.index(value) for value in values])


def favourites(rng: Rng, groups: int, kinds: int, height: float) -> Reals:
    """Weights (groups, kinds + 1): every group likes two kinds, one of them most; nobody knows a missing kind."""
    weights = np.zeros((groups, kinds + 1))
    for group in range(groups):
        best, second = rng.choice(kinds, 2, replace=False)
        weights[group, best], weights[group, second] = height, 0.6 * height
    return weights


def _hours() -> Rows:
    return [{"hour": hour, "device": device} for hour in range(24) for device in DEVICES]


def linear(seed: int) -> Shop:
    """Chance linear in brand, price, sale and segment x category."""
    rng, segments = stream(seed, "shop linear"), ("new", "regular", "gold")
    items: Columns = {
        "category": raw.levels(rng, CATEGORIES, ITEMS),
        "brand": raw.with_gaps(rng, raw.levels(rng, BRANDS, ITEMS), 0.02),
        "price": raw.prices(rng, 30.0, ITEMS),
        "sale": raw.flags(rng, 0.2, ITEMS),
        "added": raw.dates(rng, ITEMS),
    }
    users: Columns = {
        "segment": raw.levels(rng, segments, USERS),
        "age": raw.with_gaps(rng, raw.numbers(rng, 18, 80, USERS), 0.05),
    }
    brand = np.append(rng.exponential(0.6, len(BRANDS)), 0.0)[codes(items["brand"], BRANDS)]
    price = np.array(items["price"])
    own = 0.2 + brand + 0.8 * np.array(items["sale"]) + (1 - price / price.max())
    liked, kind = favourites(rng, len(segments), len(CATEGORIES), 8.0), codes(items["category"], CATEGORIES)
    segment = codes(users["segment"], segments)

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        found: Reals = own[item_rows] + liked[segment[user_row], kind[item_rows]]
        return found

    tables = Tables(items, users, _hours(), ("category", "brand", "price", "sale", "segment"))
    chance = calibrated(score, "linear", RATES["linear"], tables.contexts)
    return tables.shop("linear", seed, chance, cross=[("segment", "category")])


def nonlinear(seed: int) -> Shop:
    """A best price for every segment and category; the log-odds of a click fall with the distance to it."""
    rng, segments, kinds = stream(seed, "shop nonlinear"), ("budget", "middle", "premium"), CATEGORIES[:4]
    items: Columns = {
        "category": raw.levels(rng, kinds, ITEMS),
        "price": raw.prices(rng, 40.0, ITEMS),
        "rating": raw.with_gaps(rng, raw.numbers(rng, 1, 5, ITEMS, 1), 0.04),
        "tags": raw.tags(rng, TAGS[:5], 3, ITEMS),
    }
    users: Columns = {
        "segment": raw.levels(rng, segments, USERS),
        "country": raw.with_gaps(rng, raw.levels(rng, COUNTRIES, USERS), 0.03),
    }
    log_price, rating = np.log(np.array(items["price"]) / 40.0), filled(items["rating"])
    best = np.array([-0.6, 0.0, 0.6])[:, None] + rng.normal(0.0, 0.3, (3, len(kinds)))
    height = rng.uniform(1.5, 3.0, (3, len(kinds)))
    kind, segment = codes(items["category"], kinds), codes(users["segment"], segments)

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        who, what = segment[user_row], kind[item_rows]
        bump = np.exp(-0.5 * ((log_price[item_rows] - best[who, what]) / 0.3) ** 2)
        found: Reals = height[who, what] * bump + 0.3 * rating[item_rows]
        return found

    tables = Tables(items, users, _hours(), ("category", "price", "rating", "segment"))
    chance = calibrated(score, "logistic", RATES["nonlinear"], tables.contexts)
    crossed = [("segment", "category", "price")]
    return tables.shop("nonlinear", seed, chance, cross=crossed, bins={"price": 6}, width=192)


def rare(seed: int) -> Shop:
    """One click in a hundred; log-odds linear in brand, rating, segment x category and member x price."""
    rng, segments = stream(seed, "shop rare"), ("student", "family", "single", "senior")
    items: Columns = {
        "category": raw.levels(rng, CATEGORIES, ITEMS),
        "brand": raw.levels(rng, BRANDS, ITEMS),
        "price": raw.prices(rng, 60.0, ITEMS),
        "rating": raw.with_gaps(rng, raw.numbers(rng, 1, 5, ITEMS, 1), 0.05),
    }
    users: Columns = {
        "segment": raw.levels(rng, segments, USERS),
        "country": raw.levels(rng, COUNTRIES, USERS),
        "member": raw.flags(rng, 0.4, USERS),
    }
    brand = rng.normal(0.0, 0.5, len(BRANDS))[codes(items["brand"], BRANDS)]
    price, rating = np.array(items["price"]), filled(items["rating"])
    own, dear = brand + 0.5 * rating, 2.0 * price / price.max()
    liked, kind = favourites(rng, len(segments), len(CATEGORIES), 2.0), codes(items["category"], CATEGORIES)
    segment, member = codes(users["segment"], segments), np.array(users["member"])

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        slope = 0.5 if member[user_row] else -1.0
        found: Reals = own[item_rows] + liked[segment[user_row], kind[item_rows]] + slope * dear[item_rows]
        return found

    tables = Tables(items, users, _hours(), ("category", "brand", "price", "rating", "segment", "member"))
    chance = calibrated(score, "logistic", RATES["rare"], tables.contexts)
    return tables.shop("rare", seed, chance, cross=[("segment", "category"), ("member", "price")])


def slots(seed: int) -> Shop:
    """Films; clicks fall with the slot; log-odds linear in subtitles, date, plan x genre and age x minutes."""
    rng, plans = stream(seed, "shop slots"), ("free", "basic", "plus")
    items: Columns = {
        "genre": raw.with_gaps(rng, raw.levels(rng, GENRES, ITEMS), 0.02),
        "minutes": raw.numbers(rng, 70, 190, ITEMS),
        "subtitles": raw.flags(rng, 0.6, ITEMS),
        "released": raw.dates(rng, ITEMS),
        "studio": raw.levels(rng, BRANDS[:5], ITEMS),
    }
    users: Columns = {
        "plan": raw.levels(rng, plans, USERS),
        "age": raw.with_gaps(rng, raw.numbers(rng, 14, 80, USERS), 0.05),
        "country": raw.levels(rng, COUNTRIES[:3], USERS),
    }
    days = np.array([(day - raw.FIRST_DAY).days for day in items["released"]]) / raw.DAYS
    own = 0.7 * np.array(items["subtitles"]) + 1.2 * days
    minutes, age = np.array(items["minutes"]) / 100 - 1.3, filled(users["age"]) / 40 - 1.2
    liked, kind = favourites(rng, len(plans), len(GENRES), 1.6), codes(items["genre"], GENRES)
    plan = codes(users["plan"], plans)

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        length = 1.2 * age[user_row] * minutes[item_rows]
        found: Reals = own[item_rows] + liked[plan[user_row], kind[item_rows]] + length
        return found

    tables = Tables(items, users, _hours(), ("genre", "minutes", "subtitles", "released", "plan", "age"))
    chance = calibrated(score, "logistic", RATES["slots"], tables.contexts)
    falling, crossed = np.array([1.0, 0.8, 0.6, 0.45, 0.35]), [("plan", "genre"), ("age", "minutes")]
    return tables.shop("slots", seed, chance, cross=crossed, position=falling)


def _matching(seed: int, name: str, user_column: Columns, item_column: Columns, affinity: Callable[..., Reals]) -> Shop:
    """Log-odds linear in rating and in the affinity of a user's column to an item's."""
    rng = stream(seed, f"shop {name}")
    items: Columns = {
        **item_column,
        "rating": raw.with_gaps(rng, raw.numbers(rng, 1, 5, ITEMS, 1), 0.04),
        "price": raw.prices(rng, 20.0, ITEMS),
    }
    users: Columns = {**user_column, "country": raw.levels(rng, COUNTRIES[:3], USERS)}
    rating = filled(items["rating"])

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        found: Reals = 0.4 * rating[item_rows] + affinity(user_row, item_rows)
        return found

    matched = [(next(iter(user_column)), next(iter(item_column)))]
    tables = Tables(items, users, _hours(), (*item_column, "rating", *user_column))
    return tables.shop(name, seed, calibrated(score, "logistic", RATES[name], tables.contexts), match=matched)


def tastes(seed: int) -> Shop:
    """Taste vectors of users and style vectors of items that match entry by entry."""
    rng, dim = stream(seed, "shop tastes columns"), 8
    wanted, style = raw.vectors(rng, dim, 0.4, USERS), raw.vectors(rng, dim, 0.3, ITEMS)
    weights, of_users, of_items = rng.uniform(0.0, 5.0, dim), np.array(wanted), np.array(style)

    def affinity(user_row: int, item_rows: Whole) -> Reals:
        found: Reals = of_items[item_rows] @ (weights * of_users[user_row])
        return found

    return _matching(seed, "tastes", {"tastes": wanted}, {"style": style}, affinity)


def tags(seed: int) -> Shop:
    """Lists of tags: what users like and what items have; the affinity is the weighted overlap over √(n_u n_i)."""
    rng = stream(seed, "shop tags columns")
    likes, has = raw.tags(rng, TAGS, 4, USERS), raw.tags(rng, TAGS, 3, ITEMS)
    weights = rng.uniform(0.0, 5.0, len(TAGS))
    of_users, of_items = (
        np.array([[(tag in row) / np.sqrt(len(row)) for tag in TAGS] for row in column]) for column in (likes, has)
    )

    def affinity(user_row: int, item_rows: Whole) -> Reals:
        found: Reals = of_items[item_rows] @ (weights * of_users[user_row])
        return found

    return _matching(seed, "tags", {"likes": likes}, {"tags": has}, affinity)


def context(seed: int) -> Shop:
    """Log-odds linear in brand, part of the day x category and device x price; users do not matter."""
    rng = stream(seed, "shop context")
    items: Columns = {
        "category": raw.levels(rng, CATEGORIES, ITEMS),
        "brand": raw.with_gaps(rng, raw.levels(rng, BRANDS, ITEMS), 0.02),
        "price": raw.prices(rng, 30.0, ITEMS),
    }
    users: Columns = {"segment": raw.levels(rng, ("new", "regular", "gold"), USERS)}
    brand = np.append(rng.normal(0.0, 0.5, len(BRANDS)), 0.0)[codes(items["brand"], BRANDS)]
    price = np.array(items["price"])
    dear, slope = price / price.max(), dict(zip(DEVICES, (-3.0, -1.0, 1.0), strict=True))
    liked, kind = favourites(rng, len(DAYPARTS), len(CATEGORIES), 1.5), codes(items["category"], CATEGORIES)

    def score(user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:  # noqa: ARG001
        part = liked[DAYPARTS.index(context["daypart"]), kind[item_rows]]
        found: Reals = brand[item_rows] + part + slope[context["device"]] * dear[item_rows]
        return found

    contexts = [{"daypart": part, "device": device} for part in DAYPARTS for device in DEVICES]
    tables = Tables(items, users, contexts, ("category", "brand", "price", "daypart", "device"))
    chance = calibrated(score, "logistic", RATES["context"], contexts)
    crossed, known = [("daypart", "category"), ("device", "price")], {"daypart": [*DAYPARTS], "device": [*DEVICES]}
    return tables.shop("context", seed, chance, cross=crossed, context_levels=known)


SHOPS: dict[str, Callable[[int], Shop]] = {
    make.__name__: make for make in (linear, nonlinear, rare, slots, tastes, tags, context)
}
