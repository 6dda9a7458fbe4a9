"""Rows of `policies`: the AUP and who accepted it, trial budgets and grants, extensions and their admission."""

from policies.models.aup import AupAcceptance, AupDraft, AupPersonAcceptance, AupVersion, How
from policies.models.extensions import Extension, ExtensionRelease
from policies.models.trials import TrialGrant, TrialPolicy, TrialRefusal

__all__ = [
    "AupAcceptance",
    "AupDraft",
    "AupPersonAcceptance",
    "AupVersion",
    "Extension",
    "ExtensionRelease",
    "How",
    "TrialGrant",
    "TrialPolicy",
    "TrialRefusal",
]
