"""Configuration records: named entries, values read as their type says, and the way back from JSON."""

from __future__ import annotations

import json
import math
import types
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from neuclust import configuration
from neuclust.configuration import AT_LEAST_ONE, POSITIVE, check_ranges, from_mapping, keys, resolve, with_setting
from neuclust.errors import ConfigError, RenamedWarning, plain_warnings
from neuclust.models.arm_model import NetworkConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.registry import POLICIES
from neuclust.slates.clustering import ClusteringConfig


@dataclass(frozen=True)
class Inner:
    rate: float | None = 0.5
    kind: Literal["plain", "fancy"] = "plain"
    size: int = 3


@dataclass(frozen=True)
class Outer:
    left: Inner = field(default_factory=Inner)
    right: Inner = field(default_factory=lambda: Inner(size=4))
    deep: bool = False
    name: str = "x"
    extra: Inner | None = None


def test_keys_are_dotted_names() -> None:
    assert keys(Outer()) == [
        "left.rate", "left.kind", "left.size", "right.rate", "right.kind", "right.size", "deep", "name", "extra"
    ]  # fmt: skip
    assert "extra.size" in keys(Outer(extra=Inner()))


def test_an_ending_that_only_one_entry_has_is_enough() -> None:
    assert resolve(Outer(), "deep") == "deep"
    assert resolve(Outer(), "right.size") == "right.size"
    with pytest.raises(ConfigError, match=r"left\.size, right\.size"):
        resolve(Outer(), "size")


def test_an_unknown_name_is_refused_with_the_closest() -> None:
    with pytest.raises(ConfigError, match=r"^left\.siz: .*did you mean .*left\.size"):
        resolve(Outer(), "left.siz")
    with pytest.raises(ConfigError, match=r"known: left\.rate"):
        resolve(Outer(), "zzzzzz")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("left.rate", "0.25", 0.25),
        ("left.rate", "1e-3", 0.001),
        ("left.rate", "none", None),
        ("left.rate", "auto", None),
        ("left.kind", "fancy", "fancy"),
        ("left.size", "-7", -7),
        ("deep", "true", True),
        ("deep", "No", False),
        ("deep", "1", True),
        ("name", "none", "none"),
    ],
)
def test_text_is_read_as_the_type_says(name: str, text: str, value: object) -> None:
    before = Outer()
    changed: Any = with_setting(before, name, text)
    for part in name.split("."):
        changed = getattr(changed, part)
    assert changed == value
    assert type(changed) is type(value)
    assert before == Outer()


def test_only_the_named_entry_changes() -> None:
    assert with_setting(Outer(), "right.size", "9") == replace(Outer(), right=Inner(size=9))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("left.rate", "fast", "expected a number, got 'fast'"),
        ("left.size", "2.5", "expected a whole number, got '2.5'"),
        ("left.kind", "odd", "expected one of plain, fancy, got 'odd'"),
        ("deep", "maybe", "expected true or false, got 'maybe'"),
        ("left.size", "none", "expected a whole number"),
        ("extra", "3", "group of settings"),
    ],
)
def test_text_that_does_not_fit_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        with_setting(Outer(), name, text)


@pytest.mark.parametrize("config", [Outer(), Outer(extra=Inner(rate=None)), Outer(left=Inner(kind="fancy"))])
def test_a_record_comes_back_from_json(config: Outer) -> None:
    assert from_mapping(Outer, json.loads(json.dumps(asdict(config)))) == config


def test_entries_that_are_not_there_take_their_default() -> None:
    assert from_mapping(Outer, {"left": {"size": 8}}) == Outer(left=Inner(size=8))


def test_unknown_entries_are_refused() -> None:
    with pytest.raises(ConfigError, match="Inner: unknown entries volume"):
        from_mapping(Outer, {"left": {"volume": 11}})


PRESETS = [(name, preset) for name, spec in POLICIES.items() for preset in spec.presets]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_every_preset_comes_back_from_json_as_it_was(name: str, preset: str) -> None:
    config = POLICIES[name].presets[preset]
    assert from_mapping(type(config), json.loads(json.dumps(asdict(config)))) == config


def choices(config: Any) -> list[tuple[Any, str]]:
    """Every record inside a configuration with each of its entries that is one of a few words."""
    found = []
    hints = get_type_hints(type(config))
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            found += choices(value)
        elif get_origin(hints[entry.name]) is Literal and isinstance(get_args(hints[entry.name])[0], str):
            found.append((config, entry.name))
    return found


