"""The Django app: from when it is ready, every connection is watched."""

from __future__ import annotations

from django.apps import AppConfig

from bloomtide.integrations.django import watch


class GuardConfig(AppConfig):  # type: ignore[misc]
    """Named in `INSTALLED_APPS`."""

    name = "bloomtide.integrations.django"
    label = "bloomtide"
    verbose_name = "bloomtide"

    def ready(self) -> None:
        """Other apps may open connections when they are ready: name this one first."""
        watch.start()
