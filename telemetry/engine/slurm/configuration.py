"""What a controller is configured to do: the text of `scontrol show config` (scontrol(1), slurm.conf(5))."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

COMMAND: Final = ("scontrol", "show", "config")
_LINE: Final = re.compile(r"([A-Za-z][\w/]*(?:\[\d+\])?)\s*=\s?(.*)")
_HOST: Final = re.compile(r"(?P<name>[^()]+)(?:\((?P<address>[^()]*)\))?")
_NOTHING: Final = frozenset({"", "(null)", "none", "N/A"})


@dataclass(frozen=True)
class Configuration:
    """Settings by the names that Slurm prints, in small letters; what is not set is not there."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """Return a setting, or "" where it is not set."""
        return self.settings.get(name.lower(), "")

    def each(self, name: str) -> list[str]:
        """Return the values of a setting that may stand there more than once: `EpilogSlurmctld[1]`, or without one."""
        return [value for key, value in self.settings.items() if key.partition("[")[0] == name.lower()]

    def words(self, name: str) -> list[str]:
        """Return the words of a setting that is a list, without their values: `rl_enable,rl_refill_rate=2`."""
        return [word.partition("=")[0].strip().lower() for word in self.get(name).split(",") if word.strip()]

    @property
    def version(self) -> tuple[int, int]:
        """The release, as (25, 11); (0, 0) where it does not say."""
        found = re.match(r"(\d+)\.(\d+)", self.get("SLURM_VERSION"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def controller(self) -> tuple[str, int]:
        """Where the first controller is: address and port; ("", 0) where it does not say."""
        host = _HOST.match(self.get("SlurmctldHost[0]") or self.get("SlurmctldHost"))
        ports = re.match(r"\d+", self.get("SlurmctldPort"))  # a range 6817-6820 is written with a dash
        return ((host["address"] or host["name"]).strip(), int(ports[0])) if host and ports else ("", 0)

    @property
    def munge_socket(self) -> str:
        """The socket of the munged that commands ask, where another than munge's own is named; "" for its own."""
        found = re.search(r"(?:^|,)socket=([^,]+)", self.get("AuthInfo"))
        return found[1] if found else ""

    def naming(self, word: str) -> dict[str, str]:
        """Return the settings in which a word stands."""
        return {name: value for name, value in self.settings.items() if word in value.lower()}


def read_configuration(text: str) -> Configuration:
    """Read what `scontrol show config` prints; lines of another form (headings, pings) are passed over."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    pairs = ((each[1].lower(), each[2].strip()) for each in found if each)
    return Configuration({name: value for name, value in pairs if value not in _NOTHING})