CHOICES = {
    f"{type(record).__name__}.{entry}": (record, entry)
    for name in POLICIES
    for record, entry in choices(POLICIES[name].presets["default"])
}


@pytest.mark.parametrize("where", list(CHOICES))
def test_a_word_that_is_no_choice_is_refused_and_never_taken_for_another(where: str) -> None:
    """Without this EncoderConfig("lfit") would lift and ScheduleConfig("cnstant") would be Eq. 8."""
    record, entry = CHOICES[where]
    with pytest.raises(ConfigError, match=entry):
        replace(record, **{entry: "no such word"})


# --- entries of the wrong kind ----------------------------------------------------------------------------------

WRONG: dict[type, list[Any]] = {
    int: [1.5, "3", True, None, 2**60, []],
    float: [math.nan, math.inf, -math.inf, "0.5", True, 10**400, []],
    bool: ["no", 1, 0.0],
    str: [3, ["linear"]],
}


def every_entry() -> list[tuple[str, str, Any, type]]:
    """Every number, word and switch of every policy: policy, dotted name, configuration and kind."""
    found = []
    for name, spec in POLICIES.items():
        config = spec.presets["default"]
        for key in keys(config):
            *path, last = key.split(".")
            group = config
            for step in path:
                group = getattr(group, step)
            hint = get_type_hints(type(group))[last]
            options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
            kind = next((option for option in options if option in WRONG), None)
            if kind is not None:
                found.append((name, key, config, kind))
    return found


def changed(config: Any, key: str, value: Any) -> Any:
    head, _, rest = key.partition(".")
    return replace(config, **{head: changed(getattr(config, head), rest, value) if rest else value})


def test_no_setting_of_any_policy_takes_a_value_of_the_wrong_kind() -> None:
    """Neither when it is given directly nor when it comes from a save."""
    entries = every_entry()
    assert len(entries) > 300
    for name, key, config, kind in entries:
        for value in WRONG[kind]:
            if value is None:
                continue  # many numbers may be left to the policy
            if isinstance(value, float) and kind is float:
                with pytest.raises(ConfigError):
                    changed(config, key, value)
            saved = asdict(config)
            *path, last = key.split(".")
            group = saved
            for step in path:
                group = group[step]
            group[last] = value
            with pytest.raises(ConfigError, match=rf"\.{last}: expected"):
                from_mapping(type(config), saved)
            assert name


