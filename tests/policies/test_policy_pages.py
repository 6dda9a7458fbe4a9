"""Pages of trials and extensions: who sees what, what is exported, and how many queries a list takes."""

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from policies import selectors
from policies.figures import FIGURES
from policies.models import TrialRefusal
from portal.core import clock
from tests import factories
from tests.conftest import Cast, sign_in
from tests.policies import worlds


def _refusal(cast: Cast, code: str = "too_long") -> TrialRefusal:
    return TrialRefusal.objects.create(
        user=cast.colleague, lab=cast.lab, cluster=cast.cluster, minutes=60, code=code, agent=cast.agent,
        reasons=[{"code": code, "sentence": "A trial may use <b>15</b> minutes.", "remedy": "Ask for 15.",
                  "value": 60, "limit": 15}],
    )  # fmt: skip


def _rows(browser: Client, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get(path).content.decode())))


@pytest.fixture
def trials(cast: Cast) -> Cast:
    worlds.make_trial(cast, agent=cast.agent, gpus=1, gpu_minutes=10)
    worlds.make_trial(cast, cast.pi)
    worlds.make_trial(cast, cast.outsider, cast.other_lab)
    _refusal(cast)
    return cast


@pytest.mark.parametrize(
    ("who", "count"), [("staff", 3), ("auditor", 3), ("pi", 2), ("manager", 2), ("colleague", 1), ("outsider", 1)]
)
def test_everybody_exports_the_trials_they_may_see(trials: Cast, who: str, count: int) -> None:
    assert len(_rows(sign_in(getattr(trials, who)), "/trials/requests/?format=csv")) == count


def test_staff_see_labs_a_pi_their_lab_and_a_member_themselves(trials: Cast) -> None:
    assert [row["lab"] for row in _rows(sign_in(trials.staff), "/trials/?format=csv")] == ["okafor", "marlowe"]
    assert [row["lab"] for row in _rows(sign_in(trials.pi), "/trials/?format=csv")] == ["okafor"]
    own = _rows(sign_in(trials.colleague), "/trials/?by=lab&format=csv")
    assert [(row["person"], row["trials"], row["refused"]) for row in own] == [("colleague", "1", "1")]


def test_a_labs_row_adds_up_its_people(trials: Cast) -> None:
    lab = next(row for row in _rows(sign_in(trials.staff), "/trials/?format=csv") if row["lab"] == "okafor")
    people = _rows(sign_in(trials.staff), "/trials/?by=person&lab=okafor&format=csv")
    assert (lab["trials"], lab["people"], lab["gpu_minutes"]) == ("2", "2", "10.0")
    assert sum(int(row["trials"]) for row in people) == 2
    assert lab["top_reason"] == "too_long"


def test_refusals_show_their_reasons_as_text(trials: Cast) -> None:
    text = sign_in(trials.colleague).get("/trials/requests/?outcome=refused").content.decode()
    assert "&lt;b&gt;15&lt;/b&gt; minutes" in text
    assert "Ask for 15." in text


def test_filters_of_the_list_give_what_they_say(trials: Cast) -> None:
    worlds.make_trial(trials, state="cancelled")
    browser = sign_in(trials.staff)
    assert len(_rows(browser, "/trials/requests/?lab=okafor&format=csv")) == 3
    assert len(_rows(browser, "/trials/requests/?lab=okafor&since=day&format=csv")) == 2
    assert len(_rows(browser, "/trials/requests/?state=cancelled&format=csv")) == 1
    assert len(_rows(browser, "/trials/requests/?person=outsider&format=csv")) == 1
    assert len(_rows(browser, "/trials/requests/?outcome=refused&code=too_long&format=csv")) == 1
    assert browser.get("/trials/requests/?lab=%00&state=%00&person=%00&page=x").status_code == 200


def test_a_wait_that_nobody_measured_is_said_to_be_so(trials: Cast) -> None:
    assert "not measured yet" in sign_in(trials.staff).get("/trials/").content.decode()


def test_the_budget_stands_on_the_agents_page_and_on_my_lab(trials: Cast) -> None:
    assert "1 of 30 trials used" in sign_in(trials.colleague).get(f"/agents/{trials.agent.name}/").content.decode()
    assert "1 of 30 trials used" in sign_in(trials.colleague).get("/my-lab/").content.decode()


def _people_with_trials(cast: Cast, numbers: range) -> None:
    for number in numbers:
        person = factories.make_user()
        lab = factories.make_lab(f"lab-{number}", pi=cast.outsider, member=person)
        worlds.make_trial(cast, person, lab, agent=factories.make_agent(lab, person))
        worlds.make_release(person, f"lab/tool-{number}")
        _refusal(cast)


@pytest.mark.parametrize("path", ["/trials/", "/trials/?by=person", "/trials/requests/", "/extensions/"])
def test_a_longer_list_takes_no_more_queries(cast: Cast, path: str) -> None:
    browser = sign_in(cast.staff)
    _people_with_trials(cast, range(2))
    browser.get(path)  # what the frame remembers is remembered now
    counts = []
    for numbers in (range(2, 4), range(4, 12)):
        _people_with_trials(cast, numbers)
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(path).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 31


def test_a_reviewer_sees_what_is_new_against_the_admitted_version(cast: Cast) -> None:
    worlds.make_release(cast.pi, state="admitted", decided_by=cast.staff, decided_at=clock.now())
    new = worlds.make_release(
        cast.colleague, version="1.0.0", digest=worlds.OTHER_DIGEST, capabilities=["fs.read", "credentials.read"]
    )
    text = sign_in(cast.infosec).get(f"/extensions/{new.pk}/").content.decode()
    assert "Its content changed while its version stayed 1.0.0." in text
    assert "<b>New:</b> it may read keys and tokens" in text


def test_reviewers_begin_with_the_queue_and_members_with_what_is_admitted(cast: Cast) -> None:
    queued = worlds.make_release(cast.colleague)
    assert queued.extension.identity in sign_in(cast.infosec).get("/extensions/").content.decode()
    assert queued.extension.identity not in sign_in(cast.pi).get("/extensions/").content.decode()
    assert [row["state"] for row in _rows(sign_in(cast.staff), "/extensions/?format=csv")] == ["queued"]


def test_counts_of_the_rail_are_for_those_who_act(cast: Cast) -> None:
    worlds.make_release(cast.colleague)
    worlds.set_limits(cast.lab, lab_trials=1, person_trials=1)
    worlds.make_trial(cast)
    assert (selectors.extensions_waiting(cast.staff), selectors.extensions_waiting(cast.infosec)) == (1, 1)
    assert selectors.extensions_waiting(cast.pi) is None
    assert (selectors.labs_out_of_budget(cast.staff), selectors.labs_out_of_budget(cast.pi)) == (1, None)


def test_every_figure_is_measured_and_leads_to_its_rows(trials: Cast) -> None:
    worlds.make_release(trials.colleague)
    actor = factories.actor_of(trials.staff)
    measured = {name: figure.read(actor) for name, figure in FIGURES.items()}
    assert measured == {
        "trials_granted": 3, "trials_refused": 1, "trial_start_after": None, "trial_budget_used": 3 / 240,
        "extensions_waiting": 1,
    }  # fmt: skip
    for name in ("trials_granted", "trials_refused", "extensions_waiting"):
        path = FIGURES[name].url()
        assert len(_rows(sign_in(trials.staff), f"{path}&format=csv")) == measured[name]
