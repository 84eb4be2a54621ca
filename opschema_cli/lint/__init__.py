"""Rules, and all that happens to what they find: running, suppressing, baselining, fixing, caching."""
