"""How good and how dear the quantities of the analysis are: `python -m benchmarks theory`.

Three parts, each with its numbers in the record: gradients of finite nets against the closed form of the tangent kernel
over widths; the effective dimension by every method on the same contexts; and that of a million contexts within its
bracket, with seconds and memory.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from neuclust.analysis.theory.contexts import Sampling, sample
from neuclust.analysis.theory.problem import Shape
from neuclust.environments.slates import SlateEnvironment
from neuclust.experiment.contestants import parse_contestants
from neuclust.experiment.problem import Problem, open_problem
from neuclust.files import write_text
from neuclust.models.encoder import Encoder, EncoderConfig, full_at
from neuclust.theory import effective_dimension as dimension
from neuclust.theory.folding import Folded, fold
from neuclust.theory.ntk import TangentKernel, decay_exponent, width_errors

THREADS = 2
WIDTHS = {1: (32, 128, 512, 2048, 8192), 2: (32, 96, 288, 864)}


def opened(data: Path | None, env: str) -> tuple[SlateEnvironment, EncoderConfig]:
    """The problem, and how the default policy's net reads it."""
    (contestant,) = parse_contestants(["neuclust"], settings=())
    problem = Problem(data=data) if data is not None else Problem(env)
    return open_problem(problem).environment(0), Shape.of(contestant).arms.encoder


def everything(environment: SlateEnvironment, config: EncoderConfig, count: int) -> Folded:
    """All contexts of the first rounds, as many rounds as hold `count` of them, equal and parallel ones folded."""
    encoder, rows, held = Encoder(config, environment.dim, even=False), list[torch.Tensor](), 0
    for t in range(1, environment.horizon + 1):
        read = environment.round(t).read
        encoder.settle(read)
        rows.append(full_at(encoder, read, torch.arange(len(read.contexts))))
        held += len(rows[-1])
        if held >= count:
            break
    return fold(torch.cat(rows))


def widths(folded: Folded) -> dict[str, Any]:
    """Errors of ⟨g, g'⟩/m against the closed form, and the exponent by which they fall."""
    x = folded.distinct[:: max(1, len(folded.distinct) // 40)][:40]
    made: dict[str, Any] = {}
    for depth, tried in WIDTHS.items():
        errors = list(width_errors(x, TangentKernel(depth), tried, nets=12))
        made[str(depth)] = {"errors": [asdict(each) for each in errors], "exponent": decay_exponent(errors)}
    return made


def methods(folded: Folded, ridge: float) -> list[dict[str, Any]]:
    """d̃ by every method with its seconds."""
    kernel = TangentKernel(1)
    ways: tuple[Callable[[], dimension.Estimate], ...] = (
        lambda: dimension.exact(folded, kernel, ridge),
        lambda: dimension.bracket(folded, kernel, ridge)[0],
        lambda: dimension.lanczos(folded, kernel, ridge)[0],
    )
    return [timed(way) for way in ways]


def timed(way: Callable[[], dimension.Estimate]) -> dict[str, Any]:
    """An estimate with the seconds of the clock and of the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = way()
    return asdict(found) | {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - cpu}


def large(environment: SlateEnvironment, config: EncoderConfig, count: int, rank: int) -> dict[str, Any]:
    """d̃ of `count` contexts from both sides, from the rounds to the answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    folded = everything(environment, config, count)
    gathered = time.perf_counter() - wall
    found, _ = dimension.bracket(folded, TangentKernel(1), 1.0, rank)
    return asdict(found) | {
        "contexts": folded.total,
        "directions": len(folded.rays),
        "rank": rank,
        "gathering_seconds": gathered,
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - cpu,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a prepared file (default: the twin of MovieLens)")
    parser.add_argument("--contexts", type=int, default=2000, help="of the comparison of methods")
    parser.add_argument("--large", type=int, default=1_000_000, help="contexts of the large set; 0: none")
    parser.add_argument("--rank", type=int, default=800, help="columns of the large set's low-rank part")
    parser.add_argument("--json", type=Path, help="where the record goes")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    env = "movielens-twin"
    record: dict[str, Any] = {
        "problem": env if options.data is None else options.data.stem,
        "threads": THREADS, "torch": torch.__version__, "machine": platform.machine(),
    }  # fmt: skip
    environment, config = opened(options.data, env)
    if options.large:  # first: peak memory is the process's
        record["large"] = large(environment, config, options.large, options.rank)
        show("large", record["large"])
    folded = sample(environment, config, Sampling(options.contexts, rounds=100)).folded
    record["contexts"], record["directions"] = folded.total, len(folded.rays)
    record["methods"] = methods(folded, 1.0)
    for each in record["methods"]:
        show("method", each)
    record["widths"] = widths(folded)
    for depth, found in record["widths"].items():
        show(f"depth {depth}", found)
    if options.json is not None:
        write_text(options.json, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def show(name: str, found: dict[str, Any]) -> None:
    print(name, json.dumps(found, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
