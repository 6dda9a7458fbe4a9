"""Which model may see which data: level 1 (FASRC), NIH controlled access, DeepSeek on DoD work."""

import pytest

from policies.engine.data_gate import labels_of, may_see
from policies.engine.packs import read_pack

CLAUSES = read_pack("compute-only").clauses


@pytest.mark.parametrize(
    ("provider", "model", "labels", "refused_by"),
    [
        ("somebody", "m", [], ""),
        ("somebody", "m", ["level-1"], ""),
        ("somebody", "m", ["level-2"], "data.max_class_external"),
        ("Anthropic", "m", ["level-3"], ""),
        ("anthropic", "m", ["level-4"], "data.max_class_external"),
        ("openai", "m", ["level-1", "level-3"], "data.max_class_external"),
        ("site", "m", ["level-4"], ""),
        ("anthropic", "m", ["nih-controlled-access"], "site.nih_controlled_access"),
        ("site", "m", ["nih-controlled-access"], ""),
        ("site", "DeepSeek-R1-70b", ["dod"], "model.banned"),
        ("site", "deepseek-r1", [], ""),
        ("site", "llama", ["dod"], ""),
    ],
)
def test_a_model_sees_what_the_policy_lets_it(provider, model, labels, refused_by) -> None:
    verdict = may_see(CLAUSES, provider=provider, model=model, labels=labels)
    assert (verdict.allowed, verdict.clause) == (not refused_by, refused_by)
    assert verdict.allowed or (verdict.why and verdict.remedy)


@pytest.mark.parametrize(
    ("path", "project", "labels"),
    [
        ("/secure/dbgap/x.bam", "", {"nih-controlled-access"}),
        ("/secure/dbgap", "", {"nih-controlled-access"}),
        ("/secure/dbgap2/x", "", set()),
        ("/secure", "", {"nih-controlled-access"}),
        ("/secur", "", set()),
        ("", "dod-radar", {"dod"}),
        ("/secure/dbgap/x", "dod-radar", {"dod", "nih-controlled-access"}),
        ("", "", set()),
    ],
)
def test_labels_come_of_paths_and_projects(path, project, labels) -> None:
    assert labels_of(CLAUSES, path=path, project=project) == labels
