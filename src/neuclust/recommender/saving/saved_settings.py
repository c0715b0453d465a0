"""The settings of a recommender as a save holds them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from neuclust.configuration import from_mapping
from neuclust.errors import ConfigError, StateError
from neuclust.recommender.feedback.decisions import FeedbackConfig
from neuclust.recommender.feedback.rewards import SlateValue
from neuclust.recommender.options import Settings, read_settings
from neuclust.recommender.tables.features import Features
from neuclust.slates.propensities import Exploration

ENTRIES = {"item_id", "user_id", "slate_size", "policy", "feedback", "reward"}
CHOICE = {"name", "settings", "seed", "exploration"}


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """All but the features, which may be long; of a reward its name."""
    chosen = settings.policy
    policy = {
        "name": chosen.name, "settings": None if chosen.settings is None else dict(chosen.settings),
        "seed": chosen.seed, "exploration": None if chosen.exploration is None else asdict(chosen.exploration),
    }  # fmt: skip
    sizes = {"item_id": settings.item_id, "user_id": settings.user_id, "slate_size": settings.slate_size}
    return {**sizes, "policy": policy, "feedback": asdict(settings.feedback), "reward": settings.reward.name}


def settings_of_save(saved: Any, features: Any, reward: SlateValue | None, transformers: Mapping[str, Any]) -> Settings:
    """What `settings_to_json` and `Features.to_json` wrote; a reward and transformers are given where they were."""
    _check(saved, ENTRIES, "settings")
    policy, feedback = saved["policy"], from_mapping(FeedbackConfig, saved["feedback"])
    _check(policy, CHOICE, "policy")
    if reward is not None and reward.name != saved["reward"]:
        wanted = f"expected {saved['reward']!r:.100}, as it was saved"
        raise StateError(f"reward: {wanted}, got {reward.name!r:.100}; give the same one or none")
    exploration = policy["exploration"]
    options: dict[str, Any] = {
        "policy": policy["name"], "settings": policy["settings"], "seed": policy["seed"],
        "exploration": None if exploration is None else from_mapping(Exploration, exploration),
        "features": Features.from_json(features, transformers),
        "reward": saved["reward"] if reward is None else reward, "reward_range": (feedback.low, feedback.high),
    }  # fmt: skip
    kept = {name: value for name, value in asdict(feedback).items() if name not in ("low", "high")}
    try:
        return read_settings(saved["item_id"], saved["user_id"], saved["slate_size"], {**options, **kept})
    except ConfigError as error:
        advice = "; a policy from outside is registered before its save is loaded" if error.field == "policy" else ""
        raise StateError(f"{error}{advice}") from None


def _check(saved: Any, names: set[str], what: str) -> None:
    if not isinstance(saved, dict) or set(saved) != names:
        raise StateError(f"saved {what}: expected {', '.join(sorted(names))}, got {saved!r:.200}; is it damaged?")
