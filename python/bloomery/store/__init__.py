"""Files and databases around filters."""

from bloomery.store.exact import ExactSet
from bloomery.store.ledger import Ledger
from bloomery.store.repair import RepairReport, repair

__all__ = ["ExactSet", "Ledger", "RepairReport", "repair"]
