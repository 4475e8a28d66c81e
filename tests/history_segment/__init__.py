"""Sealed segments of a history."""
