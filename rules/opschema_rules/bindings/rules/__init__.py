"""The rules of the pack; each module holds a few that share one idea."""
