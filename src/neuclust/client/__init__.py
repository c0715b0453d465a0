"""A typed client of the service, `from neuclust.client import Client`; it needs httpx and no torch."""

from neuclust.client.answers import Accepted, Changes, Recommendation, Slot, Version
from neuclust.client.client import Client
from neuclust.client.problems import Conflict, NotAllowed, NotFound, Refused, ServiceError, Unavailable
from neuclust.client.recommender import RemoteRecommender
from neuclust.client.retrying import Retry

__all__ = [
    "Accepted", "Changes", "Client", "Conflict", "NotAllowed", "NotFound", "Recommendation", "Refused",
    "RemoteRecommender", "Retry", "ServiceError", "Slot", "Unavailable", "Version",
]  # fmt: skip
