"""Every part escapes what it is given, and draws what the design says."""

import datetime as dt

import pytest
from django import forms
from django.core.paginator import Paginator
from django.template import Context, Template
from django.test import RequestFactory
from django.utils import timezone

from telemetry import services as telemetry_services
from tests import factories
from tests.conftest import sign_in
from tests.telemetry.job_rows import make_job

HOSTILE = '<script>alert("x")</script>&'
ESCAPED = "&lt;script&gt;alert("


def draw(source, path="/jobs/", **context):
    request = RequestFactory().get(path)
    return Template("{% load gatehouse %}" + source).render(Context({"request": request, "bad": HOSTILE, **context}))


PARTS = [
    '{% fig bad "/jobs/" bad %}',
    "{% fig bad %}",
    '{% chip "job" bad %}',
    '{% chip "job" "RUNNING" bad %}',
    '{% mark "critical" bad %}',
    "{% actor bad %}",
    '{% actor bad "human" "/x" %}',
    "{% meter 1 2 bad %}",
    "{% budget 1 2 bad %}x{% endbudget %}",
    "{% kpi bad bad bad change=bad %}x{% endkpi %}",
    "{% page_head bad deck=bad %}{% endpage_head %}",
    '{% section bad "id" meta=bad end=bad end_url=bad %}x{% endsection %}',
    "{% fact bad note=bad %}x{% endfact %}",
    '{% callout "go" bad action=bad action_url=bad %}x{% endcallout %}',
    "{% empty bad action=bad action_url=bad %}x{% endempty %}",
    '{% agent_pass bad "active" tier=bad purpose=bad %}x{% endagent_pass %}',
    "{% quote bad by=bad %}",
    "{% evidence bad %}",
    "{% act bad bad %}x{% endact %}",
    "{% todo_item bad note=bad %}x{% endtodo_item %}",
    '{% incident_row bad "low" bad meta=bad ref=bad %}',
    "{% chart bad bad label=bad sub=bad %}x{% endchart %}",
    '{% data_table bad id="t" columns="A; B|n" meta=bad noun=bad total=3 %}<tr></tr>{% enddata_table %}',
    '{% tag bad "state" %}',
]


@pytest.mark.parametrize("source", PARTS)
def test_a_part_escapes_its_text(source):
    html = draw(source)
    assert "<script>" not in html
    assert ESCAPED in html or "%3Cscript" in html


@pytest.mark.parametrize("source", PARTS)
def test_a_part_carries_no_inline_style_or_handler(source):
    html = draw(source)
    assert " style=" not in html and " on" not in html.split(">")[0]


@pytest.mark.parametrize("tag", ["steps", "ladder", "timeline", "ticker", "reasons"])
def test_lists_escape_their_rows(tag):
    at = timezone.now()
    row = dict.fromkeys(("title", "note", "what", "text", "weight", "name", "whose", "url"), HOSTILE) | {
        "at": at,
        "by": "agent",
    }
    html = draw(f"{{% {tag} rows %}}", rows=[row])
    assert "<script>" not in html and ESCAPED in html


def test_words_marked_safe_stay_text_in_a_quote_and_in_evidence():
    html = draw('{% quote "<b>bold</b>" %}{% evidence "<i>x</i>" %}')
    assert "<b>bold" not in html and "<i>" not in html


def test_evidence_masks_the_spans_it_is_given():
    html = draw("{% evidence text masks %}", text="token ghp_••3kQ9 <repo>", masks=["ghp_••3kQ9", "<repo>"])
    assert '<span class="mask">ghp_••3kQ9</span>' in html
    assert '<span class="mask">&lt;repo&gt;</span>' in html


