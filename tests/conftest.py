"""The cast: a PI and a colleague in one lab, an outsider in another, the facility's roles, an agent on each side."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.core.cache import cache
from django.test import Client, override_settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from portal.core import clock
from principals.models import Agent, Cluster, Lab, User
from telemetry.figures.readings import KEPT
from tests import factories
from tests.support.capabilities import (  # noqa: F401 - hooks of this run
    SHARED_DATA,
    pytest_collection_modifyitems,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from tests.support.sharing_out import pytest_xdist_make_scheduler  # noqa: F401 - how workers share tests out

# Machines differ in speed and are shared: a slow example is no failure.
hypothesis_settings.register_profile(
    "gatehouse", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
hypothesis_settings.load_profile("gatehouse")


@pytest.fixture(scope="session", autouse=True)
def _plain_static_files() -> Iterator[None]:
    """Tests run without collectstatic."""
    storages = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    with override_settings(STORAGES=storages):
        yield


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles and figures of one test do not reach the next."""
    yield
    cache.clear()
    KEPT.forget()


@pytest.fixture
def standing_clock() -> Iterator[None]:
    """All uses that a test counts fall into one window of a throttle, however slow the machine is."""
    with clock.at(clock.now()):
        yield


@dataclass
class Cast:
    """Everybody a test of permissions needs."""

    cluster: Cluster
    lab: Lab
    other_lab: Lab
    pi: User
    manager: User
    colleague: User
    outsider: User
    staff: User
    infosec: User
    auditor: User
    agent: Agent
    foreign_agent: Agent


@pytest.fixture
def cast(db: None) -> Cast:
    """Alice's lab (pi, manager, colleague), the outsider's lab, staff, InfoSec, an auditor, and two agents."""
    pi = factories.make_user("pi")
    manager = factories.make_user("manager")
    colleague = factories.make_user("colleague")
    outsider = factories.make_user("outsider")
    lab = factories.make_lab("okafor", pi=pi, manager=manager, member=colleague)
    other_lab = factories.make_lab("marlowe", pi=outsider)
    cluster = factories.make_cluster("aster")
    for user in (pi, manager, colleague, outsider):
        factories.make_cluster_user(cluster, user)
    factories.make_account(cluster, lab)
    factories.make_account(cluster, other_lab)
    return Cast(
        cluster=cluster,
        lab=lab,
        other_lab=other_lab,
        pi=pi,
        manager=manager,
        colleague=colleague,
        outsider=outsider,
        staff=factories.make_user("staff", is_research_computing=True),
        infosec=factories.make_user("infosec", is_infosec=True),
        auditor=factories.make_user("auditor", is_auditor=True),
        agent=factories.make_agent(lab, colleague, "okafor-docking"),
        foreign_agent=factories.make_agent(other_lab, outsider, "marlowe-ingest"),
    )


@dataclass
class Api:
    """A client of the REST API with one token."""

    token: str

    def __post_init__(self) -> None:
        self.client = Client(headers={"authorization": f"Bearer {self.token}"} if self.token else {})

    def get(self, path: str, **query: object):  # type: ignore[no-untyped-def]
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body: object = None, **kwargs: object):  # type: ignore[no-untyped-def]
        return self.client.post(f"/api/v1{path}", body, content_type="application/json", **kwargs)


@pytest.fixture
def agent_api(cast: Cast) -> Api:
    """The API as the lab's agent, with the default scopes."""
    return Api(factories.make_token(cast.agent))


@pytest.fixture
def service_api(cast: Cast) -> Api:
    """The API as site automation that may post every kind of telemetry."""
    return Api(factories.make_service_token())


def sign_in(user: User | None) -> Client:
    """A browser signed in as `user`, or as nobody."""
    client = Client(enforce_csrf_checks=False)
    if user is not None:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
