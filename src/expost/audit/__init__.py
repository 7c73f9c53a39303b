"""Lower bounds on delta: the exact divergence of real neighbouring data sets in one and two dimensions."""

from expost.audit.divergence import Audit as Audit, hockey_stick as hockey_stick
from expost.audit.search import (
    Pair as Pair,
    PlanAudit as PlanAudit,
    audit_plan as audit_plan,
    worst_pair as worst_pair,
)
