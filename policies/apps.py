from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    name = "policies"

    def ready(self) -> None:
        from policies.services import questions_a_minute, sessions_on_a_node
        from principals.session_limits import register_limit
        from telemetry.poll_budget import register_budget

        register_budget(questions_a_minute)
        register_limit(sessions_on_a_node)