def test_a_group_that_is_none_is_refused() -> None:
    wrong: list[Any] = [None, [], "default", 3]
    for value in wrong:
        with pytest.raises(ConfigError, match="expected a group of settings"):
            from_mapping(Outer, value)
    with pytest.raises(ConfigError, match=r"Outer\.left: expected a group of settings, got \[\]"):
        from_mapping(Outer, {"left": []})


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("neural-linear", "net.adam.rate", 2.0),
        ("neuclust", "arms.training.step_share", 0.0),
        ("neuclust", "arms.training.loss_factor", -1.0),
        ("neuclust", "arms.schedule.noise", -0.1),
        ("neuclust", "arms.schedule.c_gamma_2", -1.0),
        ("neuclust", "clustering.seed", -1),
        ("neuclust", "clustering.seed", 2**32),
        ("auto", "ensemble.options.net.decay", -1.0),
    ],
)
def test_numbers_outside_their_range_are_refused(name: str, setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=setting.rsplit(".", 1)[-1]):
        changed(POLICIES[name].presets["default"], setting, value)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (NetworkConfig, {"width": "20"}),
        (NetworkConfig, {"width": None}),
        (ConfidenceConfig, {"ridge": "1"}),
        (ConfidenceConfig, {"ridge": np.float32("inf")}),
        (ConfidenceConfig, {"ridge": 10**400}),
        (ClusteringConfig, {"seed": "x"}),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_sentence(kind: Any, change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(ConfigError, match=f"{kind.__name__}.{name}: expected "):
        kind(**change)


# --- ranges -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranged:
    ridge: float = 1.0
    width: int = 1
    dropout: float | None = 0.0
    flat: float = 1.0

    def __post_init__(self) -> None:
        check_ranges(self, ridge=POSITIVE, width=AT_LEAST_ONE, dropout=(0, 0.5), flat=(POSITIVE[0], 1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ridge": 0.0}, "Ranged.ridge: expected a number above 0, got 0.0"),
        ({"ridge": -1e-300}, "Ranged.ridge: expected a number above 0"),
        ({"width": 0}, "Ranged.width: expected a number of at least 1, got 0"),
        ({"dropout": 0.6}, "Ranged.dropout: expected a number from 0 to 0.5, got 0.6"),
        ({"dropout": -0.1}, "Ranged.dropout: expected a number from 0 to 0.5, got -0.1"),
        ({"flat": 0.0}, "Ranged.flat: expected a number above 0 to 1, got 0.0"),
        ({"ridge": "1"}, "Ranged.ridge: expected a finite number, got '1'"),
    ],
)
def test_a_number_outside_its_range_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{said}"):
        Ranged(**change)


def test_the_ends_of_a_range_belong_to_it_and_none_is_no_number() -> None:
    assert Ranged(ridge=math.ulp(0.0), width=1, dropout=0.5).dropout == 0.5
    assert Ranged(dropout=None).dropout is None


# --- earlier names ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moved:
    RENAMED: ClassVar[Mapping[str, str]] = {"speed": "rate"}
    rate: float = 0.5
    size: int = 3


@dataclass(frozen=True)
class Whole:
    RENAMED: ClassVar[Mapping[str, str]] = {"team": "ensemble", "worth": "ensemble.size", "other.deep": "depth"}
    ensemble: Moved = field(default_factory=Moved)
    other: Inner = field(default_factory=Inner)
    depth: int = 1


@pytest.fixture
def warned_afresh() -> None:
    """Each warning is given once per process, in other tests too."""
    configuration._warn_renamed.cache_clear()


@pytest.mark.usefixtures("warned_afresh")
@pytest.mark.parametrize(
    ("name", "text", "config"),
    [
        ("ensemble.speed", "2", Whole(Moved(rate=2.0))),
        ("speed", "2", Whole(Moved(rate=2.0))),
        ("team.rate", "2", Whole(Moved(rate=2.0))),
        ("team.speed", "2", Whole(Moved(rate=2.0))),
        ("worth", "2", Whole(Moved(size=2))),
        ("other.deep", "2", Whole(depth=2)),
    ],
)
def test_a_setting_is_found_under_its_earlier_name(name: str, text: str, config: Whole) -> None:
    with pytest.warns(RenamedWarning, match=f"{name} is now called .*; the earlier name is accepted until 0.3"):
        assert with_setting(Whole(), name, text) == config


@pytest.mark.usefixtures("warned_afresh")
@pytest.mark.parametrize(
    ("saved", "config"),
    [
        ({"ensemble": {"speed": 2.0}}, Whole(Moved(rate=2.0))),
        ({"team": {"speed": 2.0, "size": 5}}, Whole(Moved(2.0, 5))),
        ({"worth": 5, "ensemble": {"rate": 2.0}}, Whole(Moved(2.0, 5))),
        ({"other": {"deep": 4}}, Whole(depth=4)),
        ({"other": {"deep": 4, "size": 9}}, Whole(depth=4, other=Inner(size=9))),
    ],
)
def test_a_save_is_read_under_earlier_names(saved: dict[str, Any], config: Whole) -> None:
    with pytest.warns(RenamedWarning):
        assert from_mapping(Whole, saved) == config


@pytest.mark.usefixtures("warned_afresh")
def test_an_earlier_name_is_mentioned_once_and_the_present_one_never() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(3):
            with_setting(Whole(), "worth", "2")
            with_setting(Whole(), "ensemble.size", "2")
            from_mapping(Whole, asdict(Whole()))
    assert [str(one.message) for one in found] == [
        "the setting worth is now called ensemble.size; the earlier name is accepted until 0.3"
    ]


@pytest.mark.usefixtures("warned_afresh")
def test_the_warning_reaches_people_as_one_sentence() -> None:
    said: list[str] = []
    with plain_warnings(said.append):
        with_setting(Whole(), "worth", "2")
    assert said == ["the setting worth is now called ensemble.size; the earlier name is accepted until 0.3"]


def test_an_error_about_a_setting_names_its_group() -> None:
    with pytest.raises(ConfigError) as caught:
        with_setting(Outer(), "left.size", "many")
    assert (caught.value.field, caught.value.group) == ("left.size", "settings")
    assert str(caught.value) == "left.size: expected a whole number, got 'many'"
