"""Rows of `policies`: the AUP and who accepted it, trial budgets and grants, extensions and their admission."""

from policies.models.aup import AupAcceptance, AupVersion
from policies.models.extensions import Extension, ExtensionRelease
from policies.models.trials import TrialGrant, TrialPolicy, TrialRefusal

__all__ = [
    "AupAcceptance",
    "AupVersion",
    "Extension",
    "ExtensionRelease",
    "TrialGrant",
    "TrialPolicy",
    "TrialRefusal",
]
