"""Requests nobody thought of, made from the OpenAPI document: no 5xx, and no answer that it does not allow.

    python -m benchmarks.serve_schemathesis --cases 100000 --seconds 420 --json docs/records/serve_schemathesis.json

In pieces of some thousand cases, each with seeds and a service of its own, since requests leave recommenders behind.
The record is written after every piece; a record that is there is gone on with, and `--seconds` ends a run between two
pieces, so that many short runs make a long one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from benchmarks.serve_runs import wait_for
from benchmarks.tables import machine, markdown, write_record
from neuclust.client import Client, RemoteRecommender
from tools.own_service import OwnService

checks: Any = importlib.import_module("schemathesis.specs.openapi.checks")
server_errors: Any = importlib.import_module("schemathesis.checks")
CHECKS = [
    server_errors.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance,
]  # fmt: skip
ENDLESS = ("/v1/recommenders/{name}/stream",)  # an answer without an end
FOR_THE_POLICY = ("slate", "required", "at_most", "k")  # parts of a request that seldom fit what is there
NAME, USERS, ITEMS = "shop", 5, 30
PIECE = 5_000  # cases with one service
SECONDS = 60.0  # for one answer


@dataclass
class Told:
    """What pieces gave: how many there were, answers by status, and what did not hold."""

    pieces: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Told:
        return cls(record["pieces"], Counter({int(k): v for k, v in record["statuses"].items()}), record["faults"])

    def add(self, statuses: Counter[int], faults: Sequence[str]) -> None:
        self.pieces += 1
        self.statuses += statuses
        self.faults += faults

    @property
    def cases(self) -> int:
        return self.statuses.total()

    @property
    def refused(self) -> int:
        return sum(count for status, count in self.statuses.items() if 400 <= status < 500)


def prepare(address: str) -> RemoteRecommender:
    """A recommender with items, users, decisions and a model, so that requests get further than 404."""
    shop = Client(address, timeout=SECONDS).create(NAME, slate_size=3, policy="linucb")
    shop.put_items([{"id": f"i{at}", "price": at % 7, "kind": "abc"[at % 3]} for at in range(ITEMS)])
    shop.put_users([{"id": f"u{at}", "age": 20 + at} for at in range(USERS)])
    for at in range(USERS):
        answer = shop.recommend(f"u{at}")
        shop.feedback(answer.decision_id, {answer.items[0]: 1.0})

    def learned() -> bool:
        told = shop.configuration()
        return bool(told["learned_events"] == told["events"])

    wait_for(learned, 240.0)
    return shop


def operations(document: dict[str, Any]) -> list[Any]:
    """Every operation of an OpenAPI document that ends."""
    schema: Any = schemathesis.openapi.from_dict(document)
    found = [each.ok() for each in schema.get_all_operations()]
    return [each for each in found if each.path not in ENDLESS]


@dataclass(frozen=True)
class Known:
    """What is there, to be put into some of the requests: most that are made up are for nothing that is."""

    decision: str
    item: str

    @classmethod
    def of(cls, shop: RemoteRecommender) -> Known:
        shop.change(mode="live", window=3600.0)  # requests may have changed it
        answer = shop.recommend("u1")
        return cls(answer.decision_id, answer.items[0])

    def fill(self, case: Any, how: int) -> None:
        """Name what is there in the path, and in the body (`how` 2 and 3)."""
        path = case.path_parameters or {}
        if "name" in path:
            path["name"] = NAME
        if "id" in path:
            ids = {"/items/": "i1", "/users/": "u1", "/decisions/": self.decision}
            path["id"] = next((id for part, id in ids.items() if part in case.operation.path), path["id"])
        if how == 1 or not isinstance(case.body, dict):
            return
        for body in (case.body, *_entries(case.body)):
            if isinstance(body.get("decision_id"), str):
                body |= {"decision_id": self.decision, "items": {self.item: 1.0}}
            for name in FOR_THE_POLICY if "recommendations" in case.operation.path and how == 3 else ():
                body.pop(name, None)


def _entries(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a batch."""
    listed = [each for each in body.values() if isinstance(each, list)]
    return [entry for each in listed for entry in each if isinstance(entry, dict)]


