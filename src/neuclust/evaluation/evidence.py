"""What a scored log holds of one candidate: its rows as estimators read them, and E[w²] and E[w³] of each."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from neuclust.evaluation.estimators.rows import Rows
from neuclust.evaluation.scoring import Floats, Plan, Scored, Table


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows of a candidate, and E[w²] and E[w³] of each (n, 2) by family of weights."""

    rows: Rows
    moments: Mapping[str, Floats]

    def part(self, chosen: slice) -> "Evidence":
        """Some of the rows."""
        arrays = {each.name: getattr(self.rows, each.name) for each in fields(self.rows)}
        some = {name: None if array is None else array[chosen] for name, array in arrays.items()}
        return Evidence(Rows(**some), {family: each[chosen] for family, each in self.moments.items()})


def evidence_of(table: Table, each: Scored, values: Floats, plan: Plan) -> Evidence:
    """What the table holds of a candidate."""
    return Evidence(rows_of(table, each, values, plan), each.moments)


def rows_of(table: Table, each: Scored, values: Floats, plan: Plan) -> Rows:
    """The rows of a candidate."""
    marginals = "marginals" in plan.needs
    model = "model" in plan.needs
    return Rows(
        rewards=table.rewards, slate_rewards=values, logging=table.logging, target=each.target, slots=table.slots,
        logging_marginals=table.logging_marginals if marginals else None,
        target_marginals=each.target_marginals if marginals else None,
        pi_weights=each.pi_weights if "pi" in plan.needs else None,
        q_hat=table.q_hat if model else None, v_hat=each.v_hat if model else None,
        model_logged=table.model_logged if model else None, model_target=each.model_target if model else None,
    )  # fmt: skip
