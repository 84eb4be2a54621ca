"""``python fake_gh.py FILE api ...``: GitHub's ``gh api``, as far as the action needs it.

FILE holds the comments of pull request 7. ``GH_TOKEN`` is ``may-write`` for a token that may write comments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = "repos/me/kit"
COMMENTS = f"{REPOSITORY}/issues/7/comments"


def main(store: Path, words: list[str]) -> None:
    """Answer a request."""
    if os.environ["GH_TOKEN"] != "may-write":
        sys.exit("gh: Resource not accessible by integration (HTTP 403)")
    comments = json.loads(store.read_text()) if store.exists() else []
    assert words[0] == "api"
    if "--jq" in words:
        assert COMMENTS in words
        select = words[words.index("--jq") + 1]
        subprocess.run(["jq", "-r", select], input=json.dumps(comments), text=True, check=True)
        return
    method, address = words[words.index("--method") + 1 :][:2]
    body = Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
    if method == "POST":
        assert address == COMMENTS
        comments.append({"id": 100 + len(comments), "body": body, "user": {"type": "Bot"}})
    else:
        (known,) = (item for item in comments if address == f"{REPOSITORY}/issues/comments/{item['id']}")
        known["body"] = body
    store.write_text(json.dumps(comments))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
