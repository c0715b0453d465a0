"""Tables that an API process follows: cheap to follow, refusing what the fold refuses, with the fold's codes."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_service import begun, play

from neuclust.errors import ConfigError, DataError, SaveError, StateError
from neuclust.recommender.encoders.side import Side
from neuclust.recommender.tables.tables import Table
from neuclust.serve import events
from neuclust.serve.configuration import Configuration
from neuclust.serve.fold.blobs import ServedModel
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.tables import Tables
from neuclust.serve.store.contract import ITEMS, TABLE_KINDS


def test_one_more_item_is_encoded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an item that comes to 10,000 makes all of them be encoded again."""
    service, _ = begun()
    many: dict[str, Any] = {
        f"i{at}": {"price": float(at % 97), "category": "abc"[at % 3], "tags": ()} for at in range(10_000)
    }
    service.write(events.items_events(many))
    service.decide("u1", "first")
    service.write(events.items_events({"one": {"price": 5.0, "category": "a"}}))  # room is made for as many again
    encoded: list[int] = []
    whole = Side.encode

    def counted(side: Side, table: Table) -> Any:
        encoded.append(len(table))
        return whole(side, table)

    monkeypatch.setattr(Side, "encode", counted)
    buffer = service.tables.stock.catalogue.rows.buffer
    service.write(events.items_events({"new": {"price": 5.0, "category": "a"}}))
    assert encoded == [1]
    assert service.tables.stock.catalogue.rows.buffer is buffer
    assert "new" in service.tables.stock.catalogue.ids()


def test_scales_that_run_move_with_models() -> None:
    """Fails when items are encoded by another schema than the served model's, or a model's is not taken over."""
    service, log = begun()
    service.decide("u1", "first")
    fold = Fold.begin()
    service.write(events.items_events({f"n{at}": {"price": 900.0 + at, "category": "a"} for at in range(30)}))
    for row in log.rows:
        fold.apply(row)
    before = service.tables.stock.catalogue.profiles(service.tables.stock.catalogue.all_codes())
    service.refresh(fold.model())
    after = service.tables.stock.catalogue.profiles(service.tables.stock.catalogue.all_codes())
    assert not (before == after).all()
    ours = fold.shop.stock.catalogue
    assert (after == ours.profiles(ours.all_codes())).all()


def test_tables_and_fold_agree_on_ids_codes_and_refusals() -> None:
    """Fails when an API process and the learner give an item another code, or one refuses what the other takes."""
    service, log = begun()
    play(service, log, [(at * 5 % 19, at * 31 % 500) for at in range(80)])
    log.append(list(events.items_events({"odd": {"price": "not a number"}})))
    fold, tables = Fold.begin(), Tables.begin()
    for row in log.rows:
        told = fold.apply(row)
        if row.kind in TABLE_KINDS:
            assert (tables.apply(row) is not None) == (told is not None and told["status"] == "refused")
    assert tables.stock.catalogue.rows.codes == fold.shop.stock.catalogue.rows.codes
    assert tables.stock.catalogue.ids() == fold.shop.stock.catalogue.ids()
    assert "odd" not in tables.stock.catalogue.ids()
    begun_later = Tables.from_state(fold.state())
    assert begun_later.stock.catalogue.ids() == tables.stock.catalogue.ids()
    assert begun_later.configuration == tables.configuration


def test_what_would_be_refused_is_refused_before_it_is_written() -> None:
    """Fails when the checks that an API asks let something through that the log's readers refuse."""
    service, _ = begun()
    tables = service.tables
    service.decide("u1", "first")
    with pytest.raises(DataError, match="price"):
        tables.check_rows(ITEMS, {"rows": [{"id": "x", "values": {"price": "much"}}]})
    with pytest.raises(ConfigError, match=r"^policy: .*new recommender"):
        tables.check_configuration(Configuration.from_json({**tables.configuration.to_json(), "policy": "auto"}))
    tables.check_configuration(Configuration.from_json({**tables.configuration.to_json(), "window": 7.0}))
    empty = Tables.begin()
    with pytest.raises(StateError, match="configuration"):
        _ = empty.stock


def test_a_draft_has_no_model_and_other_bytes_are_refused() -> None:
    """Fails when a model of no schema is served, or a state is read as a model."""
    _, log = begun()
    fold = Fold.begin()
    for row in log.rows:
        fold.apply(row)
    assert ServedModel.from_bytes(fold.model()) is None
    with pytest.raises(SaveError, match="model"):
        ServedModel.from_bytes(fold.state())


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ({}, "slate_size"), ({"slate_size": 0}, "slate_size"), ({"slate_size": 3, "polcy": "auto"}, "polcy"),
        ({"slate_size": 3, "policy": "nobody"}, "policy"), ({"slate_size": 3, "window": -1}, "window"),
        ({"slate_size": 3, "exploration": 2}, "exploration"), ({"slate_size": 3, "reward": "function"}, "reward"),
        ({"slate_size": 3, "exploration": {"share": 0.1, "pol": 3}}, "exploration"),
        ({"slate_size": 3, "mode": "x"}, "mode"), ({"slate_size": 3, "holdout": {"share": 2}}, "holdout"),
        ({"slate_size": 3, "features": {"items": 3}}, "features"),
        ({"slate_size": 3, "reward_range": [1, 0]}, "reward_range"), ({"slate_size": 3, "max_age": 0}, "max_age"),
        ({"slate_size": 3, "features": {"items": {"a": {"kind": "x"}}}}, "features"),
        ({"slate_size": 3, "remember": 10**7}, "remember"), ({"slate_size": 3, "settings": {"no": 1}}, "settings"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(entries: dict[str, object], field: str) -> None:
    """Fails when a configuration that cannot work is accepted, or the refusal names another entry."""
    with pytest.raises(ConfigError) as caught:
        Configuration.from_json(entries)
    assert caught.value.field == field


def test_a_configuration_comes_back_from_its_json() -> None:
    """Fails when a configuration that was written is read as another one."""
    given = {
        "slate_size": 4, "exploration": {"share": 0.2, "pool": 9, "anywhere": 0.5}, "holdout": {"share": 0.5},
        "features": {"items": {"price": {"kind": "number", "low": 0, "high": 9}, "tag": "category"}},
        "retention_days": 30,
    }  # fmt: skip
    read = Configuration.from_json(given)
    assert Configuration.from_json(events.decode(events.config_event(read).payload)) == read
