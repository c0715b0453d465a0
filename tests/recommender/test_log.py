"""The log of a recommender: what it holds, that values survive, and what happens to torn, foreign and full files."""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust import Choice, Exploration, Recommender
from neuclust.errors import ConfigError, DataError, LogWarning, StateError
from neuclust.recommender.log.events import EventLog
from neuclust.recommender.log.history import read_events, read_history
from neuclust.recommender.tables.values import plain

ITEMS: list[dict[str, Any]] = [{"sku": f"s{at}", "price": float(at), "kind": "ab"[at % 2]} for at in range(6)]
USERS: list[dict[str, Any]] = [{"user": "ann", "age": 30}, {"user": 7, "age": 50}]


def make(log: Path | str | None, **options: Any) -> Recommender:
    chosen = {"policy": "linucb", "slate_size": 2, "clock": lambda: 10.0, **options}
    return Recommender(ITEMS, "sku", users=USERS, user_id="user", log=log, **chosen)


def events(path: Path, kind: str = "") -> list[dict[str, Any]]:
    return [event for _, event in read_events(path) if kind in ("", event["event"])]


def test_the_log_has_every_event_with_its_request(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    shop = make(path)
    choice = shop.recommend(
        "ann", context={"hour": 14}, user_features={"mood": "good"}, eligible=["s0", "s1", "s5"], exclude=["s1"],
        at_most={"kind": 1}, request_id="r1",
    )  # fmt: skip
    numbers: dict[str, Any] = {"shown": np.int64(2), "feedback_id": np.int64(5)}
    shop.feedback(choice.id, {choice.items[0]: True}, partial=True, **numbers)
    shop.feedback(choice.id, {}, shown={choice.items[0]}, slate=1.0)
    shop.add_items([{"sku": "new", "price": 1.0, "made": date(2024, 5, 31)}])
    shop.add_users([{"user": "bob", "age": None}])
    shop.remove_items(["s0"])
    kinds = [event["event"] for event in events(path)]
    expected = ["start", *["items"] * 6, *["users"] * 2, "decision", "feedback", "feedback", "learned"]
    assert kinds == [*expected, "items", "users", "removed"]
    start = events(path)[0]
    assert (start["format"], start["item_id"], start["user_id"], start["slate_size"]) == (1, "sku", "user", 2)
    assert start["settings"]["policy"] == "linucb"
    assert start["settings"]["feedback"]["window"] == 3600.0
    (decided,) = events(path, "decision")
    assert (decided["id"], decided["items"], decided["time"]) == (choice.id, choice.items, 10.0)
    assert (decided["user"], decided["context"], decided["user_features"]) == ("ann", {"hour": 14}, {"mood": "good"})
    assert (decided["eligible"], decided["exclude"]) == (["s0", "s1", "s5"], ["s1"])
    assert (decided["at_most"], decided["request_id"], decided["t"]) == ({"kind": 1}, "r1", 1)
    assert (decided["propensities"], decided["means"]) == (choice.propensities, choice.means)
    assert (decided["bonuses"], decided["version"]) == (choice.bonuses, 1)
    assert (decided["run"], decided["model"], decided["sizes"]) == (start["run"], 0, [2, 1])
    assert choice.id.startswith(start["run"])
    first, second = events(path, "feedback")
    assert (first["items"], first["shown"], first["feedback_id"]) == ([[choice.items[0], 1.0]], 2, 5)
    assert (first["status"], first["partial"]) == ("open", True)
    assert (second["status"], second["shown"], second["slate"]) == ("learned", [choice.items[0]], 1.0)
    (learned,) = events(path, "learned")
    assert (learned["decision"], learned["rewards"], learned["revised"]) == (choice.id, [1.0, 0.0], False)
    assert events(path)[-3]["values"]["made"] == {"date": "2024-05-31"}
    assert events(path)[-1]["ids"] == ["s0"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"policy": "linucb"}, "deterministic"),
        ({"policy": "linucb", "exploration": Exploration(share=0.5, pool=3, anywhere=0.5)}, "sequential"),
        ({"policy": "linucb", "exploration": 0.0}, "deterministic"),
        ({"policy": "uniform"}, "uniform"),
        ({"policy": "epsilon-greedy", "settings": {"exploration": 0.5}}, "one-coin"),
    ],
)
def test_the_design_of_the_draw_is_logged_in_item_ids(tmp_path: Path, options: dict[str, Any], kind: str) -> None:
    """Fails when a design lacks what its propensities are computed from, or has more than it needs."""
    make_path = tmp_path / "shop.jsonl"
    make(make_path, **options).recommend("ann", eligible=["s5", "s4", "s3", "s2"], at_most={"kind": 1})
    (decided,) = events(make_path, "decision")
    design = decided["design"]
    assert (design["kind"], decided["sizes"]) == (kind, [4, 2])
    needs = {"sequential": {"base", "share", "pool", "anywhere"}, "one-coin": {"base", "share"}}.get(kind, set())
    assert set(design) == {"kind", *needs}
    for name, count in (("base", 2), ("pool", 3)):
        if name in needs:
            assert len(design[name]) == count
            assert set(design[name]) <= {"s5", "s4", "s3", "s2"}
    if kind == "sequential":
        assert (design["share"], design["anywhere"]) == (0.5, 0.5)


