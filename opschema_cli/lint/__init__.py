"""Rules, and the processing of their findings: running, suppressing, baselining, fixing, caching."""
