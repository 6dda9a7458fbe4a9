"""Addresses of the agents' pages."""

from django.urls import path

from portal.dashboard.agents import actions, kill_switch, my_lab, page, preview, registry, telling

urlpatterns = [
    path("agents/", registry.agents, name="agents"),
    path("agents/<str:name>/", page.agent, name="agent"),
    path("agents/<str:name>/approve/", actions.approve, name="agent-approve"),
    path("agents/<str:name>/accept-aup/", actions.accept_aup, name="agent-accept-aup"),
    path("agents/<str:name>/suspend/", actions.suspend, name="agent-suspend"),
    path("agents/<str:name>/resume/", actions.resume, name="agent-resume"),
    path("agents/<str:name>/retire/", actions.retire, name="agent-retire"),
    path("agents/<str:name>/renew/", actions.renew, name="agent-renew"),
    path("agents/<str:name>/tokens/", actions.make_token, name="agent-make-token"),
    path("agents/<str:name>/tokens/<str:key>/revoke/", actions.revoke_token, name="agent-revoke-token"),
    path("agents/<str:name>/tokens/<str:key>/rotate/", actions.rotate_token, name="agent-rotate-token"),
    path("agents/<str:name>/telemetry.json", telling.figure, name="agent-telling"),
    path("agents/<str:name>/telemetry/", telling.choose, name="agent-telling-choice"),
    path("kill-switch/", kill_switch.kill_switches, name="kill-switches"),
    path("kill-switch/<int:pk>/", kill_switch.kill_switch, name="kill-switch"),
    path("kill-switch/<int:pk>/agree/", kill_switch.agree, name="kill-switch-agree"),
    path("kill-switch/<int:pk>/withdraw/", kill_switch.withdraw, name="kill-switch-withdraw"),
    path("kill-switch/<int:pk>/end/", kill_switch.end, name="kill-switch-end"),
    path("my-lab/", my_lab.my_lab, name="my-lab"),
    path("my-lab/<str:lab>/costs.json", my_lab.costs, name="my-lab-costs"),
    path("my-lab/<str:lab>/pass.html", preview.show_preview, name="my-lab-pass"),
    path("my-lab/<str:lab>/rule/", my_lab.set_rule, name="my-lab-rule"),
    path("my-lab/<str:lab>/register/", my_lab.register, name="my-lab-register"),
]
