from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    name = "policies"

    def ready(self) -> None:
        from policies.services import questions_a_minute
        from telemetry.poll_budget import register_budget

        register_budget(questions_a_minute)
