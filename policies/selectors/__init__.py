"""Reads of `policies` that span models."""

from policies.selectors.aup import (
    EXPORTED,
    Accepting,
    Due,
    Stage,
    acceptance_fields,
    acceptances_for,
    accepting_in,
    agents_to_hold,
    agents_without,
    people_due,
)
from policies.selectors.compliance import Kept, compliance
from policies.selectors.extensions import Comparison, compare_with_admitted, extensions_waiting
from policies.selectors.trial_days import TrialDay, trial_day
from policies.selectors.trials import (
    REASON_WORDS,
    WINDOW,
    Budget,
    BudgetRow,
    budget_rows,
    labs_out_of_budget,
    median,
    policies_for,
    policy_for,
    trial_budget,
    usage_of,
)
from policies.selectors.withdrawn import mark_withdrawn

__all__ = [
    "EXPORTED",
    "REASON_WORDS",
    "WINDOW",
    "Accepting",
    "Budget",
    "BudgetRow",
    "Comparison",
    "Due",
    "Kept",
    "Stage",
    "TrialDay",
    "acceptance_fields",
    "acceptances_for",
    "accepting_in",
    "agents_to_hold",
    "agents_without",
    "budget_rows",
    "compare_with_admitted",
    "compliance",
    "extensions_waiting",
    "labs_out_of_budget",
    "mark_withdrawn",
    "median",
    "people_due",
    "policies_for",
    "policy_for",
    "trial_budget",
    "trial_day",
    "usage_of",
]
