import re
from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine.trials import WINDOW_S, TrialLimits, TrialRequest, TrialUsage, decide_trial

TEN = 1785751200.0  # 2026-08-03 10:00 UTC
LIMITS = TrialLimits()


def decide(request, limits=LIMITS, person=(), lab=None, now_s=TEN, **options):
    return decide_trial(
        request,
        limits,
        person_usage=person,
        lab_usage=person if lab is None else lab,
        now_s=now_s,
        **options,
    )


def used(hours_ago, trials=1, gpu_minutes=0.0):
    return TrialUsage(TEN - hours_ago * 3600, trials, gpu_minutes)


def test_a_small_trial_is_granted_and_the_rest_is_told():
    decision = decide(TrialRequest(15, gpus=1), person=[used(2, gpu_minutes=15)])
    assert decision.granted
    assert decision.reasons == ()
    assert decision.returns_at_s is None
    remaining = decision.remaining
    assert (remaining.person_trials, remaining.person_gpu_minutes) == (28, 330)
    assert (remaining.lab_trials, remaining.lab_gpu_minutes) == (118, 1410)


def test_spent_gpu_hours_say_exactly_when_they_come_back():
    rows = [used(23, gpu_minutes=15), *[used(2, gpu_minutes=15)] * 23]
    decision = decide(TrialRequest(15, gpus=1), person=rows)
    (reason,) = decision.reasons
    assert reason.code == "gpu_minutes_spent"
    assert reason.sentence == (
        "6 of 6 trial GPU-hours are used. 0.25 come back at 11:00 UTC. Shorter trials do not help until then."
    )
    assert reason.remedy == "Ask again at 11:00 UTC, or submit an ordinary job."
    assert (reason.value, reason.limit) == (375, 360)
    assert decision.returns_at_s == TEN + 3600


def test_a_shorter_trial_that_fits_is_offered():
    rows = [used(23, gpu_minutes=15), used(2, gpu_minutes=335)]
    (reason,) = decide(TrialRequest(15, gpus=1), person=rows).reasons
    assert reason.sentence == "5.83 of 6 trial GPU-hours are used. 0.25 come back at 11:00 UTC."
    assert reason.remedy.startswith("A trial of 10 min fits now. ")


def test_the_smallest_of_all_budgets_says_which_length_fits():
    rows = [used(2, gpu_minutes=350)]
    reasons = decide(TrialRequest(15, gpus=1), person=rows, lab=[*rows, used(3, gpu_minutes=1083)]).reasons
    assert [reason.code for reason in reasons] == ["gpu_minutes_spent", "lab_gpu_minutes_spent"]
    assert all(reason.remedy.startswith("A trial of 7 min fits now. ") for reason in reasons)


def test_no_length_fits_while_another_reason_stands_against_every_length():
    short = used(2, gpu_minutes=350)
    many = TrialRequest(15, gpus=2)
    wide = TrialRequest(15, gpus=1, nodes=2)
    spent = [used(3, trials=29), short]
    for request, person, lab in (
        (many, [short], [short]),
        (wide, [short], [short]),
        (TrialRequest(15, gpus=1), spent, spent),
        (TrialRequest(15, gpus=1), [short], [used(3, trials=119), short]),
    ):
        decision = decide(request, person=person, lab=lab)
        assert len(decision.reasons) == 2
        assert not any("fits now" in reason.remedy for reason in decision.reasons)


def test_a_request_that_is_too_long_is_told_no_length_above_the_longest():
    decision = decide(TrialRequest(60, gpus=1), person=[used(2, gpu_minutes=320)])
    assert [reason.code for reason in decision.reasons] == ["too_long", "gpu_minutes_spent"]
    assert decision.reasons[1].remedy.startswith("A trial of 15 min fits now. ")


def test_every_remedy_names_the_moment_at_which_all_budgets_allow_it():
    person = [used(22, trials=30)]
    decision = decide(TrialRequest(5, gpus=1), person=person, lab=[*person, used(3, gpu_minutes=1440)])
    assert [reason.code for reason in decision.reasons] == ["trials_spent", "lab_gpu_minutes_spent"]
    assert "come back at 12:00 UTC." in decision.reasons[0].sentence
    assert {reason.remedy for reason in decision.reasons} == {
        "Ask again at 07:00 UTC on 4 Aug, or submit an ordinary job."
    }
    assert decision.returns_at_s == TEN + 21 * 3600


