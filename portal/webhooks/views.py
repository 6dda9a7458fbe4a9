"""A person's webhooks: the list, one with what was sent for it, and what its owner does with it.

The API knows agents and automation alone; these are for people, so they are pages.
"""

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.core import live
from portal.core.errors import DomainError, Invalid
from portal.dashboard import once
from portal.webhooks import batches, pace, selectors, services
from portal.webhooks.forms import WebhookForm, initial_of
from portal.webhooks.hosts import Allowed
from portal.webhooks.models import Delivery, Webhook
from portal.webhooks.services import Keyed
from principals.web import PageRequest, add_refusal, page


def _allowed() -> str:
    """Return where the site lets webhooks go, in words."""
    return ", ".join(_written(entry) for entry in settings.WEBHOOK_HOSTS)


def _written(entry: Allowed) -> str:
    port = "" if entry.port == (443 if entry.is_tls else 80) else f":{entry.port}"
    return f"{'' if entry.is_tls else 'http://'}{'*.' if entry.is_wild else ''}{entry.host}{port}"


def _find(request: PageRequest, webhook: str) -> Webhook:
    return get_object_or_404(Webhook.objects.visible_to(request.actor).select_related("owner"), public_id=webhook)


def _find_delivery(request: PageRequest, webhook: str, delivery: str) -> Delivery:
    found = Delivery.objects.filter(webhook=_find(request, webhook)).select_related("webhook")
    return get_object_or_404(found, public_id=delivery)


@require_GET
@page
def webhook_list(request: PageRequest) -> HttpResponse:
    """List a person's own webhooks."""
    found = list(selectors.of_person(request.actor))
    context = {
        "webhooks": found, "allowed": _allowed(), "most": services.MOST, "is_full": len(found) >= services.MOST,
    }  # fmt: skip
    return render(request, "webhooks/list.html", context)


@require_GET
@page
def webhook(request: PageRequest, webhook: str) -> HttpResponse:
    """Show one: its state, what was sent last, what could not be."""
    found = _find(request, webhook)
    context = {
        "webhook": found,
        "latest": list(selectors.latest(found)),
        "dead": list(selectors.dead_letters(found)),
        "kept_days": live.KEPT_DAYS,
        "attempts": pace.ATTEMPTS,
        "most_dead": batches.MOST_DEAD,
        "allowed": _allowed(),
    }
    return render(request, "webhooks/webhook.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_webhook(request: PageRequest) -> HttpResponseBase:
    """Make one, and show its key, this once."""
    offered = selectors.offered_topics(request.actor)
    if request.method != "POST":
        initial = {"topics": [topic for topic, _ in offered if topic.startswith("user")]}
        return _show_form(request, WebhookForm(initial=initial, offered=offered, allowed=_allowed()))
    if once.is_repeated(request):
        return _show_no_more(request)
    form = WebhookForm(request.POST, offered=offered, allowed=_allowed())
    if form.is_valid():
        try:
            return _show_key(request, services.register_webhook(actor=request.actor, wish=form.wish()))
        except DomainError as error:
            add_refusal(form, error)
    return _show_form(request, form)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: PageRequest, webhook: str) -> HttpResponseBase:
    """Change one's name, address and topics."""
    found = _find(request, webhook)
    offered = selectors.offered_topics(request.actor)
    if request.method != "POST":
        return _show_form(
            request, WebhookForm(initial=initial_of(found, offered), offered=offered, allowed=_allowed()), found
        )
    form = WebhookForm(request.POST, offered=offered, allowed=_allowed())
    if form.is_valid():
        try:
            services.change_webhook(actor=request.actor, webhook=found, wish=form.wish())
        except DomainError as error:
            add_refusal(form, error)
        else:
            messages.success(request, f"{found.name} is changed.")
            return redirect(found)
    return _show_form(request, form, _find(request, webhook))


def _show_form(request: PageRequest, form: WebhookForm, webhook: Webhook | None = None) -> HttpResponse:
    context = {"form": form, "webhook": webhook, "allowed": _allowed()}
    return render(request, "webhooks/form.html", context, status=422 if form.errors else 200)


def _show_key(request: PageRequest, keyed: Keyed) -> HttpResponse:
    """Render the one page that ever holds the key."""
    once.remember(request)
    return render(request, "webhooks/key_once.html", {"webhook": keyed.webhook, "key": keyed.key})


def _show_no_more(request: PageRequest) -> HttpResponseBase:
    messages.info(request, "The key was shown once and cannot be shown again. If it is lost, roll it over.")
    return redirect("webhooks")


@require_POST
@page
def switch(request: PageRequest, webhook: str) -> HttpResponseBase:
    """Switch one on or off: `state`."""
    found = _find(request, webhook)
    act = {"on": services.switch_on, "off": services.switch_off}.get(request.POST.get("state", ""))
    if act is None:
        raise Invalid("Say whether it is to be on or off.", code="state", remedy="Use the button on its page.")
    act(actor=request.actor, webhook=found)
    goes_on = "It goes on where it stood." if found.is_on else "What happens waits for it."
    messages.success(request, f"{found.name} is {found.state}. {goes_on}")
    return redirect(found)


@require_POST
@page
def test(request: PageRequest, webhook: str) -> HttpResponseBase:
    """Send a ping."""
    found = _find(request, webhook)
    services.send_ping(actor=request.actor, webhook=found)
    messages.success(request, "A ping is on its way; this page shows what comes of it within seconds.")
    return redirect(found)


@never_cache
@require_POST
@page
def roll(request: PageRequest, webhook: str) -> HttpResponseBase:
    """Roll the key over, and show the new one, this once."""
    found = _find(request, webhook)
    if once.is_repeated(request):
        return _show_no_more(request)
    return _show_key(request, services.roll_key(actor=request.actor, webhook=found))


@require_POST
@page
def delete(request: PageRequest, webhook: str) -> HttpResponseBase:
    """Delete one with all that waits for it."""
    found = _find(request, webhook)
    services.delete_webhook(actor=request.actor, webhook=found)
    messages.success(request, f"{found.name} is deleted.")
    return redirect("webhooks")


@require_POST
@page
def again(request: PageRequest, webhook: str, delivery: str) -> HttpResponseBase:
    """Send a dead letter again."""
    found = services.send_again(actor=request.actor, delivery=_find_delivery(request, webhook, delivery))
    messages.success(request, f"{found.public_id} is on its way again, under the same id.")
    return redirect(found.webhook)


@require_POST
@page
def drop(request: PageRequest, webhook: str, delivery: str) -> HttpResponseBase:
    """Drop a dead letter."""
    found = services.drop(actor=request.actor, delivery=_find_delivery(request, webhook, delivery))
    messages.success(request, f"{found.public_id} is dropped.")
    return redirect(found.webhook)