@dataclass
class Attack:
    """Cases for the operations of one service."""

    address: str
    shop: RemoteRecommender
    document: dict[str, Any] = field(default_factory=dict)  # empty: the service's own
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def run(self, cases: int, piece: int) -> None:
        """So many cases over every operation, half of them what the document allows, half what it does not."""
        known = operations(self.document or httpx.get(f"{self.address}/openapi.json").json())
        each = -(-cases // (2 * len(known)))
        for at, operation in enumerate(known):
            count = each // 8 if operation.path.endswith("/history") else each  # each waits for the learner
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    self.one(operation, max(1, count), mode, 1_000 * piece + at)
                except Unsatisfiable:  # nothing of this route could be wrong
                    continue
                except (Exception, BaseExceptionGroup) as error:  # told with its case; other operations are tried, too
                    self.faults.append(f"{operation.label}, piece {piece}: {error!s:.2000}")

    def one(self, operation: Any, cases: int, mode: GenerationMode, key: int) -> None:
        """So many cases of a kind for one operation."""
        deletes = operation.method.upper() == "DELETE" and operation.path == "/v1/recommenders/{name}"
        there = Known.of(self.shop)

        @seeded(key)
        @settings(
            max_examples=cases, database=None, deadline=None, suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode), how=st.integers(0, 3))
        def send(case: Any, how: int) -> None:
            if deletes and case.path_parameters["name"] == NAME:
                case.path_parameters["name"] = "nobody"
            elif how and not deletes:
                there.fill(case, how)
            response = case.call(base_url=self.address, timeout=SECONDS)
            self.statuses[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        send()


def played(piece: int, cases: int) -> tuple[Counter[int], list[str]]:
    """Answers by status and faults of one piece, with a service of its own."""
    with tempfile.TemporaryDirectory(prefix="neuclust-cases-") as folder:
        service = OwnService(f"sqlite:{Path(folder) / 'shop.db'}", log=Path(folder) / "log")
        service.start()
        try:
            attack = Attack(service.address, prepare(service.address))
            attack.run(cases, piece)
            faults = attack.faults if service.ready() else [*attack.faults, f"piece {piece}: not ready afterwards"]
        finally:
            service.stop()
    return attack.statuses, faults


def measured(cases: int, seconds: float = float("inf"), record: Path | None = None) -> Told:
    """Pieces until there were so many cases, or the time is over; goes on from a record and keeps it."""
    told, begun = Told(), time.monotonic()
    if record is not None and record.exists():
        told = Told.of(json.loads(record.read_text(encoding="utf-8")))
    about = machine("schemathesis", "hypothesis", "fastapi")
    command = f"python -m benchmarks.serve_schemathesis --cases {cases}"
    while told.cases < cases and time.monotonic() - begun < seconds:
        told.add(*played(told.pieces, min(PIECE, cases)))
        figures = {**asdict(told), "cases": told.cases, "statuses": dict(sorted(told.statuses.items()))}
        write_record(record, {"command": command, "machine": about, "aim": cases, **figures})
        print(f"{told.cases:,} of {cases:,} cases, {len(told.faults)} faults", flush=True)
    return told


def main(arguments: Sequence[str] | None = None) -> None:
    """Send cases; exit code 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no piece after so many")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go, and are gone on with")
    options = parser.parse_args(arguments)
    told = measured(options.cases, options.seconds, options.json)
    row = [f"{told.cases:,}", f"{told.refused:,}", str(len(told.faults))]
    print(markdown(["cases", "refused", "faults"], [row], words=0))
    for sentence in told.faults:
        print(sentence, file=sys.stderr)
    if told.faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
