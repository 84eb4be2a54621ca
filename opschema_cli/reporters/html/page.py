"""The frame of a page: one file that loads nothing, with the styles, the switch of the theme, and a policy that allows no other
script or style.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from opschema_cli.reporters.html.elements import text

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


def render(title: str, body: str, name: str) -> str:
    """A page with the style sheet of a name, and its script if it has one, besides those of all pages; ``body`` is HTML."""
    style = _asset("base.css") + _asset(f"{name}.css")
    script = _asset("base.js") + _asset(f"{name}.js")
    return _PAGE.format(title=text(title), body=body, style=style, script=script, policy=_policy(style, script))


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, and nothing from elsewhere."""
    return (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    asset = files(__package__).joinpath(name)
    return asset.read_text(encoding="utf-8") if asset.is_file() else ""


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
