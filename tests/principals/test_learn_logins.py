"""The login names of a block of jobs are looked up together; those that are new are made, each once."""

import pytest
from pytest_django import DjangoAssertNumQueries

from principals.models import Cluster, ClusterUser, User
from principals.services import Directory
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def cluster() -> Cluster:
    return factories.make_cluster("aster")


def test_they_get_the_ids_that_single_names_get(cluster: Cluster) -> None:
    known = Directory(cluster).user_id("ada")
    directory = Directory(cluster)
    directory.learn_logins(["bob", "ada", "bob"])
    assert directory.user_id("ada") == known
    assert directory.user_id("bob") == Directory(cluster).user_id("bob") == ClusterUser.objects.get(login="bob").pk
    assert ClusterUser.objects.count() == 2


def test_they_are_tied_to_the_people_who_sign_in_under_them(cluster: Cluster) -> None:
    ada = User.objects.create_user("ada")
    Directory(cluster).learn_logins(["ada", "bob"])
    assert ClusterUser.objects.get(login="ada").user == ada
    assert ClusterUser.objects.get(login="bob").user is None


def test_one_that_another_process_made_meanwhile_stays_one(cluster: Cluster) -> None:
    early = Directory(cluster)
    known = Directory(cluster).user_id("ada")
    early.learn_logins(["ada", "bob"])
    assert early.user_id("ada") == known


def test_another_cluster_has_its_own(cluster: Cluster) -> None:
    other = Directory(factories.make_cluster("briar"))
    here = Directory(cluster)
    for directory in (here, other):
        directory.learn_logins(["ada"])
    assert here.user_id("ada") != other.user_id("ada")


def test_many_take_as_many_queries_as_few(cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    directory = Directory(cluster)
    for number, logins in enumerate((["ada"], [f"u{number}" for number in range(200)])):
        with django_assert_num_queries(3):
            directory.learn_logins(logins)
        assert ClusterUser.objects.count() == (1, 201)[number]
    with django_assert_num_queries(0):
        directory.learn_logins(["ada", "u7"])
        assert directory.user_id("u7")
