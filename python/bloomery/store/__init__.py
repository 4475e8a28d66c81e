"""Files and databases around filters."""

from bloomery.store.exact import ExactSet

__all__ = ["ExactSet"]
