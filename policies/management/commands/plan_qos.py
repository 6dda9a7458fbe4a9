"""`manage.py plan_qos`: what would withdraw the QoS of trials of stopped agents in Slurm, and give it back."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from policies.selectors.qos_withdrawals import qos_withdrawals


class Command(BaseCommand):
    help = (
        "Print, a line of JSON each, where the QoS of trials stands for agents that a kill switch or a suspension "
        "stops, with the commands that withdraw it in Slurm and give it back. Runs none of them."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for at, qos, plan in qos_withdrawals():
            place = {"cluster": at.cluster, "user": at.user, "account": at.account, "partition": at.partition}
            what = {"left": plan.left} if plan.left else {"withdraw": plan.withdraw, "restore": plan.restore}
            self.stdout.write(json.dumps(place | {"qos": qos, "stands": at.qos} | what))
