"""Which model may see which data: labels of paths and projects against the clauses about providers and models.

A provider that nobody knows counts as one without a contract, and data without a label as what anybody may see.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from policies.engine.clauses import Clause, Modality

LEVEL: Final = "level-"  # labels of a ladder: level-1, level-2 …
SITE: Final = "site"  # the site's own models: data do not leave it


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model may see data; where it may not, which clause says so and what would make it pass."""

    allowed: bool
    clause: str = ""
    why: str = ""
    remedy: str = ""


_YES: Final = Verdict(True)


def labels_of(clauses: Iterable[Clause], *, path: str = "", project: str = "") -> frozenset[str]:
    """Return the labels that clauses give to a path or a project by their parameters `paths` and `projects`.

    A folder has those of what lies below it too: whoever reads it may read all of it.
    """
    found: set[str] = set()
    for clause in clauses:
        labels = {name for name in clause.applies.data_class if name != "*"}
        named = any(fnmatchcase(project, pattern) for pattern in clause.listed("projects")) if project else False
        roots = clause.listed("paths") if path else ()
        if named or any(_lies_in(path, root) or _lies_in(root, path) for root in roots):
            found |= labels
    return frozenset(found)


def may_see(clauses: Iterable[Clause], *, provider: str, model: str, labels: Iterable[str]) -> Verdict:
    """Judge a model of a provider against the labels of some data; the first clause that refuses is named."""
    held = frozenset(labels)
    for clause in clauses:
        if clause.modality in (Modality.ADVISE, Modality.INFORM):
            continue
        if not (verdict := _judge(clause, provider.lower(), model.lower(), held)).allowed:
            return verdict
    return _YES


def _judge(clause: Clause, provider: str, model: str, held: frozenset[str]) -> Verdict:
    bound = "*" in clause.applies.data_class or bool(held & set(clause.applies.data_class))
    if clause.type == "model.banned" and bound and any(name.lower() in model for name in clause.listed("models")):
        return Verdict(False, clause.type, clause.text_human, "Use another model for these data.")
    if provider == SITE:
        return _YES
    if clause.type == "data.max_class_external" and clause.value is not None:
        return _by_level(clause, provider, held)
    allowed = clause.listed("providers")
    if clause.type == "model.approved_providers" and bound and provider not in allowed:
        return Verdict(False, clause.type, clause.text_human, f"Use a model of {', '.join(allowed) or 'the site'}.")
    narrowed = "*" not in clause.applies.data_class and bound
    if narrowed and clause.modality is Modality.FORBID and clause.type != "model.banned":
        return Verdict(False, clause.type, clause.text_human, "Use the site’s own models, or leave these data out.")
    return _YES


def _by_level(clause: Clause, provider: str, held: frozenset[str]) -> Verdict:
    levels = [int(rest) for label in held if (rest := label.removeprefix(LEVEL)) != label and rest.isdecimal()]
    contracts = dict(each.rpartition(":")[::2] for each in clause.listed("contracted"))
    ceiling = max(clause.value or 0, float(contracts.get(provider, 0)))
    if max(levels, default=0) <= ceiling:
        return _YES
    why = f"These data are of level {max(levels)}; {provider or 'this provider'} may see level {ceiling:g}."
    return Verdict(False, clause.type, why, "Use the site’s own models or a provider with a contract for that level.")


def _lies_in(path: str, root: str) -> bool:
    root = root.rstrip("/")
    return path.rstrip("/") == root or path.startswith(f"{root}/")
