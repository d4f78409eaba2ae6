"""Several servers of one model: which of them a text goes to, and when one of them is left alone for a while. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from data.command import InputError

BREAK_AFTER = 8  # failures in a row: with one try in five failing by chance that comes once in 400,000 tries
LONGEST_PAUSE_S = 30.0


def split_urls(base_url: str | Sequence[str]) -> tuple[str, ...]:
    """The URLs of a list, or of a text with commas between them.

    >>> split_urls("http://a/v1, http://b/v1")
    ('http://a/v1', 'http://b/v1')

    Raises:
        InputError: one that is none of an endpoint.
    """
    urls = base_url.split(",") if isinstance(base_url, str) else base_url
    return tuple(_checked(url.strip()) for url in urls)


def shown_url(url: str) -> str:
    """The URL without a user, a password or a query: those can be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _checked(url: str) -> str:
    shown = url.rpartition("@")[2].partition("?")[0]
    try:
        parts, shown = urlsplit(url), shown_url(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0  # .port may raise too
    except ValueError:
        is_one = False
    if not is_one or any(char.isspace() or not char.isprintable() for char in url):
        raise InputError(f"no URL of an endpoint: {shown!r}; it must look like http://HOST:PORT/v1")
    return url


def by_affinity(urls: Sequence[str], text: str) -> list[int]:
    """Places in `urls`, the one that the text belongs to first: rendezvous hashing.

    The same text has the same order in every process. Take a server away, and only its own texts move, evenly to the
    others.

    >>> order = by_affinity(["a", "b", "c"], "원고의 청구를 기각한다.")
    >>> first = ["a", "b", "c"][order[0]]
    >>> sorted(order)
    [0, 1, 2]
    """
    if len(urls) == 1:
        return [0]
    hashed = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    weights = [hashlib.sha256(url.encode() + hashed).digest() for url in urls]
    return sorted(range(len(urls)), key=lambda place: weights[place], reverse=True)


@dataclass
class Breaker:
    """Keeps calls from a server that fails again and again; probes it with one call at a time, and lets all in again.

    Open after BREAK_AFTER failures in a row, for `first_pause_s`; each failed probe doubles the pause, and is counted
    until a call gets through. Times are the caller's clock in seconds.
    """

    first_pause_s: float
    failures: int = 0
    pause_s: float = 0.0
    opens_at: float = 0.0
    probing: bool = False
    failed_probes: int = 0
    reason: str = ""

    def admits(self, now: float) -> bool:
        """Whether a call may be sent."""
        return self.failures < BREAK_AFTER or (now >= self.opens_at and not self.probing)

    def wait_s(self, now: float) -> float:
        """How long a call that is not admitted had better wait."""
        return self.first_pause_s if self.probing else max(self.opens_at - now, 0.0)

    def begin(self) -> bool:
        """An admitted call is sent: whether it is the probe. Exactly one of the three below follows."""
        is_probe = self.failures >= BREAK_AFTER
        self.probing |= is_probe
        return is_probe

    def worked(self) -> None:
        """The server has answered."""
        self.failures, self.failed_probes, self.pause_s, self.probing = 0, 0, 0.0, False

    def failed(self, now: float, is_probe: bool, reason: str = "") -> None:
        """The server has not, and is to blame."""
        self.failures += 1
        self.failed_probes += is_probe
        self.reason = reason
        if is_probe or self.failures == BREAK_AFTER:
            self.pause_s = min(2 * self.pause_s or self.first_pause_s, LONGEST_PAUSE_S)
            self.opens_at = now + self.pause_s
            self.probing = False

    def cancelled(self, is_probe: bool) -> None:
        """Nothing was learnt."""
        self.probing &= not is_probe
