"""Files and databases around filters."""

from bloomtide.store.exact import ExactSet
from bloomtide.store.ledger import Ledger
from bloomtide.store.repair import RepairReport, repair

__all__ = ["ExactSet", "Ledger", "RepairReport", "repair"]
