"""Hostile calls: defined behaviour or one clear sentence, and a refused call leaves everything as it was."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hostile_values import (
    ODD,
    UNSHOWABLE,
    details,
    id_lists,
    item_rows,
    junk,
    mostly,
    options,
    requests,
    tables,
    user_rows,
    values,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from neuclust import Recommender
from neuclust.errors import NeuclustError
from neuclust.recommender.choices import Choice

LONGEST_SENTENCE = 3_000
EVERYTHING = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


# --- two shops: one hears every call, the other those that were accepted ----------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def new_shop(policy: str, clock: Clock, **options: Any) -> Recommender:
    """Eight items, three users; a memory of few decisions, so that it is soon full."""
    items = [{"sku": f"i{n}", "price": float(n), "kind": "ab"[n % 2], "tags": ["x", "y"][: n % 3]} for n in range(8)]
    users = [{"user": f"u{n}", "age": 20 + n, "group": "pq"[n % 2]} for n in range(3)]
    return Recommender(
        items, "sku", users=users, user_id="user", slate_size=3, policy=policy, clock=clock, window=100.0, remember=40,
        **options,
    )  # fmt: skip


def picture(shop: Recommender) -> dict[str, Any]:
    """All that a call may change, but the count of refusals; what time brings is learned first."""
    shop.recommend_many([])
    state, arrays = shop.decisions.to_state()
    state["counts"] = {name: count for name, count in asdict(shop.decisions.counts).items() if name != "refused"}
    items, item_arrays = shop.stock.catalogue.to_state()
    users, user_arrays = shop.stock.users.to_state()
    learned = {} if shop.learner is None else shop.learner.policy.state_dict()
    tensors = {name: tensor.numpy().tobytes() for name, tensor in learned.items()}
    bytes_of = [{name: array.tobytes() for name, array in each.items()} for each in (arrays, item_arrays, user_arrays)]
    schema = None if shop.schema is None else shop.schema.to_state()[0]
    return {
        "decisions": state, "items": items, "users": users, "arrays": bytes_of, "learned": tensors, "schema": schema,
        "features": str(shop.features), "last": shop.ids.last, "answers": shop.answers.to_json(),
        "unlearned": copy.deepcopy(shop.stock.unlearned),
    }  # fmt: skip


def plain_choice(choice: Choice) -> Any:
    return choice.id, choice.items, choice.propensities, choice.means, choice.short, choice.reason, choice.ignored


def check_sentence(error: NeuclustError) -> None:
    assert 10 < len(str(error)) < LONGEST_SENTENCE


def check_same(shop: Recommender, twin: Recommender) -> None:
    assert picture(shop) == picture(twin)


class HostileCalls(RuleBasedStateMachine):
    """Every call goes to `shop`; the twin hears the accepted ones, and must be the same in everything."""

    policy, options = "linucb", dict[str, Any]()

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.shop, self.twin = (new_shop(self.policy, self.clock, **self.options) for _ in range(2))
        self.twin.ids.token = self.shop.ids.token
        self.decisions: list[Choice] = []
        self.refusals = 0

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """The answer; None where the call was refused."""
        try:
            answer = getattr(self.shop, method)(*args, **kwargs)
        except NeuclustError as error:
            self.refusals += 1
            check_sentence(error)
            check_same(self.shop, self.twin)
            return None
        again = getattr(self.twin, method)(*args, **kwargs)
        if method == "recommend":
            assert plain_choice(answer) == plain_choice(again)
        return answer

    @rule(request=requests)
    def recommend(self, request: dict[str, Any]) -> None:
        arguments = dict(request)
        choice = self.call("recommend", arguments.pop("user", None), **arguments)
        if choice is not None:
            assert len(set(choice.items)) == len(choice.items) <= 3
            assert choice.short == (len(choice.items) < (request.get("k") or 3))
            assert bool(choice.reason) == choice.short
            self.decisions = [*self.decisions[-3:], choice]

    @rule(many=mostly(st.lists(mostly(requests), max_size=3)))
    def recommend_many(self, many: Any) -> None:
        self.call("recommend_many", many)

    @rule(at=st.integers(-1, 3), named=st.lists(values, max_size=3), said=details, other=mostly(st.none()), id=junk)
    def feedback(self, at: int, named: list[Any], said: dict[str, Any], other: Any, id: Any) -> None:
        known = 0 <= at < len(self.decisions)
        items = dict(zip(self.decisions[at].items, named, strict=False)) if known else {"i1": 1}
        self.call("feedback", self.decisions[at].id if known else id, items if other is None else other, **said)

    @rule(items=mostly(item_rows))
    def add_items(self, items: Any) -> None:
        self.call("add_items", items)

    @rule(users=mostly(user_rows))
    def add_users(self, users: Any) -> None:
        self.call("add_users", users)

    @rule(ids=id_lists)
    def remove_items(self, ids: Any) -> None:
        self.call("remove_items", ids)

    @rule(older=mostly(st.floats(0, 200)), unanswered=mostly(st.sampled_from(["zeros", "unseen", None])))
    def expire(self, older: Any, unanswered: Any) -> None:
        self.call("expire", older, unanswered)

    @rule(seconds=st.floats(-10, 60))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(now=junk)
    def read_a_broken_clock(self, now: Any) -> None:
        before, self.clock.now = self.clock.now, now
        broken = isinstance(now, bool) or not isinstance(now, int | float) or not abs(now) <= 1e50
        if broken:
            with pytest.raises(NeuclustError):
                self.shop.recommend("u0")
        self.clock.now = before

    @precondition(lambda self: self.refusals)
    @rule()
    def the_next_answer_is_that_of_the_twin(self) -> None:
        self.call("recommend", "u1")

    def teardown(self) -> None:
        assert plain_choice(self.shop.recommend("u2")) == plain_choice(self.twin.recommend("u2"))
        assert picture(self.shop) == picture(self.twin)


class HostileCallsToPopular(HostileCalls):
    policy, options = "popular", {"exploration": 0.3, "combine": "sum", "learn_after": 20.0}


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=EVERYTHING
        ),
    )


@pytest.mark.parametrize("machine", [HostileCalls, HostileCallsToPopular])
def test_refused_calls_leave_everything_as_it_was(machine: type[HostileCalls]) -> None:
    run(machine, 12, 25)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [HostileCalls, HostileCallsToPopular])
def test_refused_calls_leave_everything_as_it_was_over_thousands_of_them(machine: type[HostileCalls]) -> None:
    run(machine, 400, 40)


# --- every odd value in every place -----------------------------------------------------------------------------


Place = Callable[[Recommender, Choice, Any], object]


def asking(name: str) -> Place:
    """A request with an odd detail."""
    return lambda shop, _, odd: shop.recommend("u1", **{name: odd})


def answering(name: str) -> Place:
    """Feedback with an odd detail."""
    return lambda shop, choice, odd: shop.feedback(choice.id, {}, **{name: odd})


REQUEST = ("user_features", "context", "eligible", "exclude", "required", "at_most", "k", "request_id")
PLACES: dict[str, Place] = {
    "user": lambda shop, _, odd: shop.recommend(odd),
    **{name: asking(name) for name in REQUEST},
    "exclude, with a request id": lambda shop, _, odd: shop.recommend("u1", request_id="r", exclude=odd),
    "requests": lambda shop, _, odd: shop.recommend_many(odd),
    "a request": lambda shop, _, odd: shop.recommend_many([{"user": "u1"}, odd]),
    "decision": lambda shop, _, odd: shop.feedback(odd, {}),
    "feedback": lambda shop, choice, odd: shop.feedback(choice.id, odd),
    "value": lambda shop, choice, odd: shop.feedback(choice.id, {choice.items[0]: odd}),
    **{name: answering(name) for name in ("slate", "shown", "feedback_id", "partial")},
    "older_than": lambda shop, _, odd: shop.expire(odd),
    "unanswered": lambda shop, _, odd: shop.expire(0.0, odd),
    "remove_items": lambda shop, _, odd: shop.remove_items(odd),
    "add_items": lambda shop, _, odd: shop.add_items(odd),
    "an item's id": lambda shop, _, odd: shop.add_items([{"sku": odd}]),
    "an item's number": lambda shop, _, odd: shop.add_items([{"sku": "new", "price": odd}]),
    "an item's category": lambda shop, _, odd: shop.add_items([{"sku": "new", "kind": odd}]),
    "an item's tags": lambda shop, _, odd: shop.add_items([{"sku": "new", "tags": odd}]),
    "add_users": lambda shop, _, odd: shop.add_users(odd),
    "a user's number": lambda shop, _, odd: shop.add_users([{"user": "new", "age": odd}]),
}


def twins() -> tuple[Recommender, Recommender, Choice]:
    """Two shops that made the same first choice."""
    clock = Clock()
    shop, twin = new_shop("popular", clock), new_shop("popular", clock)
    twin.ids.token = shop.ids.token
    twin.recommend("u0")
    return shop, twin, shop.recommend("u0")


@pytest.mark.parametrize("place", PLACES)
def test_any_value_in_any_place_is_taken_or_refused_with_a_sentence(place: str) -> None:
    shop, twin, choice = twins()
    for odd in [*ODD, *UNSHOWABLE]:
        try:
            PLACES[place](shop, choice, odd)
        except NeuclustError as error:
            check_sentence(error)
            check_same(shop, twin)
        else:
            shop, twin, choice = twins()


# --- recommenders nobody should make ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """A recommender to be made, and what it is asked for."""

    items: Any
    item_id: Any
    options: dict[str, Any]
    request: dict[str, Any]


attempts = st.builds(Attempt, st.one_of(tables, item_rows), mostly(st.just("sku")), options, requests)


def attempt(each: Attempt) -> None:
    """Make it, ask it, answer it, show its features; each may be refused."""
    try:
        shop = Recommender(each.items, each.item_id, **each.options)
        str(shop.features)
        arguments = dict(each.request)
        choice = shop.recommend(arguments.pop("user", None), **arguments)
        shop.feedback(choice.id, dict.fromkeys(choice.items[:1], shop.settings.feedback.high))
        assert all(map(math.isfinite, [*shop.recommend().means, *choice.means]))
        str(shop.features)
    except NeuclustError as error:
        check_sentence(error)


@settings(max_examples=200, deadline=None, suppress_health_check=EVERYTHING)
@given(attempts)
def test_a_recommender_is_made_or_refused_with_a_sentence(each: Attempt) -> None:
    attempt(each)


@pytest.mark.soak
@settings(max_examples=3_000, deadline=None, suppress_health_check=EVERYTHING)
@given(attempts)
def test_thousands_of_recommenders_are_made_or_refused_with_a_sentence(each: Attempt) -> None:
    attempt(each)