clocks = st.datetimes(timezones=st.sampled_from([None, UTC])).map(lambda moment: moment.replace(fold=0))
moments = clocks | st.dates()
texts = st.text(max_size=30) | st.sampled_from(["😀" * 50, "x" * 20_000, "\u2028", '"\\', "null", ""])
vectors = st.lists(st.floats(-1e50, 1e50), max_size=5)
cells = st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(-1e50, 1e50) | texts | moments
values = cells | vectors | st.lists(texts, max_size=4)


@settings(max_examples=60, deadline=None)
@given(values, values, texts.filter(lambda text: 0 < len(text) <= 1000) | st.integers(-(10**30), 10**30))
def test_values_and_ids_survive_the_round_trip(tmp_path_factory: Any, own: Any, asked: Any, id: str | int) -> None:
    path = tmp_path_factory.mktemp("log") / "shop.jsonl"
    items = [{"sku": id, "own": own}, {"sku": str(id) + "!", "own": None}]
    shop = Recommender(items, "sku", slate_size=1, policy="popular", log=path)
    choice = shop.recommend({"asked": asked}, eligible=[id], context={"hour": asked})
    past = read_history(path).decisions[choice.id]
    assert past.items == (id,)
    assert type(past.items[0]) is type(id)
    for found, given_ in ((past.rows[0].get("own"), own), (past.asked.get("asked"), asked)):
        assert found == plain(given_)
        assert type(found) is type(plain(given_))
        assert repr(found) == repr(plain(given_))
    shop.log.close()


def test_choices_of_earlier_versions_and_strange_designs() -> None:
    """Fails when a choice saved before designs were told is refused, or a damaged design is taken."""
    shop = make(None, exploration=0.5)
    shop.recommend("ann")
    saved = shop.reader().recommend("ann", at_most={"kind": 1}).to_json()
    whole = Choice.from_json(json.dumps(saved))
    assert whole.design is not None
    assert (whole.design.kind, whole.design.sizes, len(whole.design.base)) == ("sequential", (6, 3), 2)
    old = Choice.from_json({name: value for name, value in saved.items() if name not in ("model", "design")})
    assert (old.design, old.model, old.items) == (None, 0, whole.items)
    for design in (3, {}, {"kind": "x"}, {**saved["design"], "share": 2}, {**saved["design"], "pool": [[1]]}):
        with pytest.raises(DataError, match="design: expected"):
            Choice.from_json({**saved, "design": design})


# --- continued logs -------------------------------------------------------------------------------------------


def played(path: Path) -> Recommender:
    shop = make(path)
    for _ in range(3):
        choice = shop.recommend("ann", context={"note": "émoji 😀"})
        shop.feedback(choice.id, {choice.items[0]: 1})
    return shop


