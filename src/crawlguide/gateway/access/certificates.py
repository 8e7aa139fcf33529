"""Client certificates: whoever the operator's authority has named is that crawler.

The common name (CN) is the crawler's id, the organisation (O) its tenant; without one it is the operator who says whose
it is. TLS has verified the rest.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import ConfigError, Unauthenticated
from crawlguide.gateway.access.credential import Credential, checked_tenant, grants_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST_NAME = 200
BY_THE_SETTING = "access.certificate_scopes says what a certificate may do"


def credential(certificate: Mapping[str, Any], scopes: Sequence[str], default_tenant: str) -> Credential:
    """Whose certificate this is, as `ssl` describes one that it has verified."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    names = [value for kind, value in subject if kind == "commonName"]
    tenants = [value for kind, value in subject if kind == "organizationName"]
    if len(names) != 1 or not 1 <= len(names[0]) <= LONGEST_NAME or len(tenants) > 1:
        raise Unauthenticated("the certificate names no crawler: expected one common name (CN), at most one tenant (O)")
    if not (tenants or default_tenant):
        raise Unauthenticated("the certificate names no tenant (O), and access.default_tenant is not set")
    try:
        tenant = checked_tenant(tenants[0] if tenants else default_tenant)
    except ConfigError as wrong:
        raise Unauthenticated(f"the certificate's organisation (O) is no tenant: {wrong.message}") from None
    ends = ssl.cert_time_to_seconds(certificate["notAfter"]) if "notAfter" in certificate else float("inf")
    name, grants = f"certificate {names[0]!r}", grants_of(scopes)
    return Credential(name, tenant, grants, names[0], float(ends), BY_THE_SETTING)
