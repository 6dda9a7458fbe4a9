"""A way to sign in that is half set is refused at start, with what mends it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.core import sign_in
from tests.support.openid import choices

ROOT = Path(__file__).resolve().parent.parent.parent
OIDC = {"OIDC_ISSUER": "https://id.example.org", "OIDC_CLIENT_ID": "gatehouse", "OIDC_CLIENT_SECRET": "s"}
SAML = {"SAML_METADATA": "https://id.example.org/metadata", "SAML_LOGIN": "uid"}
FRONT = {"REMOTE_USER_HEADER": "X-Remote-User", "REMOTE_USER_FROM": "10.0.4.7 2001:db8::7/128"}


@pytest.mark.parametrize(
    "values",
    [
        {},
        OIDC,
        FRONT,
        OIDC | FRONT | {"LOCAL_SIGN_IN": "0"},
        OIDC | {"LOGIN_CLAIM": "uid", "UNKNOWN_PEOPLE": "add"},
        OIDC | {"GROUPS_CLAIM": "groups", "GROUP_ROLES": "cn=a b,dc=x=staff; c=infosec;"},
        FRONT | {"SYSTEM_GROUPS": "1", "GROUP_ROLES": "rc=staff", "UNKNOWN_PEOPLE": "add"},
        {"SECOND_FACTOR": "staff"},
        SAML | {"LOCAL_SIGN_IN": "0", "UNKNOWN_PEOPLE": "add"},
        SAML | {"SAML_GROUPS": "memberOf", "GROUP_ROLES": "rc=staff"},
    ],
)
def test_whole_choices_pass(values):
    assert choices(**values).faults == ()


@pytest.mark.parametrize(
    ("values", "what", "remedy"),
    [
        ({"OIDC_ISSUER": "https://id.example.org"}, "half set", "GATEHOUSE_OIDC_CLIENT_ID and GATEHOUSE_OIDC_CLIENT_S"),
        ({"OIDC_CLIENT_SECRET": "s"}, "half set", "GATEHOUSE_OIDC_ISSUER"),
        (OIDC | {"OIDC_ISSUER": "http://id.example.org"}, "no https", "https://"),
        (OIDC | {"OIDC_SCOPES": "email"}, "lacks openid", "openid"),
        (OIDC | {"UNKNOWN_PEOPLE": "add"}, "under which login name", "GATEHOUSE_LOGIN_CLAIM"),
        (OIDC | {"UNKNOWN_PEOPLE": "welcome"}, "GATEHOUSE_UNKNOWN_PEOPLE is 'welcome'", "refuse or add"),
        ({"REMOTE_USER_HEADER": "X-Remote-User"}, "no address may send it", "GATEHOUSE_REMOTE_USER_FROM"),
        ({"REMOTE_USER_FROM": "10.0.4.7"}, "without a header", "GATEHOUSE_REMOTE_USER_HEADER"),
        (FRONT | {"REMOTE_USER_HEADER": "Authorization"}, "no header of its own", "X-Remote-User"),
        (FRONT | {"REMOTE_USER_HEADER": "X-Forwarded-For"}, "no header of its own", "X-Remote-User"),
        (FRONT | {"REMOTE_USER_HEADER": "X_Remote_User"}, "no header of its own", "X-Remote-User"),
        (FRONT | {"REMOTE_USER_FROM": "0.0.0.0/0"}, "0.0.0.0/0", "never all"),
        (FRONT | {"REMOTE_USER_FROM": "10.0.4.7/24"}, "10.0.4.7/24", "front’s own"),
        (FRONT | {"REMOTE_USER_FROM": "ondemand"}, "ondemand", "front’s own"),
        ({"GROUP_ROLES": "rc=staff"}, "which groups", "GATEHOUSE_GROUPS_CLAIM"),
        (OIDC | {"GROUPS_CLAIM": "groups"}, "none gives a role", "GATEHOUSE_GROUP_ROLES"),
        (OIDC | {"GROUPS_CLAIM": "g", "GROUP_ROLES": "rc=root"}, "'rc=root'", "staff, infosec, auditor or none"),
        ({"GROUPS_CLAIM": "groups", "GROUP_ROLES": "rc=staff"}, "without a provider", "GATEHOUSE_OIDC_"),
        ({"LOGIN_CLAIM": "uid"}, "without a provider", "GATEHOUSE_OIDC_"),
        ({"SAML_METADATA": "https://id.example.org/m"}, "SAML is half set", "GATEHOUSE_SAML_LOGIN"),
        ({"SAML_GROUPS": "memberOf", "GROUP_ROLES": "rc=staff"}, "SAML is half set", "GATEHOUSE_SAML_METADATA"),
        (SAML | {"SAML_METADATA": "http://id.example.org/m"}, "no https", "https://"),
        (SAML | {"SAML_METADATA": "/nowhere/idp.xml"}, "not there", "Save"),
        ({"LOCAL_SIGN_IN": "0"}, "Nobody can sign in", "GATEHOUSE_OIDC_"),
        ({"SECOND_FACTOR": "all"}, "GATEHOUSE_SECOND_FACTOR", "offer or staff"),
    ],
)
def test_half_set_choices_are_refused_with_a_remedy(values, what, remedy):
    faults = choices(**values).faults
    assert any(what in text and remedy in hint for text, hint in faults), faults


def test_what_is_half_set_lets_nobody_in():
    half = choices(OIDC_ISSUER="https://id.example.org", REMOTE_USER_HEADER="X-Remote-User")
    assert not half.by_oidc and not half.by_remote_user
    assert sign_in.openid_app(half) == {"APPS": []}


def test_the_secret_is_not_shown():
    assert "s3cret" not in repr(choices(**OIDC | {"OIDC_CLIENT_SECRET": "s3cret"}))


def test_the_check_fails_where_the_portal_starts(tmp_path):
    environment = os.environ | {"GATEHOUSE_DATA": str(tmp_path), "GATEHOUSE_OIDC_ISSUER": "https://id.example.org"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "gatehouse.E010" in done.stderr and "GATEHOUSE_OIDC_CLIENT_SECRET" in done.stderr
