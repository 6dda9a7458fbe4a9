"""Form fields: label, why, control, error, in this order."""

from __future__ import annotations

from typing import Any

from django.forms import BoundField, Form
from django.forms.widgets import CheckboxInput, CheckboxSelectMultiple, RadioSelect
from django.utils.safestring import SafeString

from portal.dashboard.components.library import draw, register


@register.simple_tag
def field(bound: BoundField, why: str = "", full: bool = False) -> SafeString:
    """Draw a form field; its help text is the why. Radios and checkbox lists become a fieldset of choices."""
    widget = bound.field.widget
    context: dict[str, Any] = {"field": bound, "why": why or bound.help_text}
    if isinstance(widget, CheckboxInput):
        return draw("field_check", context)
    if isinstance(widget, RadioSelect | CheckboxSelectMultiple):
        return draw("field_choices", context)
    described = " ".join(
        part
        for part, there in ((f"{bound.auto_id}-why", context["why"]), (f"{bound.auto_id}-bad", bound.errors))
        if there
    )
    attrs = {"aria-describedby": described or None, "aria-invalid": "true" if bound.errors else None}
    context["control"] = bound.as_widget(attrs={key: value for key, value in attrs.items() if value})
    return draw("field", context)


@register.simple_tag
def form_errors(form: Form) -> SafeString:
    """Draw the summary of several errors with links to their fields, and errors of no field."""
    return draw("form_errors", {"form": form, "several": len(form.errors) > 1 or bool(form.non_field_errors())})


@register.filter
def first_line(text: object) -> str:
    """Return a choice's name: its label up to the line break."""
    return str(text).partition("\n")[0]


@register.filter
def second_line(text: object) -> str:
    """Return what a choice means: its label after the line break."""
    return str(text).partition("\n")[2]