@pytest.mark.parametrize(
    ("kind", "state", "style", "word"),
    [
        ("job", "OUT_OF_MEMORY", "critical", "Out of memory"),
        ("job", "Completed", "done", "Completed"),
        ("agent", "aup_required", "caution", "AUP required"),
        ("severity", "critical", "loud", "Critical"),
        ("incident", "false alarm", "done", "False alarm"),
        ("source", "late", "caution", "Late"),
        ("job", "SPECIAL_EXIT", "off", "Special exit"),
    ],
)
def test_a_state_has_its_chip(kind, state, style, word):
    html = draw("{% chip kind state %}", kind=kind, state=state)
    assert f"chip--{style}" in html and word in html


@pytest.mark.parametrize(("used", "css"), [(7, "meter__fill"), (8.1, "meter__fill--near"), (10, "meter__fill--over")])
def test_a_meter_turns_near_above_80_percent_and_over_at_100(used, css):
    html = draw('{% meter used 10 "x" %}', used=used)
    assert f'{css}"' in html


def test_a_clock_says_what_is_left_or_over_in_words():
    now = timezone.now()
    opened, hour = now - dt.timedelta(hours=1), dt.timedelta(hours=1)
    clock = "{% sla_clock opened due met=met now=now %}"
    assert "left" in draw(clock, opened=opened, due=now + 3 * hour, now=now, met=None)
    assert "sla--soon" in draw(clock, opened=opened, due=now + hour / 6, now=now, met=None)
    assert "over" in draw(clock, opened=opened, due=now - hour / 6, now=now, met=None)
    assert "sla--met" in draw(clock, opened=opened, due=now, now=now, met=now - hour / 2)
    assert "no limit" in draw(clock, opened=opened, due=None, now=now, met=None)


def test_a_table_sorts_pages_and_exports_by_its_query():
    page = Paginator(range(30), 10).get_page(2)
    html = draw(
        '{% data_table "Jobs" id="j" columns="Job; Cost|n|cost; Act|sr" sort="-cost" page=page %}'
        "<tr></tr>{% enddata_table %}",
        path="/jobs/?state=RUNNING,PENDING&page=2", page=page,
    )  # fmt: skip
    assert 'aria-sort="descending"' in html and "?state=RUNNING,PENDING&amp;sort=cost" in html
    assert "11–20 of 30" in html and "page=1" in html and "page=3" in html
    assert "?state=RUNNING,PENDING&amp;format=csv" in html
    assert 'aria-labelledby="h-j"' in html and 'id="h-j"' in html


def test_a_filter_form_keeps_the_parameters_it_does_not_show():
    html = draw(
        '{% filters %}{% choose "lab" "Lab" labs %}{% endfilters %}',
        path="/jobs/?lab=a&sort=-x&page=4",
        labs=[("a", "A")],
    )
    assert 'type="hidden" name="sort" value="-x"' in html
    assert 'name="page"' not in html and 'type="hidden" name="lab"' not in html and "selected" in html


def test_a_state_is_added_to_or_taken_from_the_filter():
    rows = [{"state": s, "label": s, "count": 1, "share": 0.5} for s in ("PENDING", "RUNNING")]
    html = draw("{% statebar rows %}", path="/jobs/?state=PENDING", rows=rows)
    assert "?state=PENDING,RUNNING" in html and 'href="?"' in html


def test_an_empty_todo_is_absent():
    assert draw("{% todo %}  {% endtodo %}") == ""


def test_the_pass_turns_grey_when_it_does_not_open_the_gate():
    assert "pass--off" in draw('{% agent_pass "a" "suspended" %}{% endagent_pass %}')
    assert "pass--off" not in draw('{% agent_pass "a" "active" %}{% endagent_pass %}')


def test_a_moment_is_a_time_in_the_facility_zone(settings):
    settings.FACILITY_TIME_ZONE = "America/New_York"
    at = dt.datetime(2026, 8, 3, 14, 4, tzinfo=dt.UTC)
    html = draw('{% moment at "clock" %}', at=at)
    assert 'datetime="2026-08-03T14:04:00Z"' in html and ">10:04<" in html and "EDT" in html


