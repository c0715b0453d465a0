"""Every problem by a name of Gymnasium: `neuclust/NAME-v0`."""

import gymnasium

from neuclust.environments.catalogue import environments

NAMESPACE, VERSION = "neuclust", "v0"
ENTRY = "neuclust.doors.gym.slate_env:to_gymnasium"


def gymnasium_id(name: str) -> str:
    """The id a problem is registered under."""
    return f"{NAMESPACE}/{name}-{VERSION}"


def register_all() -> None:
    """Register the problems neuclust knows now, with what was registered from outside; again, it adds the new ones."""
    for name in environments():
        if gymnasium_id(name) not in gymnasium.registry:
            gymnasium.register(gymnasium_id(name), entry_point=ENTRY, kwargs={"problem": name})
