"""What `explored` marks and what a propensity tells, as docs/guides/exploration.md says it."""

from neuclust import Exploration, Recommender

SHARE, VISITS = 0.6, 300
ITEMS = [{"sku": f"s{n}", "price": n} for n in range(12)]


def test_explored_marks_even_draws_and_a_small_propensity_another_item() -> None:
    """Fails when slots drawn from the pool are marked, or a propensity below 1 − share may be the policy's own."""
    exploration = Exploration(SHARE, pool=4, anywhere=0.3)
    shop = Recommender(ITEMS, "sku", slate_size=2, policy="linucb", exploration=exploration)
    unmarked = outside = 0
    for _ in range(VISITS):
        choice = shop.recommend()
        assert choice.design is not None
        assert choice.propensities is not None
        base, pool = list(choice.design.base), list(choice.design.pool)
        for slot, (item, chance) in enumerate(zip(choice.items, choice.propensities, strict=True)):
            own = next(each for each in base if each not in choice.items[:slot])
            assert (chance >= 1 - SHARE) == (item == own)
            assert item == own or chance <= SHARE / 2
            unmarked += item != own and item in pool and not choice.explored[slot]
            outside += item not in pool
            assert item in pool or choice.explored[slot]
    assert unmarked > VISITS * 2 * SHARE * 0.7 / 4  # of those drawn from the pool, at least every other one is not own
    assert outside > 0


def test_policies_that_draw_by_themselves_mark_nothing() -> None:
    """Fails when the page's sentence about `uniform` is no longer true."""
    choice = Recommender(ITEMS, "sku", slate_size=2, policy="uniform").recommend()
    assert choice.explored == [False, False]
    assert choice.propensities == [1 / 12, 1 / 11]
