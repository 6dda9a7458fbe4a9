"""Which addresses a webhook may have, and where its connection may end."""

import pytest

from portal.core.errors import Invalid, NotAllowed
from portal.webhooks import hosts, posting

SITE = hosts.read_allowed(["hooks.example.org", "*.lab.example.org:8443", "http://127.0.0.1:9000"])


@pytest.mark.parametrize(
    "address",
    ["https://hooks.example.org", "https://HOOKS.example.org:443/a?b=%20c", "https://a.b.lab.example.org:8443/x",
     "http://127.0.0.1:9000/in"],
)  # fmt: skip
def test_what_the_site_names_may_be(address):
    hosts.require(hosts.read_address(address), SITE)


@pytest.mark.parametrize(
    "address",
    ["https://example.org/", "https://hooks.example.org:8443/", "https://lab.example.org:8443/",
     "https://evil-lab.example.org:8443/", "https://a.lab.example.org/", "http://hooks.example.org/",
     "http://127.0.0.1:9001/", "https://127.0.0.1:9000/", "http://localhost:9000/", "https://169.254.169.254/",
     "https://hooks.example.org.evil.test/"],
)  # fmt: skip
def test_what_it_does_not_name_may_not(address):
    with pytest.raises(NotAllowed) as refused:
        hosts.require(hosts.read_address(address), SITE)
    assert refused.value.code == "host_not_allowed" and refused.value.remedy


@pytest.mark.parametrize(
    "address",
    ["", "hooks.example.org", "ftp://hooks.example.org/", "https://me:x@hooks.example.org/", "https://hooks.example.org#a",
     "https://hooks.example.org\\@evil.test/", "https://evil.test@hooks.example.org/", "https://hooks.example.org/a b",
     "https://hooks.example.org/\r\nX: y", "https://[::1]/", "https://hooks.example.org:99999/", "https://häks.example/",
     "https://hooks.example.org?x", "https://-a.example.org/", "https://hooks.example.org/\n",
     "https://hooks.example.org/" + "a" * 300, "https://hoo\u212as.example.org/", "https://hooks.example.org/\u017f"],
)  # fmt: skip
def test_what_is_no_address_is_refused(address):
    with pytest.raises(Invalid) as refused:
        hosts.read_address(address)
    assert refused.value.code == "address_malformed"


@pytest.mark.parametrize(
    "entry", ["https://a.example.org", "*.org", "*", "a b", "http://a.example.org", "a:0", "a:70000"]
)
def test_a_site_that_names_nonsense_is_told_so(entry):
    with pytest.raises(ValueError, match="GATEHOUSE_WEBHOOK_HOSTS"):
        hosts.read_allowed([entry])


@pytest.mark.parametrize(
    ("address", "here", "may"),
    [("10.1.2.3", False, True), ("192.0.2.7", False, True), ("127.0.0.1", False, False), ("::1", False, False),
     ("169.254.169.254", False, False), ("fe80::1%eth0", False, False), ("0.0.0.0", False, False),  # noqa: S104
     ("2002:7f00:1::", False, False), ("2002:a9fe:a9fe::", False, False), ("2002:a01:203::", False, True),
     ("2001:0:c000:207:0:0:80ff:fffe", False, False), ("64:ff9b::a9fe:a9fe", False, False),
     ("2002:7f00:1::", True, False), ("::ffff:10.1.2.3", False, True),
     ("::ffff:127.0.0.1", False, False), ("224.0.0.1", False, False), ("127.0.0.1", True, True),
     ("10.1.2.3", True, False)],
)  # fmt: skip
def test_a_name_that_leads_to_this_host_or_its_link_is_not_followed(address, here, may):
    assert posting.is_reachable(address, is_here=here) is may
