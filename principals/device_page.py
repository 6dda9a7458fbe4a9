"""The page where a person enters the code that a device shows, sees what asks for what, and approves or refuses."""

from typing import Final

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from portal.core import throttle
from portal.core.errors import DomainError
from principals import services as principal_services
from principals.auth import client_address
from principals.engine.networks import caller_of
from principals.engine.scopes import SCOPES
from principals.models import DeviceLogin
from principals.web import PageRequest, add_refusal, page

# A code has 34 bits and lives for ten minutes: guessed at this pace, one of a thousand is found in centuries.
TRIES: Final = 10
TRIES_FROM_ADDRESS: Final = 60
TRIES_WINDOW_S: Final = 600


class CodeForm(forms.Form):
    """The code, as it was read from a terminal."""

    user_code = forms.CharField(
        label="Code", max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}),
        help_text="As the terminal shows it: eight letters, such as BCDF-GHJK.",
    )  # fmt: skip


@page
def device_login(request: PageRequest) -> HttpResponseBase:
    """Ask for a code; a POST with one shows what waits for it, and with `answer` decides."""
    if request.method != "POST":
        form = CodeForm(initial={"user_code": request.GET.get("user_code", "")[:20]})
        return render(request, "principals/device_login.html", {"form": form})
    form = CodeForm(request.POST)
    _count_try(request)
    if not form.is_valid():
        return render(request, "principals/device_login.html", {"form": form}, status=422)
    try:
        login = principal_services.find_device_login(form.cleaned_data["user_code"])
        return _answer(request, form, login)
    except DomainError as error:
        add_refusal(form, error)
        return render(request, "principals/device_login.html", {"form": form}, status=422)


def _count_try(request: PageRequest) -> None:
    """Count a code that is tried, right or wrong. Errors: `TooMany`."""
    wait = "Wait as long as it says, then look at the terminal again."
    for name, key, limit in (
        ("device-code", str(request.user.pk), TRIES),
        ("device-code-address", caller_of(client_address(request)), TRIES_FROM_ADDRESS),
    ):
        throttle.check(name, key, limit=limit, window_s=TRIES_WINDOW_S, what="codes", remedy=wait)


def _answer(request: PageRequest, form: CodeForm, login: DeviceLogin) -> HttpResponseBase:
    answer = request.POST.get("answer", "")
    if answer == "refuse":
        principal_services.refuse_device_login(actor=request.actor, login=login)
        messages.success(request, "Refused: the device gets nothing.")
        return redirect("device-login")
    if answer == "approve":
        agent = principal_services.approve_device_login(actor=request.actor, login=login)
        messages.success(request, f"Approved: {login.host} gets a token of {agent.name} for twelve hours.")
        return redirect(agent)
    agent = principal_services.agent_asked_for(actor=request.actor, login=login)
    may = [{"name": name, "words": SCOPES[name].words} for name in login.scopes if name in SCOPES]
    context = {"form": form, "login": login, "agent": agent, "may": may}
    return render(request, "principals/device_login.html", context)
