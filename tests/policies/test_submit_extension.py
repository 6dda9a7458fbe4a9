"""A release is queued for review once, by a person or their agent, with its words kept as text."""

import pytest

from policies import services as policy_services
from policies.models import Extension, ExtensionRelease
from portal.core.errors import Conflict, Invalid
from portal.core.models import AuditEvent, LiveEvent
from tests import factories
from tests.conftest import Cast, sign_in
from tests.policies import worlds

FORM = {
    "kind": "skill", "identity": "okafor/plots", "version": "2.1.0", "digest": worlds.DIGEST,
    "capabilities": ["fs.read", "exec"], "source_url": "https://git.example.org/okafor/plots",
    "description": "<script>alert(1)</script>",
}  # fmt: skip


def test_an_agent_submits_for_its_owner(cast: Cast) -> None:
    actor = worlds.agent_actor(cast.agent, "extensions:submit")
    row = policy_services.submit_extension(actor=actor, submission=worlds.submission())
    assert (row.state, row.submitted_by, row.submitted_by_agent) == ("queued", cast.colleague, cast.agent)
    assert row.capabilities == ["fs.read", "net.fetch"]
    assert AuditEvent.objects.get(verb="extension.submit").actor_label == cast.agent.name
    assert "facility:policies" in LiveEvent.objects.get(name="extension.submitted").topics


def test_the_same_content_is_queued_once(cast: Cast) -> None:
    actor = factories.actor_of(cast.colleague)
    policy_services.submit_extension(actor=actor, submission=worlds.submission())
    with pytest.raises(Conflict) as caught:
        policy_services.submit_extension(actor=factories.actor_of(cast.pi), submission=worlds.submission())
    assert caught.value.code == "extension_exists"
    assert ExtensionRelease.objects.count() == 1


SOURCES = [
    "", "https://git.example.org/okafor/plots", "http://git.example.org/a", "git+https://git.example.org/a@v1#egg=a",
    "git+ssh://git@git.example.org/a.git", "ssh://git@git.example.org:2222/a.git", "git@git.example.org:okafor/a.git",
    "oci://images.example.org/okafor/a:1.0", "npm:@okafor/plots@1.2.0", "pypi:mdtools==1.4.2",
    "pkg:npm/%40okafor/a@1.0",
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_an_address_of_code(cast: Cast, source: str) -> None:
    row = policy_services.submit_extension(
        actor=factories.actor_of(cast.colleague), submission=worlds.submission(source_url=f" {source}")
    )
    assert row.source_url == source


@pytest.mark.parametrize(
    "source",
    [
        "javascript:alert(1)", "JavaScript://%0aalert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x",
        "ftp://h.example.org/a", "https://", "https:///a", "https://a b", "see my web page", "blob:https://a.example.org/1",
        "https://a.example.org\njavascript:alert(1)", "npm:", "view-source:https://a.example.org/",
    ],
)  # fmt: skip
def test_any_other_source_is_refused_with_what_to_write(cast: Cast, source: str) -> None:
    with pytest.raises(Invalid) as caught:
        policy_services.submit_extension(
            actor=factories.actor_of(cast.colleague), submission=worlds.submission(source_url=source)
        )
    assert (caught.value.status, caught.value.code) == (422, "source_malformed")
    assert "git+ssh://" in caught.value.remedy and not Extension.objects.exists()
    page = sign_in(cast.colleague).post("/extensions/submit/", FORM | {"source_url": source})
    assert page.status_code in (200, 422) and "no address of code" in page.text


@pytest.mark.parametrize("state", ["denied", "revoked"])
def test_what_was_turned_down_is_submitted_anew_as_a_new_row(cast: Cast, state: str) -> None:
    old = worlds.make_release(cast.colleague, state=state)
    new = policy_services.submit_extension(actor=factories.actor_of(cast.colleague), submission=worlds.submission())
    assert new.pk != old.pk
    assert Extension.objects.count() == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "theme"}, {"identity": "Okafor MD"}, {"version": "latest"}, {"digest": "sha256:abc"},
        {"capabilities": ["fly"]}, {"version": "1." + "0" * 90},
    ],
)  # fmt: skip
def test_a_malformed_submission_says_what_is_wrong(cast: Cast, fault: dict[str, object]) -> None:
    with pytest.raises(Invalid) as caught:
        policy_services.submit_extension(
            actor=factories.actor_of(cast.colleague), submission=worlds.submission(**fault)
        )  # fmt: skip
    assert caught.value.code == "extension_malformed"
    assert not Extension.objects.exists()


def test_one_submitter_cannot_fill_the_queue(cast: Cast) -> None:
    for number in range(20):
        worlds.make_release(cast.colleague, version=f"1.{number}")
    with pytest.raises(Conflict, match="20"):
        policy_services.submit_extension(actor=factories.actor_of(cast.colleague), submission=worlds.submission())
    assert policy_services.submit_extension(actor=factories.actor_of(cast.pi), submission=worlds.submission())


def test_the_page_submits_and_shows_the_words_as_text(cast: Cast) -> None:
    browser = sign_in(cast.colleague)
    response = browser.post("/extensions/submit/", FORM, follow=True)
    text = response.content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert 'href="javascript' not in text
    assert "run programs" in text


def test_a_fault_in_the_form_keeps_what_was_typed(cast: Cast) -> None:
    response = sign_in(cast.colleague).post("/extensions/submit/", FORM | {"version": "latest"})
    assert response.status_code == 422
    assert "okafor/plots" in response.content.decode()
    assert "moving name" in response.content.decode()
