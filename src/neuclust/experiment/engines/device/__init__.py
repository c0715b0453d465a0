"""Many runs of NeUClust or CN-UCB at once on one device, equal run by run to `experiment.run.run`."""

from neuclust.experiment.engines.device.batches import BatchRun, batches_of
from neuclust.experiment.engines.device.runner import run_batch, trace_batch

__all__ = ["BatchRun", "batches_of", "run_batch", "trace_batch"]