def test_a_torn_last_line_is_cut_off_wherever_it_was_torn(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    played(whole).log.close()
    content = whole.read_bytes()
    lines = content.count(b"\n")
    for size in [*range(0, 40), *range(len(content) - 700, len(content) + 1, 7)]:
        path = tmp_path / "torn.jsonl"
        path.write_bytes(content[:size])
        complete = content[:size].count(b"\n")
        assert len(events(path)) == complete
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shop = make(path)
        torn = size > 0 and content[size - 1 : size] != b"\n"
        assert [warning.category for warning in caught] == [LogWarning] * torn
        assert path.read_bytes().startswith(content[: content[:size].rfind(b"\n") + 1])
        assert len(events(path)) == complete + 1 + len(ITEMS) + len(USERS)
        read_history(path)
        shop.log.close()
    assert lines == len(events(whole))


def test_reading_passes_over_a_line_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    played(path)
    before = len(read_history(path).learned)
    with open(path, "ab") as file:
        file.write(b'{"event":"learned","deci')
    assert len(read_history(path).learned) == before == 3


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b"[]\n", b'{"event":3}\n', b'{"event":"items"}\n', b'{"event":"removed","ids":["?"]}\n',
             b'{"event":"decision","id":"x","items":[["s0"]]}\n', b"\xff\xfe\n", b"\n", b"[" * 100_000 + b"\n",
             b'{"event":"start","format":"2"}\n', b'{"event":"start","format":2}\n'],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "shop.jsonl"
    shop = played(path)
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*content[:-1], line, content[-1]]))
    with pytest.raises(StateError, match=f"line {len(content)}: expected"):
        read_history(path)
    before = shop.schema, shop.learner
    with pytest.raises(StateError, match=f"line {len(content)}"):
        shop.refit()
    assert (shop.schema, shop.learner) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"sku,price\ns0,1\n", "expected the log of a recommender"),
        (b"sku,price", "expected the log of a recommender"),
        (b'{"event":"start"}\n', "expected the log of a recommender"),
        (b'{"event":"items"}\n', "expected the log of a recommender"),
        (b'{"event":"start","format":2}\n', "expected a log of format 1"),
        (b'{"event":"start","format":1,"item_id":"id"}\n', "item_id='sku'.*item_id='id'"),
        (b'{"event":"start","format":1,"item_id":"sku","user_id":"user","slate_size":3}\n', "slate_size=2"),
        (b'{"event":"start","format":1,"item_id":"sku","user_id":"user","slate_size":3}\n{"ev', "slate_size=2"),
    ],
)
def test_a_file_of_something_else_is_refused_and_unchanged(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        make(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("log", [3, "", b"x", "a\0b"])
def test_what_is_no_path_is_refused(log: Any) -> None:
    with pytest.raises(ConfigError, match="log: expected a path"):
        make(log)


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a folder"):
        make(tmp_path)
    with pytest.raises(ConfigError, match="does not exist"):
        make(tmp_path / "none" / "shop.jsonl")


# --- one writer -----------------------------------------------------------------------------------------------

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_log_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "shop.jsonl"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(ConfigError, match="another process writes"):
        make(path)
    other.communicate("")
    make(path).recommend("ann")


def test_a_newer_recommender_of_the_process_takes_the_log_over(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    older, newer = make(path), make(path)
    choice = newer.recommend("ann")
    counts = older.decisions.counts
    with pytest.raises(StateError, match="newer recommender"):
        older.recommend("ann")
    with pytest.raises(StateError, match="newer recommender"):
        older.add_items([{"sku": "x"}])
    assert older.decisions.counts == counts
    assert "x" not in older.stock.catalogue.ids()
    assert [event["id"] for event in events(path, "decision")] == [choice.id]


# --- full disks -----------------------------------------------------------------------------------------------

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_disk_refuses_the_next_call_and_loses_no_answer() -> None:
    with pytest.raises(ConfigError, match="no room is left"), pytest.warns(LogWarning):
        make(FULL)
    shop = make(None)
    first = shop.recommend("ann")
    shop.log = EventLog.opened(FULL)
    with pytest.warns(LogWarning, match=r"no room is left.*kept"):
        answer = shop.feedback(first.id, {first.items[0]: 1})
    assert answer.status == "learned"
    assert shop.decisions.counts.learned == 1
    before = shop.decisions.counts, shop.ids.last, len(shop.stock.catalogue)
    calls = (
        lambda: shop.recommend("ann"),
        lambda: shop.recommend_many([{"user": "ann"}]),
        lambda: shop.feedback(first.id, {}),
        lambda: shop.expire(),
        lambda: shop.add_items([{"sku": "x"}]),
        lambda: shop.remove_items(["s0"]),
        lambda: shop.add_users([{"user": "x"}]),
        lambda: shop.fit_log([{"decision": 1, "item": "s0", "reward": 1}]),
        lambda: shop.refit(),
    )
    for call in calls:
        with pytest.raises(StateError, match=r"no room is left.*nothing and can be repeated"):
            call()
    assert (shop.decisions.counts, shop.ids.last, len(shop.stock.catalogue)) == before


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 100])
def test_when_there_is_room_again_the_log_goes_on_where_it_stopped(tmp_path: Path, room: int) -> None:
    path = tmp_path / "shop.jsonl"
    shop = make(path)
    size = path.stat().st_size
    with warnings.catch_warnings(), files_of_at_most(size + room):
        warnings.simplefilter("ignore")
        choice = shop.recommend("ann")
        with pytest.raises(StateError, match="too large"):
            shop.feedback(choice.id, {})
    assert path.stat().st_size == size + room
    shop.feedback(choice.id, {choice.items[0]: 1})
    (past,) = read_history(path).learned
    assert (past.id, past.items) == (choice.id, tuple(choice.items))
    for line in path.read_text().splitlines():
        json.loads(line)


def test_without_a_log_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = make(None)
    choice = shop.recommend("ann")
    shop.feedback(choice.id, {})
    shop.add_items([{"sku": "x"}])
    assert shop.log.path is None
    assert not list(tmp_path.iterdir())


def test_datetimes_keep_their_zone(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    when = datetime(2024, 5, 31, 12, 0, 0, 5, UTC)
    choice = make(path).recommend("ann", context={"at": when, "day": date(2024, 5, 31), "naive": datetime(2024, 1, 1)})
    asked = read_history(path).decisions[choice.id].asked
    assert asked == {"at": when, "day": date(2024, 5, 31), "naive": datetime(2024, 1, 1)}
    assert type(asked["day"]) is date