def test_nobody_is_told_to_ask_again_where_waiting_does_not_help():
    decision = decide(TrialRequest(15, gpus=2), person=[used(1, trials=30, gpu_minutes=360)])
    assert decision.returns_at_s is None
    assert not any("Ask again" in reason.remedy for reason in decision.reasons)


def test_shorter_trials_are_said_not_to_help_only_where_none_fits_earlier():
    rows = [used(23.5, gpu_minutes=5), used(23, gpu_minutes=15), used(1, gpu_minutes=340)]
    (reason,) = decide(TrialRequest(15, gpus=1), person=rows).reasons
    assert reason.sentence.endswith("0.33 come back at 11:00 UTC.")
    assert decide(TrialRequest(5, gpus=1), person=rows, now_s=TEN + 1800).granted


def test_the_sentence_speaks_the_site_zone_and_names_another_day():
    rows = [TrialUsage(TEN - 1, 30)]
    (reason,) = decide(TrialRequest(5), person=rows, tz=timezone(timedelta(hours=2))).reasons
    assert reason.sentence == "30 of 30 trials are used. 30 come back at 12:00 on 4 Aug."


def test_a_return_inside_a_minute_is_never_promised_too_early():
    (reason,) = decide(TrialRequest(5), person=[TrialUsage(TEN - WINDOW_S + 61, 30)]).reasons
    assert "at 10:02 UTC." in reason.sentence


def test_the_labs_budget_binds_a_person_who_used_nothing():
    decision = decide(TrialRequest(5), lab=[used(3, trials=120)])
    assert [reason.code for reason in decision.reasons] == ["lab_trials_spent"]
    assert decision.reasons[0].sentence.startswith("120 of the lab’s 120 trials are used.")
    assert decision.remaining.person_trials == 30


def test_every_reason_is_given_at_once_and_waiting_does_not_help_a_wrong_size():
    rows = [used(1, trials=30, gpu_minutes=360)]
    lab = [*rows, used(1, trials=90, gpu_minutes=1080)]
    decision = decide(TrialRequest(60, gpus=2, nodes=2), person=rows, lab=lab)
    assert [reason.code for reason in decision.reasons] == [
        "too_long",
        "too_many_gpus",
        "too_many_nodes",
        "trials_spent",
        "gpu_minutes_spent",
        "lab_trials_spent",
        "lab_gpu_minutes_spent",
    ]
    assert decision.returns_at_s is None
    assert decision.reasons[0].sentence == "A trial may use 15 minutes; this one asks for 60."
    assert all(reason.remedy for reason in decision.reasons)


def test_a_trial_larger_than_a_days_budget_is_told_that_waiting_is_useless():
    limits = TrialLimits(person_gpu_minutes=10)
    decision = decide(TrialRequest(15, gpus=1), limits)
    assert "more than a whole day’s budget" in decision.reasons[0].sentence
    assert decision.returns_at_s is None


def test_a_trial_without_gpus_is_not_stopped_by_spent_gpu_hours():
    assert decide(TrialRequest(15), person=[used(1, gpu_minutes=900)]).granted


@pytest.mark.parametrize("request_", [TrialRequest(0), TrialRequest(5, nodes=0), TrialRequest(5, gpus=-1)])
def test_an_impossible_request_is_an_error(request_):
    with pytest.raises(ValueError, match="at least one minute"):
        decide(request_)


requests = st.builds(TrialRequest, minutes=st.integers(1, 20), gpus=st.integers(0, 2), nodes=st.integers(1, 2))
small_limits = st.builds(
    TrialLimits,
    max_gpus=st.integers(0, 2),
    person_trials=st.integers(0, 5),
    person_gpu_minutes=st.integers(0, 60),
    lab_trials=st.integers(0, 8),
    lab_gpu_minutes=st.integers(0, 90),
)
usages = st.lists(
    st.builds(
        TrialUsage,
        granted_at_s=st.integers(0, 2 * WINDOW_S).map(lambda s: TEN - s),
        trials=st.integers(1, 2),
        gpu_minutes=st.integers(0, 30),
    ),
    max_size=8,
)


