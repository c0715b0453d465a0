"""Which runs can share a batch: one problem, one shape of policy, numbers and seeds of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.run import RunLabel
from neuclust.models.fitting import TrainingConfig
from neuclust.policies.combinatorial_neural import CombinatorialNeuralConfig
from neuclust.policies.neuclust import NeUClustConfig

PolicyConfig = NeUClustConfig | CombinatorialNeuralConfig


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run: a configuration of NeUClust (offline) or CN-UCB, the environment it plays and its seed."""

    config: PolicyConfig
    environment: SlateEnvironment
    seed: int
    label: RunLabel


def batches_of(runs: Sequence[BatchRun]) -> list[list[int]]:
    """Indices of the runs of every batch: configurations that differ in numbers, environments that differ in coins."""
    found: list[list[int]] = []
    alike: dict[PolicyConfig, list[list[int]]] = {}  # batches by structure
    for place, run in enumerate(runs):
        check_supported(run.config)
        if not run.environment.is_plain:
            expected = "the device engine expects no features, a reward that counts arms and all feedback at once"
            raise ConfigError(f"{run.environment.name}: {expected}; run it without a device")
        candidates = alike.setdefault(structure_of(run.config), [])
        for batch in candidates:
            if run.environment.same_truth(runs[batch[0]].environment):
                batch.append(place)
                break
        else:
            candidates.append([place])
            found.append(candidates[-1])
    return found


def structure_of(config: PolicyConfig) -> PolicyConfig:
    """The configuration without the numbers that may differ inside a batch."""
    arms = config.arms
    confidence, schedule = replace(arms.confidence, ridge=1.0), replace(arms.schedule, gamma=1.0)
    training = training_shape(arms.training)
    config = replace(config, arms=replace(arms, confidence=confidence, schedule=schedule, training=training))
    if isinstance(config, NeUClustConfig):
        training = training_shape(config.slate.training)
        config = replace(config, slate=replace(config.slate, weight=1.0, training=training))
    return config


def training_shape(training: TrainingConfig) -> TrainingConfig:
    """The training without its numbers that may differ inside a batch."""
    return replace(training, step=None if training.step is None else 1.0, step_share=1.0, ridge=1.0, loss_factor=1.0)


def check_supported(config: object) -> None:
    """Refuse what the device engine does not compute."""
    if not isinstance(config, NeUClustConfig | CombinatorialNeuralConfig):
        got = type(config).__name__
        raise ConfigError(f"device engine: expected NeUClust or CN-UCB, got {got}; run it without a device")
    arms = config.arms
    wanted: list[tuple[str, object, object]] = [
        ("tie", config.tie, "id"),
        ("arms.network.depth", arms.network.depth, 1),
        ("arms.confidence.form", arms.confidence.form, "full"),
        *_wanted_training("arms.training", arms.training),
    ]
    if isinstance(config, NeUClustConfig):
        wanted += [
            ("tracker", config.tracker, None),
            ("covariance", config.covariance, "slate"),
            ("slate.depth", config.slate.depth, 1),
            *_wanted_training("slate.training", config.slate.training),
        ]
    if arms.network.init == "torch-default":
        raise ConfigError("device engine: expected an arm network without biases, got init torch-default; use another")
    if isinstance(config, NeUClustConfig) and config.clustering.seed is None:
        raise ConfigError("device engine: expected a number as clustering.seed, got none; run it without a device")
    for name, value, needed in wanted:
        if value != needed:
            raise ConfigError(f"device engine: expected {name}={needed}, got {value}; run it without a device")


def check_memory(config: PolicyConfig, rounds: int, slate_size: int) -> None:
    """Refuse runs in which contexts or slates could leave a bounded training, which the device engine has not."""
    limits = {"arms.training.memory": (config.arms.training.memory, rounds * slate_size)}
    if isinstance(config, NeUClustConfig):
        limits["slate.training.memory"] = config.slate.training.memory, rounds
    for name, (memory, most) in limits.items():
        if memory is not None and most > memory:
            advice = f"set {name}=none or run it without a device"
            raise ConfigError(f"device engine: expected {name} of at least {most} or none, got {memory}; {advice}")


def _wanted_training(name: str, training: TrainingConfig) -> list[tuple[str, object, object]]:
    return [(f"{name}.optimizer", training.optimizer, "gd"), (f"{name}.after", training.after, "round")]
