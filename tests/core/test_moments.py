"""A time that the API takes is ISO 8601 text with a zone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from portal.core.moments import Moment

READ: TypeAdapter[datetime] = TypeAdapter(Moment)


def test_it_works():
    assert READ.validate_python("2026-06-01T14:00:00+02:00") == datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert READ.validate_json('"2026-06-01T12:00:00Z"') == datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "given", [651, 651.5, "651", "-651", "1782864000.25", " 651 ", True, None, "", "2026-06-01T12:00:00", "now"]
)
def test_nothing_else_is_a_time(given: Any):
    with pytest.raises(ValidationError):
        READ.validate_python(given)
