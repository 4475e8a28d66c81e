"""Tables whose keys are integers, texts and UUIDs, and some that cannot be guarded."""

from __future__ import annotations

from django.db import models


class Customer(models.Model):  # type: ignore[misc]
    """Its own key is made by the database."""

    name = models.CharField(max_length=50, default="")
    tags = models.ManyToManyField("self")

    class Meta:
        app_label = "shop"


class Basket(models.Model):  # type: ignore[misc]
    """Guarded by `customer`, an integer that need not lead anywhere."""

    customer = models.IntegerField()
    slot = models.IntegerField(default=0)
    note = models.CharField(max_length=50, default="")

    class Meta:
        app_label = "shop"
        constraints = (models.UniqueConstraint(fields=["customer", "slot"], name="one"),)


class BasketArchive(models.Model):  # type: ignore[misc]
    """The name of its table begins with that of another."""

    customer = models.IntegerField()

    class Meta:
        app_label = "shop"


class Coupon(models.Model):  # type: ignore[misc]
    """Guarded by texts and UUIDs; one of them may be missing."""

    code = models.CharField(max_length=50, primary_key=True)
    token = models.UUIDField(null=True)
    price = models.DecimalField(max_digits=5, decimal_places=2, default=0)
    owner = models.ForeignKey(Customer, models.CASCADE, null=True)

    class Meta:
        app_label = "shop"


class Folded(models.Model):  # type: ignore[misc]
    """Only looked at: no database has its table."""

    code = models.CharField(max_length=50, db_collation="nocase")

    class Meta:
        app_label = "shop"


class Nickname(models.Model):  # type: ignore[misc]
    """The test makes its table, with a column that compares without case."""

    name = models.CharField(max_length=4)

    class Meta:
        app_label = "shop"
        managed = False


MODELS = (Customer, Basket, BasketArchive, Coupon)
