"""What Prometheus is told: requests and their seconds, groups that were written, and how far learners are."""

import contextlib

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "neuclust_requests", "HTTP requests", ("route", "method", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "neuclust_request_seconds", "Seconds of HTTP requests", ("route",), buckets=SECONDS, registry=self.registry
        )
        self.waiting = Gauge("neuclust_waiting_requests", "Requests that wait for a slate", registry=self.registry)
        self.events = Gauge("neuclust_log_events", "Events in the log", ("recommender",), registry=self.registry)
        self.lag = Gauge(
            "neuclust_learner_lag_events", "Events the learner has not applied", ("recommender",),
            registry=self.registry,
        )  # fmt: skip
        self.version = Gauge(
            "neuclust_model_version", "The version that is served", ("recommender",), registry=self.registry
        )
        self.lessons = Gauge("neuclust_lessons", "Lessons that were learned", ("recommender",), registry=self.registry)
        self.stale = Gauge(
            "neuclust_model_stale", "1 where the model is older than its limit", ("recommender",),
            registry=self.registry,
        )  # fmt: skip

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def forget(self, name: str) -> None:
        """Drop a recommender that was deleted."""
        for each in (self.events, self.lag, self.version, self.lessons, self.stale):
            with contextlib.suppress(KeyError):  # it was never measured
                each.remove(name)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
