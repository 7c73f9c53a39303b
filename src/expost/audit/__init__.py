"""Lower bounds on delta: the exact divergence of real neighbouring data sets in one and two dimensions.

An accountant proves that delta is at most something; the functions here show that it is at least something.
A claimed delta below an audited one is wrong, and one just above it cannot be improved.
"""

from expost.audit.certificate import PlanAudit as PlanAudit, audit_plan as audit_plan
from expost.audit.divergence import Audit as Audit, hockey_stick as hockey_stick
from expost.audit.search import Pair as Pair, worst_pair as worst_pair
