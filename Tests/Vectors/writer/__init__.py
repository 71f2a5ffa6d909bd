"""Writes vaults from Format.md alone, the same bytes every time."""
