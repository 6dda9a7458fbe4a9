"""The budget of questions about jobs: events answer them better, and who asks again and again is told so."""

from typing import Any, Final

from django.http import HttpRequest

from portal.core import throttle
from principals.auth import counted_under, requires
from telemetry import poll_budget

CODE: Final = "poll_budget"
REMEDY: Final = (
    "Do not ask again and again: `gatehouse wait JOB` returns when the job ends, and "
    "GET /api/v1/events?after=…&wait=30 tells each change. Before the next question wait as long as Retry-After says."
)


class AskAboutJobs(requires):
    """The scope `jobs:read`, and one question of the token's budget for each minute."""

    def __init__(self) -> None:
        super().__init__("jobs:read")

    def __call__(self, request: HttpRequest) -> Any:
        actor = super().__call__(request)
        throttle.check(
            "polls", counted_under(actor), limit=poll_budget.questions_a_minute(), what="questions about jobs",
            code=CODE, remedy=REMEDY,
        )  # fmt: skip
        return actor
