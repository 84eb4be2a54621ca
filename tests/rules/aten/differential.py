"""Random mutants of the files of one release, judged by its own torchgen and by opschema.

    PYTHONPATH=corpus/aten/torch-2.6:. python -m tests.rules.aten.differential 500 7

prints how many mutants got each verdict, as JSON, and on stderr each disagreement. The torchgen is the first on the path.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

from tests.rules.aten.oracle import RELEASE
from tests.rules.aten.test_against_torchgen import judge, trees


def main() -> None:
    """Judge as many mutants as are asked for."""
    count, seed = map(int, sys.argv[1:3])
    verdicts: Counter[str] = Counter()
    for mutant in trees(count, seed):
        judged = judge(mutant)
        verdicts[judged.verdict] += 1
        if not judged.verdict.startswith("both"):
            print(judged, file=sys.stderr)
    print(json.dumps({"release": RELEASE, **verdicts}))


if __name__ == "__main__":
    main()
