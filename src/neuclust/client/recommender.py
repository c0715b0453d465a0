"""One recommender of a service, with the words of the front door."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from neuclust.client.answers import Accepted, Recommendation, Version
from neuclust.client.arguments import Asked, Came, Id, Told, Values
from neuclust.client.bodies import as_body, as_object, feedback_body, refusal, request_body, segment
from neuclust.client.problems import ServiceError
from neuclust.client.tables import RemoteTables

TOGETHER = 500  # entries of one batch


@dataclass(frozen=True, slots=True)
class RemoteRecommender(RemoteTables):
    """A recommender of the service; every call that changes something may be repeated and counts once."""

    def recommend(self, user: Id | None = None, **asked: Unpack[Asked]) -> Recommendation:
        """A slate for a user, or for somebody unknown; see `Asked` for the other parts of a request."""
        body = request_body({"user": user, **asked})
        told = as_object(self.transport.call("POST", f"{self.path}/recommendations", as_body(body)).body)
        return Recommendation.from_json(told, body["request_id"])

    def recommend_many(self, requests: Iterable[Values]) -> list[Recommendation | ServiceError]:
        """Answers in the order of the requests; where one is refused, its error stands in its place."""
        bodies = [request_body(each) for each in requests]
        results = self._batch("recommendations", "requests", bodies)
        return [
            refusal(told) or Recommendation.from_json(told, body["request_id"])
            for told, body in zip(results, bodies, strict=True)
        ]

    def feedback(self, decision_id: str, items: Mapping[Any, float], **came: Unpack[Came]) -> Accepted:
        """What came back for a decision: values by item; items that are not named count 0. Durable when it returns."""
        body = feedback_body({"decision_id": decision_id, "items": items, **came})
        reply = self.transport.call("POST", f"{self.path}/feedback", as_body(body))
        return Accepted(body["feedback_id"], bool(as_object(reply.body).get("duplicate")))

    def feedback_many(self, feedback: Iterable[Values]) -> list[Accepted | ServiceError]:
        """Many feedbacks, each with `decision_id`, `items` and the parts of `Came`; answers in their order."""
        bodies = [feedback_body(each) for each in feedback]
        results = self._batch("feedback", "feedback", bodies)
        return [
            refusal(told) or Accepted(body["feedback_id"], bool(told.get("duplicate")))
            for told, body in zip(results, bodies, strict=True)
        ]

    def decision(self, id: str) -> dict[str, Any]:
        """A decision with why each item was shown, its feedback and what was learned."""
        return self._get(f"decisions/{segment(id)}")

    def decisions(self, limit: int = 20) -> list[dict[str, Any]]:
        """The latest decisions, newest first."""
        return list(self._get("decisions", limit=limit)["decisions"])

    def log(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """The events of the log from a place on, as they are written in a recommender's log file."""
        for line in self.transport.lines(f"{self.path}/log", {"from": start}):
            if line.strip():
                yield as_object(line)

    def versions(self) -> list[Version]:
        """The published models, newest first."""
        return [Version.from_json(each) for each in self._get("versions")["versions"]]

    def promote(self, version: int | Literal["latest"]) -> None:
        """Serve this version from now on, or always the latest; learning goes on."""
        self.transport.call("POST", f"{self.path}/versions/{segment(version)}:promote")

    def erase(self, user: Id) -> bool:
        """Delete what is known of a user: row, decisions and feedback; False: it is logged and will be done soon."""
        body = self.transport.call("DELETE", f"{self.path}/users/{segment(user)}/history").body
        return bool(body and as_object(body).get("done"))

    def overview(self) -> dict[str, Any]:
        """What the page shows."""
        return self._get("overview")

    def configuration(self) -> dict[str, Any]:
        """The recommender as the service tells it."""
        return as_object(self.transport.call("GET", self.path).body)

    def change(self, **told: Unpack[Told]) -> dict[str, Any]:
        """Change parts of the configuration."""
        return as_object(self.transport.call("PATCH", self.path, as_body(told)).body)

    def delete(self) -> None:
        """Delete the recommender with its log and models."""
        self.transport.call("DELETE", self.path)

    def _batch(self, route: str, key: str, bodies: Sequence[Values]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for start in range(0, len(bodies), TOGETHER):
            part = {key: bodies[start : start + TOGETHER]}
            told = as_object(self.transport.call("POST", f"{self.path}/{route}:batch", as_body(part)).body)
            results += told["results"]
        return results
