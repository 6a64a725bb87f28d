"""The Python blocks of pages, run -> what they print, below each in the page.

python tools/outputs.py docs/tutorial.md         # outputs that are shown and have changed are replaced
python tools/outputs.py --add docs/formats.md    # and blocks that print get an output

`...` in an output stands for anything, as in doctest.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?P<shown>\n\n```\{code-block\} text\n:class: output\n\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def is_shown(got: str, shown: str) -> bool:
    """Whether a page shows what was printed."""
    return doctest.OutputChecker().check_output(shown, got, doctest.ELLIPSIS)


def with_outputs(text: str, add: bool) -> str:
    """The page with the outputs of its blocks, which share their names."""
    names: dict[str, object] = {"__name__": "page"}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "page", "exec"), names)
        got, shown = printed.getvalue(), block["output"]
        if (shown is None and not (add and got)) or (shown is not None and is_shown(got, shown)):
            return block[0]
        return f"```python\n{block['code']}```\n\n```{{code-block}} text\n:class: output\n\n{got}```"

    return BLOCK.sub(run, text)


def main(arguments: list[str]) -> None:
    """Rewrite the pages that are named."""
    pages = [Path(a).resolve() for a in arguments if not a.startswith("-")]
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page.write_text(with_outputs(page.read_text(), "--add" in arguments))


if __name__ == "__main__":
    os.environ.setdefault("OPENWORK_NOTICE", "0")
    main(sys.argv[1:])
