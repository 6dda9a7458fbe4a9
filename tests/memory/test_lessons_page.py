"""The pages of lessons: search, list, record, review; what people wrote is shown as text."""

import csv
import io

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import figures
from memory import services as memory_services
from memory.models import Lesson, LessonLookup
from tests import factories
from tests.conftest import Cast, sign_in
from tests.memory.lessons import OOM, recorded

HOSTILE = "<script>alert(1)</script> {{ 7 }} {% now 'Y' %} \" onload=x ' =cmd|calc"


def test_search_shows_what_fits_or_offers_to_record(cast: Cast) -> None:
    recorded(cast.pi, scope="lab", lab=cast.lab, cause="The matrix is held twice.")
    client = sign_in(cast.colleague)
    assert "Lessons that fit" in client.get("/lessons/", {"q": OOM}).content.decode()
    text = client.get("/lessons/", {"q": "never <seen> & gone"}).content.decode()
    assert "No lesson fits this error" in text
    assert "/lessons/record/?q=never%20%3Cseen%3E%20%26%20gone" in text
    assert LessonLookup.objects.count() == 2


def test_an_empty_house_says_what_to_do(cast: Cast) -> None:
    assert "No lesson is recorded yet" in sign_in(cast.pi).get("/lessons/").content.decode()


def test_hostile_words_stay_words(cast: Cast) -> None:
    lesson = recorded(
        cast.colleague, lab=cast.lab, error_text=f"error: {HOSTILE}", cause=HOSTILE, fix=HOSTILE, check_words=HOSTILE
    )
    memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson)
    pi = sign_in(cast.pi)
    draft = Lesson.objects.get(status="draft")
    client = sign_in(cast.colleague)
    pages = [
        client.get("/lessons/"),
        client.get("/lessons/", {"q": f"error: {HOSTILE}"}),
        client.get("/lessons/record/", {"q": HOSTILE}),
    ]
    pages += [client.get(lesson.get_absolute_url()), pi.get("/lessons/"), pi.get(draft.get_absolute_url())]
    for page in pages:
        text = page.content.decode()
        assert page.status_code == 200
        assert "<script>alert" not in text
        assert "alert(1)" in text
    cells = list(csv.DictReader(io.StringIO(client.get("/lessons/", {"format": "csv"}).content.decode())))
    assert cells[0]["cause"] == HOSTILE


def test_recording_in_the_browser(cast: Cast) -> None:
    client = sign_in(cast.colleague)
    form = {
        "error_text": OOM,
        "cause": "c",
        "fix": "f",
        "check_words": "",
        "conditions": "a == 1\n\nb < 2",
        "job_key": "",
    }
    answer = client.post("/lessons/record/", form | {"source": "user", "place": "lab:okafor"})
    lesson = Lesson.objects.get(scope="project")
    assert (answer.status_code, answer["Location"]) == (302, lesson.get_absolute_url())
    assert [row["key"] for row in lesson.conditions] == ["a", "b"]
    assert Lesson.objects.get(scope="lab").status == "draft"


@pytest.mark.parametrize(
    "changes", [{"conditions": "gpu"}, {"cause": ""}, {"place": "lab:marlowe"}, {"source": "operator"}]
)
def test_a_refused_form_keeps_what_was_typed(cast: Cast, changes: dict[str, str]) -> None:
    form = {"error_text": "kept words", "cause": "c", "fix": "f", "source": "user", "place": "lab:okafor"}
    answer = sign_in(cast.colleague).post("/lessons/record/", form | changes)
    assert answer.status_code == 422
    assert "kept words" in answer.content.decode()
    assert not Lesson.objects.exists()


def test_a_pi_reviews_on_the_page(cast: Cast) -> None:
    lesson = recorded(cast.colleague, lab=cast.lab)
    draft = memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson)
    client = sign_in(cast.pi)
    assert "Waiting for your word" in client.get("/lessons/").content.decode()
    url = draft.get_absolute_url()
    assert "Turn down" not in sign_in(cast.colleague).get(url).content.decode()
    assert client.post(url, {"act": "reject", "reason": ""}).status_code == 422
    assert sign_in(cast.colleague).post(url, {"act": "approve"}).status_code == 403
    answer = client.post(url, {"act": "approve", "cause": "Said better.", "fix": "f", "check_words": ""})
    assert answer.status_code == 302
    draft.refresh_from_db()
    assert (draft.status, draft.cause) == ("active", "Said better.")
    assert client.post(url, {"act": "withdraw", "reason": "wrong"}).status_code == 302
    assert client.post(url, {"act": "withdraw", "reason": "wrong"}).status_code == 409


def test_sharing_and_confirming_on_the_page(cast: Cast) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    url = lesson.get_absolute_url()
    assert sign_in(cast.colleague).post(url, {"act": "confirm", "job_key": "aster:1"}).status_code == 302
    assert sign_in(cast.pi).post(url, {"act": "confirm"}).status_code == 409
    assert sign_in(cast.pi).post(url, {"act": "propose", "cluster": "nowhere"}).status_code == 422
    answer = sign_in(cast.pi).post(url, {"act": "propose", "cluster": "aster"})
    assert Lesson.objects.get(scope="cluster").get_absolute_url() == answer["Location"]


def test_names_are_shown_in_the_circle_of_a_lesson_alone(cast: Cast) -> None:
    pi = factories.actor_of(cast.pi)
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    wide = memory_services.propose_lesson(actor=pi, lesson=lesson, cluster=cast.cluster)
    memory_services.approve_lesson(actor=factories.actor_of(cast.staff), lesson=wide)
    assert "Recorded by" in sign_in(cast.colleague).get(lesson.get_absolute_url()).content.decode()
    assert "Recorded by" in sign_in(cast.staff).get(wide.get_absolute_url()).content.decode()
    assert "Recorded by" not in sign_in(cast.outsider).get(wide.get_absolute_url()).content.decode()


def test_the_list_costs_the_same_for_many(cast: Cast) -> None:
    client = sign_in(cast.pi)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert client.get("/lessons/", {"q": OOM}).status_code == 200
        return len(caught)

    queries()  # what the frame asks once and keeps
    counts = []
    for batch in range(2):
        for number in range(2 + batch * 18):
            recorded(cast.pi, scope="lab", lab=cast.lab, cause=f"cause {batch} {number}")
        counts.append(queries())
    assert counts[0] == counts[1]


def test_figures_count_by_scope_and_month(cast: Cast) -> None:
    recorded(cast.pi, scope="lab", lab=cast.lab)
    recorded(cast.outsider)
    memory_services.look_up(actor=factories.actor_of(cast.pi), text=OOM)
    memory_services.look_up(actor=factories.actor_of(cast.outsider), text="never seen")
    staff, outsider = factories.actor_of(cast.staff), factories.actor_of(cast.outsider)
    assert figures.by_scope(staff) == {"project": 1, "lab": 1, "cluster": 0}
    assert figures.by_scope(outsider) == {"project": 1, "lab": 0, "cluster": 0}
    read = {name: figure.read(staff) for name, figure in figures.FIGURES.items()}
    assert (read["lessons_asked"], read["lessons_found"], read["lessons_lab"]) == (2, 1, 1)
    assert figures.FIGURES["lessons_asked"].read(outsider) is None
    assert figures.FIGURES["lessons_lab"].url() == "/lessons/?scope=lab"
