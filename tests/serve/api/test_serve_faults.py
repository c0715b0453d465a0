"""Refusals of bodies that do not fit: in words, with what was probably meant, and all faults at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_service import LocalService, local_service


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    with local_service(Path(tmp_path_factory.mktemp("faults"))) as found:
        found.make("shop", policy="linucb")
        yield found


@pytest.mark.parametrize(("kind", "got"), [(None, "without a Content-Type"), ("text/plain", "of type text/plain")])
@pytest.mark.parametrize(("method", "path"), [("POST", "/recommendations"), ("PUT", "/items/a"), ("PATCH", "")])
def test_a_forgotten_content_type_is_named(
    local: LocalService, kind: str | None, got: str, method: str, path: str
) -> None:
    """Fails when a body that is JSON is refused without saying which header it lacks."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = local.client.request(method, f"/v1/recommenders/shop{path}", content=b'{"user": "u1"}', headers=headers)
    told = answer.json()
    assert (answer.status_code, told["field"]) == (422, "body")
    assert told["detail"] == f"body: expected JSON, got one {got}; send it with Content-Type: application/json"


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "words"),
    [
        ("PUT", "new", {"slate_size": 3, "polcy": "auto"}, "polcy", "did you mean policy?"),
        ("PUT", "new", {"slate_size": 3, "exploration": {"shar": 0.1}}, "exploration.Exploring.shar", "mean share?"),
        ("POST", "shop/recommendations", {"usr": "u1"}, "usr", "did you mean user?"),
        ("POST", "shop/recommendations:batch", {"requests": [{}, {"contxt": {}}]}, "requests.1.contxt", "context?"),
        ("PUT", "new", {}, "slate_size", "expected a value, got none; add it to the body"),
        ("PUT", "new", None, "body", "expected one, got none; send it as JSON"),
        ("PUT", "new", {"slate_size": 0}, "slate_size", "expected greater than or equal to 1, got 0"),
        ("PATCH", "shop", {"policy": "linucb"}, "policy", "policy is fixed when a recommender is made"),
        ("PATCH", "shop", {"polici": "linucb"}, "polici", "expected no entry of this name"),
        ("GET", "Shop%20One", None, "name", "1 to 63 of a-z, 0-9, - and _, a letter or digit first, got 'Shop One'"),
    ],
)  # fmt: skip
def test_a_fault_is_told_in_words(
    local: LocalService, method: str, path: str, body: Any, field: str, words: str
) -> None:
    """Fails when a refusal has the words of a library, or not the name that was probably meant."""
    told = local.call(method, path, body, 422)
    faults = {each["field"]: each["detail"] for each in told["errors"]}
    assert words in faults[field]
    assert (told["field"], told["detail"].startswith(f"{told['field']}: ")) == (told["errors"][0]["field"], True)


def test_all_faults_are_listed(local: LocalService) -> None:
    """Fails when a body with three faults has to be sent three times to learn of them."""
    told = local.call("PUT", "new", {"slate_size": 0, "polcy": "auto", "window": -1}, 422)
    assert [each["field"] for each in told["errors"]] == ["window", "slate_size", "polcy"]
    assert told["detail"] == f"{told['errors'][0]['detail']} (and 2 more)"
    assert told["field"] == "window"
    assert "fixed" in local.call("PATCH", "shop", {"seed": 4}, 422)["detail"]
    (fault,) = local.call("PATCH", "shop", {"seed": 4}, 422)["errors"]
    assert "PUT a new recommender" in fault["detail"]
