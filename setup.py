"""The package's page has the README with absolute links; those of a checkout are relative, to the files beside it."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def absolute(text: str, repository: str) -> str:
    """The text with its relative links, and those of its pictures, under the address of the repository."""
    files = repository.replace("github.com", "raw.githubusercontent.com") + "/main/"
    text = re.sub(r'((?:src|srcset)=")(?!https?:)', rf"\1{files}", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{repository}/blob/main/", text)


if __name__ == "__main__":
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=absolute(readme, project["urls"]["Repository"]),
        long_description_content_type="text/markdown",
    )
