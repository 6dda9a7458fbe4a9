"""Pages on which staff write a version of the policy: start, change with a preview, publish, drop."""

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from policies import permissions
from policies import services as policy_services
from policies.engine import agents_md, aup_diff
from policies.engine.aup import aup_digest
from policies.engine.clause_toml import write_clauses
from policies.forms import DraftForm, StartDraftForm
from policies.models import AupDraft
from policies.views.aup import shown
from portal.core.errors import DomainError
from principals.web import PageRequest, add_refusal, page


@page
def start(request: PageRequest) -> HttpResponseBase:
    """Choose what the new version starts from."""
    permissions.require(request.actor, "aup.publish")
    form = StartDraftForm(request.POST or None, newest=policy_services.current_aup().version)
    if request.method == "POST" and form.is_valid():
        return redirect(policy_services.start_aup_draft(actor=request.actor, pack=form.cleaned_data["pack"]))
    return render(request, "policies/aup_start.html", {"form": form}, status=422 if request.method == "POST" else 200)


@page
def draft(request: PageRequest, pk: int) -> HttpResponseBase:
    """Change a draft; below the form stands what it would be, and what that changes."""
    permissions.require(request.actor, "aup.publish")
    found = get_object_or_404(AupDraft, pk=pk)
    if request.method != "POST":
        return _show(request, found, DraftForm.of(found), base=found.revision)
    form, base = DraftForm(request.POST), request.POST.get("base", "")
    if form.is_valid():
        try:
            policy_services.change_aup_draft(actor=request.actor, draft=found, source=form.source(), base=base)
            messages.success(request, "The draft is saved. Nobody is asked to accept it before you publish.")
            return redirect(f"{found.get_absolute_url()}#preview")
        except DomainError as error:
            add_refusal(form, error)
            if error.code == "changed_meanwhile":
                found.refresh_from_db()
                return _show_both(request, found, form)
    return _show(request, found, form, base=base, status=422)


def _show_both(request: PageRequest, found: AupDraft, form: DraftForm) -> HttpResponseBase:
    """Show what was typed beside what somebody else saved; saving again means the one that was typed."""
    theirs = found.policy
    context = {"theirs": theirs, "theirs_clauses": write_clauses(theirs.clauses)}
    context["against_theirs"] = aup_diff.compare(theirs, policy_services.read_policy(form.source()))
    return _show(request, found, form, base=found.revision, status=409, **context)


def _show(
    request: PageRequest, found: AupDraft, form: DraftForm, *, base: str, status: int = 200, **more: object
) -> HttpResponseBase:
    newest, policy = policy_services.current_aup(), found.policy
    url = request.build_absolute_uri("/").rstrip("/")
    context = shown(policy) | {
        "draft": found,
        "form": form,
        "base": base,
        "newest": newest,
        "is_taken": policy.version == "draft" or policy.version == newest.version,
        "diff": aup_diff.compare(newest.policy, policy),
        "digest": aup_digest(policy),
        "tokens": agents_md.count_tokens(agents_md.agents_md(policy, url=url)),
        "most_tokens": agents_md.MOST_TOKENS,
    } | more  # fmt: skip
    return render(request, "policies/aup_draft.html", context, status=status)


@require_POST
@page
def publish(request: PageRequest, pk: int) -> HttpResponseBase:
    """Publish a draft as it was previewed."""
    permissions.require(request.actor, "aup.publish")
    found = get_object_or_404(AupDraft, pk=pk)
    version = policy_services.publish_aup_draft(actor=request.actor, draft=found, digest=request.POST.get("digest", ""))
    messages.success(request, f"AUP {version.version} is published. It is never edited; a change is a new version.")
    return redirect("aup")


@require_POST
@page
def drop(request: PageRequest, pk: int) -> HttpResponseBase:
    """Drop a draft."""
    permissions.require(request.actor, "aup.publish")
    found = get_object_or_404(AupDraft, pk=pk)
    policy_services.drop_aup_draft(actor=request.actor, draft=found, base=request.POST.get("base", ""))
    messages.success(request, "The draft is dropped.")
    return redirect("aup")
