"""Writes the pages of the site to ``build/website``, of which ``mkdocs`` then makes the site."""

from website.build import ROOT, write_pages

write_pages(ROOT / "build/website")
