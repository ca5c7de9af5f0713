"""Who is told: a rule is a union of chains, and of each chain the first group with anybody in it counts.

A group is a role of the company (`ADMIN`), of the site (`SITE MANAGER`: of those, who is assigned to it), or one of
the names below. Only active users count, and only of the company or, by the role and an active
assignment, its consultants.
"""

from __future__ import annotations

from include.ecocomply.tables.companies import ROLES
from include.errors import BadInput

Chain = tuple[str, ...]
Rule = tuple[Chain, ...]

NAMED = "NAMED"
"""The users that the notification itself names: assignee, owner, uploader, who asked."""
SITE_PEOPLE = "SITE PEOPLE"
"""Everyone who is assigned to the site."""
CONSULTANTS = "CONSULTANTS"
"""Who looks after the company, by an active assignment."""

_NEXT = {
    "TEAM_LEAD": "MANAGER",
    "MANAGER": "ADMIN",
    "ADMIN": "OWNER",
    "COMPLIANCE_OFFICER": "ADMIN",
    "STAFF": "ADMIN",
}


def role(name: str) -> Chain:
    """Return a role and those that it falls to while nobody is in it. Raises BadInput for one there is not."""
    if name not in ROLES:
        raise BadInput(f"EcoComply: there is no role {name!r}")
    chain = [name]
    while (after := _NEXT.get(chain[-1])) is not None:
        chain.append(after)
    return tuple(chain)


SITE_MANAGER: Chain = ("SITE MANAGER", "ADMIN", "OWNER")
SITE_MANAGERS: Rule = (SITE_MANAGER,)
ASSIGNEE: Rule = ((NAMED, *SITE_MANAGER),)
"""Assignee, else site managers: 2.2, 2.3, 7.1; and what 18.1 tells uploader and assignees."""
ASSIGNEE_AND_SITE_MANAGERS: Rule = ((NAMED,), SITE_MANAGER)
"""17.1: the obligation's owner and the site's managers."""
NAMED_ALONE: Rule = ((NAMED,),)
NAMED_ELSE_ADMINS: Rule = ((NAMED, *role("ADMIN")),)
"""The permit's owner (9.1, 9.2)."""
NAMED_AND_ADMINS: Rule = ((NAMED,), role("ADMIN"))
"""9.2, once a response is late for more than a week."""
NAMED_ELSE_MANAGERS: Rule = ((NAMED, *role("MANAGER")),)
"""The assignee of a corrective action's item (10.1)."""
OWNERS: Rule = (("OWNER",),)
OWNERS_AND_ADMINS: Rule = (("OWNER",), role("ADMIN"))
MANAGERS: Rule = (role("MANAGER"),)
ADMINS: Rule = (role("ADMIN"),)
MANAGERS_AND_ADMINS: Rule = (role("MANAGER"), role("ADMIN"))
OVERSIGHT: Rule = (role("MANAGER"), role("ADMIN"), ("OWNER",))
"""5.1 and 12.2."""
ASSIGNEE_AND_OVERSIGHT: Rule = ((NAMED,), *OVERSIGHT)
"""13.2."""
SLA_LEVELS: tuple[Rule, ...] = (
    NAMED_ELSE_MANAGERS,
    ((NAMED,), role("MANAGER")),
    ((NAMED,), role("MANAGER"), role("ADMIN")),
)
"""13.1, at 12, 24 and 48 hours: each level also tells those of the levels before it."""
NAMED_ELSE_OWNERS_AND_ADMINS: Rule = ((NAMED, "OWNER", "ADMIN"), (NAMED, "ADMIN", "OWNER"))
"""A level's own recipients (8.1)."""
SITE_TEAM: Rule = ((SITE_PEOPLE, *role("ADMIN")),)
"""Everyone who is assigned to the site (4.1)."""
RENEWAL_90: Rule = OWNERS_AND_ADMINS
RENEWAL_30: Rule = (*RENEWAL_90, ("SITE STAFF", *role("ADMIN")))
RENEWAL_7: Rule = (*RENEWAL_30, (SITE_PEOPLE,))
REVIEW_LEVELS: tuple[Rule, ...] = (
    (role("TEAM_LEAD"),),
    (role("MANAGER"),),
    (role("ADMIN"), role("COMPLIANCE_OFFICER")),
)
"""17.3, level by level."""
CLIENTS_CONSULTANTS: Rule = ((CONSULTANTS,),)
