"""Reads of `policies` that span models."""

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

__all__ = [
    "REASON_WORDS",
    "WINDOW",
    "Budget",
    "BudgetRow",
    "Comparison",
    "TrialDay",
    "budget_rows",
    "compare_with_admitted",
    "extensions_waiting",
    "labs_out_of_budget",
    "median",
    "policies_for",
    "policy_for",
    "trial_budget",
    "trial_day",
    "usage_of",
]
