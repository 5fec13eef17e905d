"""The causes of failed fetches of policy files, and a remedy for each.

The words of a failure begin with the words of its cause. The store keeps these words, so a later
crawl knows the cause too."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import NamedTuple

from comity.policies.syntax.printable import printable


class FailureCause(NamedTuple):
    """A cause of failures.

    Attributes:
        name: The name of the cause in statistics.
        words: The words with which failures by this cause begin: "the proxy cannot be reached".
        remedy: Sentences that tell the operator what to do.
        is_local: True if the operator can remove the cause. Then the next attempt need not wait
            long.
    """

    name: str
    words: str
    remedy: str
    is_local: bool = False


UNTRUSTED = FailureCause(
    "untrusted-certificate",
    "the certificate is not trusted",
    "If the authority that signed it is your own, write the path of its certificate into the"
    " environment variable SSL_CERT_FILE."
    " DOWNLOAD_VERIFY_CERTIFICATES=False trusts everybody on the way.",
    is_local=True,
)
UNTIMELY = FailureCause(
    "certificate-time",
    "the certificate is not valid at this time",
    "Check the clock of this machine."
    " If the clock is right, the site has to renew its certificate.",
    is_local=True,
)
OTHER_NAME = FailureCause(
    "certificate-name",
    "the certificate is for another name",
    "Check the host in the URL. If the host is right, the site has to change its certificate.",
)
TLS = FailureCause(
    "tls",
    "no TLS connection",
    "Check the scheme and the port of the URL. DOWNLOAD_TLS_MIN_VERSION, DOWNLOAD_TLS_MAX_VERSION"
    " and DOWNLOADER_CLIENT_TLS_CIPHERS say which versions and ciphers are accepted.",
    is_local=True,
)
PROXY = FailureCause(
    "proxy",
    "the proxy cannot be reached",
    "Check COMITY_PROXY, or HTTP_PROXY and HTTPS_PROXY of the environment."
    " COMITY_PROXY=direct uses no proxy.",
    is_local=True,
)
PROXY_ANSWER = FailureCause(
    "proxy-answer",
    "the proxy answered",
    "Check that the proxy may connect to this site. A name and a password for it go into its URL:"
    " COMITY_PROXY=http://name:password@host:port.",
    is_local=True,
)
LOOK_UP = FailureCause(
    "look-up",
    "names cannot be looked up",
    "Check the network and the name server of this machine.",
    is_local=True,
)
NO_HOST = FailureCause("no-host", "there is no host", "Check the spelling of the host in the URL.")
NETWORK = FailureCause(
    "network",
    "no way leads to the address of the server",
    "Check the network of this machine, its firewall, and DOWNLOAD_BIND_ADDRESS.",
    is_local=True,
)
SOCKETS = FailureCause(
    "open-files",
    "this process has too many open files",
    "Raise the limit with `ulimit -n` before the crawl, or set CONCURRENT_REQUESTS lower.",
    is_local=True,
)
REFUSED = FailureCause(
    "refused", "the server refuses the connection", "Check the host and the port of the URL."
)
LATE = FailureCause(
    "late",
    "no answer within",
    "Check the network of this machine, and the proxy if there is one."
    " COMITY_POLICY_TIMEOUT says how many seconds an answer may take.",
)
STATUS = FailureCause("status", "HTTP status", "The server fails, or it keeps this crawler out.")
OTHER = FailureCause("other", "", "The server gives no answer that can be read.")

CAUSES = (
    UNTRUSTED,
    UNTIMELY,
    OTHER_NAME,
    TLS,
    PROXY,
    PROXY_ANSWER,
    LOOK_UP,
    NO_HOST,
    NETWORK,
    SOCKETS,
    REFUSED,
    LATE,
    STATUS,
    OTHER,
)

# OpenSSL's numbers for certificates (X509_V_ERR_...).
_UNTIMELY = (9, 10)
_OTHER_NAME = (62, 64)

_ERRNOS = {
    **dict.fromkeys(
        (
            errno.ENETUNREACH,
            errno.ENETDOWN,
            errno.EHOSTUNREACH,
            errno.EADDRNOTAVAIL,
            errno.EACCES,
            errno.EPERM,
        ),
        NETWORK,
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), SOCKETS),
    errno.ECONNREFUSED: REFUSED,
}


def cause_of(failure: str) -> FailureCause:
    """Return the first of CAUSES with words that the failure begins with."""
    return next(cause for cause in CAUSES if failure.startswith(cause.words))


def failure_of(error: Exception) -> str:
    """Return the words for an error of a connection, which begin with the words of its cause."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        cause = UNTIMELY if code in _UNTIMELY else OTHER_NAME if code in _OTHER_NAME else UNTRUSTED
        return f"{cause.words}: {printable(error.verify_message.encode())}"
    if isinstance(error, ssl.SSLError):
        return f"{TLS.words}: {described(error)}"
    if isinstance(error, socket.gaierror):
        has_failed = error.errno in (socket.EAI_AGAIN, socket.EAI_FAIL)
        return f"{(LOOK_UP if has_failed else NO_HOST).words}: {described(error)}"
    known = _ERRNOS.get(error.errno or 0) if isinstance(error, OSError) else None
    return f"{known.words}: {described(error)}" if known else described(error)


def no_host(host: str) -> str:
    """Return the words of the failure for a host that does not exist."""
    return f"{NO_HOST.words} {printable(host.encode())} (check the spelling)"


def described(error: BaseException | None) -> str:
    """Return the words of an error in one printable line; "" for None.

    An error without words is described by the name of its class.
    """
    words = " ".join(str(error or "").split())
    return printable(words.encode("utf-8", "replace")) or (type(error).__name__ if error else "")
