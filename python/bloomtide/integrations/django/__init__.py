"""Django: a guard in front of a model's table.

    INSTALLED_APPS = ["bloomtide.integrations.django", ...]

    baskets = ModelGuard(Basket, "customer", error_rate=0.01)
    if baskets.may_exist(customer_id):
        ...                                     # ask the database

`ModelGuard` is what to use; the app watches what every connection writes.
"""

from typing import TYPE_CHECKING, Any

from bloomtide import extras

if TYPE_CHECKING:
    from bloomtide.integrations.django.guard import ModelGuard

__all__ = ["ModelGuard"]


def __getattr__(name: str) -> Any:
    """When it is first asked for: Django imports this package before its models can be."""
    if name == "ModelGuard":
        with extras.require("django", "`ModelGuard`"):
            from bloomtide.integrations.django.guard import ModelGuard
        return ModelGuard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
