import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine.extensions import (
    CAPABILITIES,
    AdmissionState,
    allowed_transitions,
    capability_diff,
    find_transition,
    is_newer,
    needs_new_review,
    parse_release,
    version_key,
)

DIGEST = "sha256:" + "a1" * 32
OTHER = "sha256:" + "b2" * 32


def release(**changes):
    fields = {
        "kind": "mcp_server",
        "identity": "okafor/mdtools-mcp",
        "version": "1.4.2",
        "digest": DIGEST,
        "capabilities": ["fs.read", "job.submit"],
    }
    return parse_release(**fields | changes)


def test_a_sound_submission_is_read_and_weighed():
    assert release().weight == 3
    assert release().capabilities == {"fs.read", "job.submit"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "theme"}, "no kind of extension"),
        ({"identity": "Okafor/MD"}, "not an identity"),
        ({"identity": "a--b"}, "not an identity"),
        ({"identity": "../etc"}, "not an identity"),
        ({"identity": "a" * 129}, "not an identity"),
        ({"version": "latest"}, "moving name"),
        ({"version": "1.2.3.4.5"}, "not a version"),
        ({"version": ""}, "not a version"),
        ({"digest": "a1" * 32}, "A digest is sha256"),
        ({"digest": DIGEST.upper()}, "A digest is sha256"),
        ({"digest": DIGEST + "\n"}, "A digest is sha256"),
        ({"capabilities": ["fs.read", "root"]}, "Unknown capability 'root'"),
    ],
)
def test_a_faulty_submission_is_refused_in_one_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        release(**changes)


def test_versions_sort_as_semantic_versioning_says():
    ordered = ["1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0-rc.1"]
    ordered += ["1.0.0", "1.0.1", "1.2", "1.10", "v2", "2.0.0.1"]
    assert sorted(reversed(ordered), key=version_key) == ordered
    assert version_key("1.2") == version_key("v1.2.0+build7")
    assert is_newer("1.10.0", "1.9.9")
    assert not is_newer("1.0.0-rc.1", "1.0.0")


versions = st.from_regex(r"v?\d{1,3}(\.\d{1,3}){0,3}(-[0-9a-z]{1,4}(\.[0-9a-z]{1,4})?)?", fullmatch=True)


@given(versions, versions, versions)
def test_the_order_of_versions_is_total(a, b, c):
    assert is_newer(a, b) + is_newer(b, a) + (version_key(a) == version_key(b)) == 1
    if is_newer(a, b) and is_newer(b, c):
        assert is_newer(a, c)


@pytest.mark.parametrize("source", AdmissionState)
@pytest.mark.parametrize("target", AdmissionState)
def test_only_listed_changes_of_admission_exist(source, target):
    allowed = {
        ("queued", "admitted"),
        ("queued", "admitted_with_conditions"),
        ("queued", "denied"),
        ("admitted", "revoked"),
        ("admitted_with_conditions", "revoked"),
    }
    step = find_transition(source, target)
    assert (step is not None) == ((source.value, target.value) in allowed)
    if step is not None:
        assert step.needs_reason == (target is not AdmissionState.ADMITTED)


def test_what_was_denied_or_revoked_is_never_revived():
    assert allowed_transitions(AdmissionState.DENIED) == allowed_transitions(AdmissionState.REVOKED) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"version": "1.5.0", "digest": OTHER}, "Version 1.5.0 has not been reviewed; 1.4.2 has."),
        ({"digest": OTHER}, "Its content changed while its version stayed 1.4.2."),
        ({"version": "1.5.0"}, "The same content now calls itself 1.5.0 instead of 1.4.2."),
        ({"capabilities": ["exec"]}, "It declares other capabilities than those reviewed."),
        ({"identity": "okafor/other"}, "It is another extension."),
        ({"kind": "skill"}, "It is another extension."),
    ],
)
def test_anything_but_the_release_reviewed_needs_a_new_review(changes, words):
    assert needs_new_review(release(), release(**changes)) == words


def test_a_diff_names_the_heaviest_new_capability_first():
    diff = capability_diff(["fs.read", "exec"], ["fs.read", "net.fetch", "credentials.read"])
    assert diff.sentence == "New: read keys and tokens; fetch from the network. Gone: run programs."
    assert capability_diff(["exec"], ["exec"]).sentence == "It declares the same capabilities."


names = st.sets(st.sampled_from(sorted(CAPABILITIES)))


@given(names, names)
def test_a_diff_loses_and_invents_nothing(old, new):
    diff = capability_diff(old, new)
    assert {each.name for each in (*diff.removed, *diff.kept)} == old
    assert {each.name for each in (*diff.added, *diff.kept)} == new
    assert not set(diff.added) & set(diff.removed)