@given(small_limits, st.lists(st.tuples(requests, st.integers(0, 40_000), st.sampled_from("ab")), max_size=25))
def test_no_order_of_requests_ever_overspends(limits, asked):
    now, rows = TEN, []
    for request, gap, person in asked:
        now += gap
        mine = [row for owner, row in rows if owner == person]
        everyone = [row for _, row in rows]
        if decide(request, limits, mine, everyone, now).granted:
            rows.append((person, TrialUsage(now, 1, request.gpu_minutes)))
        for owners, trials, minutes in (
            ({person}, limits.person_trials, limits.person_gpu_minutes),
            ({"a", "b"}, limits.lab_trials, limits.lab_gpu_minutes),
        ):
            live = [row for owner, row in rows if owner in owners and row.returns_at_s > now]
            assert len(live) <= trials
            assert sum(row.gpu_minutes for row in live) <= minutes


@given(small_limits, requests, usages, usages)
def test_a_length_that_is_named_is_granted_and_is_the_longest(limits, request, person, others):
    lab = [*person, *others]
    decision = decide(request, limits, person, lab)
    named = {int(n) for reason in decision.reasons for n in re.findall(r"of (\d+) min fits now", reason.remedy)}
    fits = [
        minutes
        for minutes in range(1, request.minutes)
        if decide(replace(request, minutes=minutes), limits, person, lab).granted
    ]
    if any(reason.code.endswith("_spent") for reason in decision.reasons):
        assert named == set(fits[-1:])
    else:
        assert not named


GPU_BUDGETS = {"gpu_minutes_spent": "person_gpu_minutes", "lab_gpu_minutes_spent": "lab_gpu_minutes"}
NO_LIMITS = TrialLimits(10**9, 10**9, 10**9, 10**9, 10**9, 10**9, 10**9)


@given(small_limits, requests, usages, usages)
def test_no_shorter_trial_is_granted_before_the_moment_until_which_none_helps(limits, request, person, others):
    lab = [*person, *others]
    moments = sorted({row.returns_at_s for row in lab if row.returns_at_s > TEN})
    allowed = [at for at in (TEN, *moments) if decide(replace(request, minutes=1), limits, person, lab, at).granted]
    for reason in decide(request, limits, person, lab).reasons:
        if "do not help until then" in reason.sentence:
            name = GPU_BUDGETS[reason.code]
            alone = replace(NO_LIMITS, **{name: getattr(limits, name)})
            then = decide(request, alone, person, lab).returns_at_s  # of this budget, others may come back later
            assert not [at for at in allowed if at < then]


@given(small_limits, requests, usages, usages)
def test_a_remedy_says_ask_again_exactly_where_a_moment_is_given(limits, request, person, others):
    decision = decide(request, limits, person, [*person, *others])
    spent = [reason for reason in decision.reasons if reason.code.endswith("_spent")]
    asks = ["Ask again at" in reason.remedy for reason in spent]
    assert all(asks) if decision.returns_at_s is not None else not any(asks)


@given(small_limits, requests, usages)
def test_asking_again_when_told_is_granted_and_a_second_earlier_is_not(limits, request, rows):
    decision = decide(request, limits, rows)
    if decision.returns_at_s is None:
        return
    assert decide(request, limits, rows, now_s=decision.returns_at_s).granted
    assert not decide(request, limits, rows, now_s=decision.returns_at_s - 1).granted


@given(small_limits, requests, usages)
def test_using_less_or_asking_for_less_never_turns_a_grant_into_a_refusal(limits, request, rows):
    if not decide(request, limits, rows).granted:
        return
    assert decide(request, limits, rows[1:]).granted
    assert decide(TrialRequest(max(1, request.minutes - 1), max(0, request.gpus - 1)), limits, rows).granted


@given(small_limits, requests, usages)
def test_the_order_of_usage_rows_does_not_matter(limits, request, rows):
    assert decide(request, limits, rows) == decide(request, limits, rows[::-1])


@given(small_limits, requests, usages)
def test_lifting_every_limit_named_makes_the_trial_pass(limits, request, rows):
    names = {
        "too_long": "max_minutes",
        "too_many_gpus": "max_gpus",
        "too_many_nodes": "max_nodes",
        "trials_spent": "person_trials",
        "gpu_minutes_spent": "person_gpu_minutes",
        "lab_trials_spent": "lab_trials",
        "lab_gpu_minutes_spent": "lab_gpu_minutes",
    }
    reasons = decide(request, limits, rows).reasons
    values = {name: getattr(limits, name) for name in names.values()}
    lifted = TrialLimits(**values | {names[reason.code]: reason.value for reason in reasons})
    assert decide(request, lifted, rows).granted
    for spared in reasons:  # and each of them stands in the way by itself
        partly = {names[reason.code]: reason.value for reason in reasons if reason is not spared}
        assert not decide(request, TrialLimits(**values | partly), rows).granted