class NameForm(forms.Form):
    name = forms.SlugField(help_text=HOSTILE)
    how = forms.ChoiceField(widget=forms.RadioSelect, choices=[("a", "Alone\nNobody watches.")])


def test_a_field_says_why_before_the_control_and_what_is_wrong_after_it():
    html = draw("{% field form.name %}", form=NameForm({"name": "two words"}))
    order = [html.index(part) for part in ("<label", 'class="why"', "<input", 'class="bad"')]
    assert order == sorted(order)
    assert 'aria-describedby="id_name-why id_name-bad"' in html and 'aria-invalid="true"' in html
    assert "<script>" not in html


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("26612|core_hours", "26,612\u2009<small>core-hours</small>"),
        ("0.558|percent", "55.8<small>%</small>"),
        ("112|duration", "1\u2009<small>min</small>\u200952\u2009<small>s</small>"),
    ],
)
def test_a_word_does_not_run_together_with_its_number(value, shown):
    assert shown in draw(f'{{% kpi "Lost" {value} %}}of all{{% endkpi %}}')


def test_a_table_of_one_row_says_row():
    table = '{% data_table "T" id="t" columns="A" total=total noun=noun %}<tr><td>x</td></tr>{% enddata_table %}'
    assert "1 of 1 job<" in draw(table, total=1, noun="jobs") and "1 of 5 jobs<" in draw(table, total=5, noun="jobs")
    assert "delivery<" in draw(table, total=1, noun="deliveries") and "batch<" in draw(table, total=1, noun="batches")


def test_choices_say_what_they_mean():
    html = draw("{% field form.how %}", form=NameForm())
    assert "<legend>How</legend>" in html and "<b>Alone</b><span>Nobody watches.</span>" in html


STATES = [("", "Any"), ("new", "New"), ("closed", "Closed")]


@pytest.mark.parametrize("control", ["choose", "seg"])
@pytest.mark.parametrize(
    ("query", "current", "says"),
    [
        ("?state=new", "new", ""),
        ("", "", ""),
        ("?state=new,closed", "", ""),
        ("?state=NEW", "new", ""),
        ("?state=nope", "", "State “nope” is not known here: shown is “Any”."),
        ("?state=new,nope", "new", "State “nope” is not known here: shown is “New”."),
    ],
)
def test_a_control_says_what_was_left_out(control, query, current, says):
    html = draw(
        f'{{% {control} "state" "State" states current=current %}}', f"/x/{query}", states=STATES, current=current
    )
    assert (says in html) if says else "filters__note" not in html


@pytest.mark.parametrize("control", ["choose", "seg"])
def test_a_value_that_is_filtered_by_stays_on_offer(control):
    html = draw(f'{{% {control} "state" "State" states %}}', "/x/?state=elsewhere", states=STATES)
    assert "elsewhere</" in html and "filters__note" not in html


def test_what_was_left_out_is_shown_as_text():
    html = draw('{% left_out "state" "State" states %}', "/x/?state=%3Cscript%3E", states=STATES)
    assert "“&lt;script&gt;” is not known here and was left out" in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/overview/?period=abc", "/jobs/?actor=abc", "/jobs/?state=abc",
        "/jobs/live/?actor=abc", "/jobs/live/?state=abc",
        "/agents/?status=abc", "/incidents/?state=abc", "/incidents/?severity=abc", "/trials/?by=abc",
        "/trials/requests/?state=abc", "/trials/requests/?since=abc", "/extensions/?state=abc",
        "/ingest/?batch_state=abc",
    ],
)  # fmt: skip
def test_every_page_that_falls_back_says_so(cast, path):
    cluster_user = factories.make_cluster_user(cast.cluster, cast.pi)
    make_job(cluster_user, cast.lab, submit=1782900000, start=1782900060, end=1782903600)
    telemetry_services.catch_up(cluster=cast.cluster)
    page = sign_in(cast.staff).get(path)
    assert page.status_code == 200
    assert "“abc” is not known here" in page.content.decode()
