"""Configurations of the neural arm model that several policies share."""

import math
from dataclasses import replace

from neuclust.models.arm_model import ArmModelConfig, NetworkConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.fitting import TrainingConfig
from neuclust.models.schedules import ScheduleConfig

MEMORY = 16_384  # distinct contexts kept for training: 3,277 slates of five arms nobody has seen, a catalogue for good
SLATES = 4_096  # slates kept for training

DEFAULT_ARMS = ArmModelConfig(
    encoder=EncoderConfig("scale", rho=None), network=NetworkConfig(width=40), training=TrainingConfig(memory=MEMORY)
)

# The paper's block-symmetric start on duplicated inputs is, with one hidden layer, the net whose units come in equal
# pairs (`mirrored`): the same f, kernel and widths with the printed 420 parameters instead of 820.
PAPER_ARMS = ArmModelConfig(
    encoder=EncoderConfig("scale", rho=5.0),
    network=NetworkConfig(width=20, init="mirrored"),
    schedule=ScheduleConfig("constant", gamma=1.0),
    training=TrainingConfig(step=1e-3),
)

# The reading with the published order and sizes: contexts as they are, and J steps from θ_0 after every round.
RAW_ARMS = replace(PAPER_ARMS, encoder=EncoderConfig("raw"), training=replace(PAPER_ARMS.training, start="restart"))

DIAGONAL_ARMS = replace(DEFAULT_ARMS, confidence=ConfidenceConfig(form="diagonal"))

LITERAL_ARMS = replace(
    PAPER_ARMS,
    encoder=EncoderConfig("unit", duplicate=True),
    network=NetworkConfig(width=20, init="symmetric"),
    training=TrainingConfig(step=1e-3, loss_norm="sum", guard=False),
)

LIFT_ARMS = replace(
    PAPER_ARMS,
    encoder=EncoderConfig("lift", rho=5 * math.sqrt(10), duplicate=True),
    network=NetworkConfig(width=20, init="symmetric"),
)


def authors_arms(width: int, gamma: float, step: float, steps: int) -> ArmModelConfig:
    """Raw contexts, biases, no √m, diagonal covariance, MSE without the ½, weight decay, `steps` steps per arm."""
    training = TrainingConfig(
        steps=steps, step=step, loss_factor=2.0, pull_by_width=False, anchor="zero", after="sample", guard=False
    )
    return ArmModelConfig(
        encoder=EncoderConfig("raw"),
        network=NetworkConfig(width=width, init="torch-default", output_scale="one"),
        confidence=ConfidenceConfig(form="diagonal", per_width=False),
        schedule=ScheduleConfig("constant", gamma=gamma),
        training=training,
    )


def yelp_arms(arms: ArmModelConfig) -> ArmModelConfig:
    return replace(arms, network=replace(arms.network, width=100))
