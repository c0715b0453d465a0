"""The service from Python: `Client("http://127.0.0.1:8000").recommender("shop").recommend("u17")`."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, Unpack

from neuclust.client.arguments import Told
from neuclust.client.bodies import as_body, as_object
from neuclust.client.problems import Unavailable
from neuclust.client.recommender import RemoteRecommender
from neuclust.client.retrying import Retry, Transport
from neuclust.errors import ConfigError
from neuclust.extras import extra

with extra("neuclust.client"):
    import httpx


@dataclass(frozen=True, slots=True, init=False)
class Client:
    """A service at an address, with an API key where it asks for one; any number of threads may use it.

    `timeout` seconds for each attempt; `retries` attempts after the first, or a `Retry`. Ids of requests and feedback
    are made once per call, so that a repeated attempt counts once.
    """

    transport: Transport

    def __init__(
        self,
        address: str,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int | Retry = Retry(),  # noqa: B008
    ) -> None:
        if not address.startswith(("http://", "https://")):
            raise ConfigError(
                f"expected an address such as http://127.0.0.1:8000, got {address!r:.200}", field="address"
            )
        headers = {"User-Agent": "neuclust-client"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=20)
        http = httpx.Client(base_url=address.rstrip("/"), headers=headers, timeout=timeout, limits=limits)
        retry = retries if isinstance(retries, Retry) else Retry(times=retries)
        object.__setattr__(self, "transport", Transport(http, retry))

    def create(self, name: str, **told: Unpack[Told]) -> RemoteRecommender:
        """A recommender of this name and configuration; `slate_size` must be given."""
        made = self.recommender(name)
        self.transport.call("PUT", made.path, as_body(told))
        return made

    def recommender(self, name: str) -> RemoteRecommender:
        """The recommender of a name; the service is not asked whether there is one."""
        return RemoteRecommender(self.transport, name)

    def recommenders(self) -> list[dict[str, Any]]:
        """All recommenders that the key may see."""
        return list(as_object(self.transport.call("GET", "/v1/recommenders").body)["recommenders"])

    def ready(self) -> bool:
        """Whether the service answers and can write; asked once."""
        try:
            Transport(self.transport.http, Retry(times=0)).call("GET", "/health/ready")
        except Unavailable:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self.transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
