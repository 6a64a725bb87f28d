"""Two trees in, the kernels that differ between them out: which are new, gone or changed, and how.

python tools/replay.py b975d25 HEAD         # two commits
python tools/replay.py HEAD                 # a commit, and the working tree as it is
python tools/replay.py A B --only 'A @ x'   # the calls whose names a regular expression finds
python tools/replay.py A B --names          # without the differences' text

Both trees run the calls of `tools/replay_calls.py`, each in a process of its own, and every kernel that is asked of the
kernel cache is recorded as loop IR. A kernel is its text without its name: where code only moves, nothing differs. A
tree may be a folder with `src/openwork`, too. What a commit gave is kept for the next time in the folder that `--keep`
names. Exit status: 0 where no kernel differs, 1 where one does, 2 where something could not be run.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("tools/replay.py", "tools/replay_calls.py", "tests/golden/golden_calls.py", "tests/golden/kernel_recorder.py")
"""What the recording depends on beside the tree."""
KEPT = Path(tempfile.gettempdir()) / f"openwork-replay-{os.getuid() if hasattr(os, 'getuid') else 'kept'}"


@dataclass(frozen=True)
class Kernel:
    """A kernel's loop IR without its name, the call that asked for it first, and its name."""

    text: str
    call: str
    name: str


@dataclass(frozen=True)
class Recording:
    """What a tree made of the calls: its kernels, and the calls that it refused, with the error."""

    kernels: tuple[Kernel, ...]
    refused: dict[str, str]


@dataclass(frozen=True)
class Difference:
    """Kernels that only the first tree has, that only the second has, and pairs that one call asked for."""

    gone: tuple[Kernel, ...]
    new: tuple[Kernel, ...]
    changed: tuple[tuple[Kernel, Kernel], ...]

    def __bool__(self) -> bool:
        return bool(self.gone or self.new or self.changed)


# -- recording, in the tree's own process --------------------------------------------------------------------------


def record(only: str) -> str:
    """The kernels of the calls that `only` finds, in the tree that is imported, as JSON."""
    from replay_calls import calls

    import openwork as ow

    from kernel_recorder import recorded  # isort: skip  (its folder is on the path once replay_calls is there)

    warnings.simplefilter("ignore")
    ow.set_num_threads(1)
    kernels: dict[str, Kernel] = {}
    refused: dict[str, str] = {}
    with recorded() as asked:
        for call, run in calls():
            if not re.search(only, call):
                continue
            first = len(asked)
            try:
                run()
            except Exception as error:
                refused[call] = type(error).__name__
            for kernel in asked[first:]:
                text, name = _without_name(kernel.executable.loops)
                kernels.setdefault(text, Kernel(text, call, name))
    return json.dumps({"kernels": [vars(k) for k in kernels.values()], "refused": refused})


def _without_name(loops: str) -> tuple[str, str]:
    found = re.search(r"^def (\w+)\(", loops, re.MULTILINE)
    assert found is not None, loops
    return f"{loops[: found.start(1)]}kernel{loops[found.end(1) :]}", found[1]


# -- the two trees ---------------------------------------------------------------------------------------------------


def recording(tree: str | None, only: str, keep: Path) -> Recording:
    """The recording of a commit, a folder, or of the working tree (None)."""
    if tree is None:
        return _run(ROOT, only)
    if (Path(tree) / "src" / "openwork").is_dir():
        return _run(Path(tree), only)
    commit = _git("rev-parse", "--verify", "--quiet", f"{tree}^{{commit}}").decode().strip()
    digest = hashlib.sha256("".join((ROOT / name).read_text() for name in FILES).encode() + only.encode())
    kept = keep / f"{commit}-{digest.hexdigest()[:16]}.json"
    if kept.exists():
        return _read(kept.read_text())
    with tempfile.TemporaryDirectory(prefix="openwork-replay-") as folder:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, "src"))) as archive:
            archive.extractall(folder, filter="data")
        found = _run(Path(folder), only)
    keep.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"kernels": [vars(k) for k in found.kernels], "refused": found.refused}))
    return found


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"replay: git {' '.join(arguments)}: {done.stderr.decode().strip() or 'no such commit'}")
    return done.stdout


def _run(tree: Path, only: str) -> Recording:
    """A process that imports the tree, with kernels compiled quickly and kept nowhere."""
    settings = {"PYTHONPATH": str(tree / "src"), "OPENWORK_CACHE": "0", "OPENWORK_OPTIMIZE": "0"}
    command = [sys.executable, str(ROOT / "tools" / "replay.py"), "--record", "--only", only]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    if done.returncode:
        raise SystemExit(f"replay: {tree} cannot be run:\n{done.stderr}")
    return _read(done.stdout)


def _read(text: str) -> Recording:
    found = json.loads(text)
    return Recording(tuple(Kernel(**k) for k in found["kernels"]), found["refused"])


# -- what differs ----------------------------------------------------------------------------------------------------


def compare(before: Recording, after: Recording) -> Difference:
    """The kernels of one recording that the other lacks; those that one call asked for under one name are pairs."""
    olds, news = ({k.text for k in r.kernels} for r in (before, after))
    gone = [k for k in before.kernels if k.text not in news]
    new = [k for k in after.kernels if k.text not in olds]
    changed = []
    for same in (lambda a, b: (a.call, a.name) == (b.call, b.name), lambda a, b: a.call == b.call):
        for old in list(gone):
            pair = next((k for k in new if same(old, k)), None)
            if pair is not None:
                changed.append((old, pair))
                gone.remove(old)
                new.remove(pair)
    return Difference(tuple(gone), tuple(new), tuple(changed))


def report(before: Recording, after: Recording, names_only: bool) -> str:
    """The difference for a reader: a line for each kernel, the text once for all that differ alike, and a summary."""
    found = compare(before, after)
    lines: list[str] = []
    alike: dict[tuple[str, ...], list[tuple[Kernel, Kernel]]] = {}
    for pair in found.changed:
        alike.setdefault(_edits(*pair), []).append(pair)
    for pairs in alike.values():
        for old, new in pairs:
            name = old.name if old.name == new.name else f"{old.name} -> {new.name}"
            lines.append(f"changed  {name}, first asked for by {old.call}")
        if not names_only:
            old, new = pairs[0]
            diff = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), "before", "after", lineterm="")
            lines += [f"    {line}" for line in diff]
    for word, kernels in (("gone", found.gone), ("new", found.new)):
        for kernel in kernels:
            lines.append(f"{word:<8} {kernel.name}, first asked for by {kernel.call}")
            if not names_only:
                lines += [f"    {line}" for line in kernel.text.splitlines()]
    for call in sorted(before.refused.keys() ^ after.refused.keys()):
        old_word, new_word = (r.refused.get(call, "runs") for r in (before, after))
        lines.append(f"call     {call}: {old_word} -> {new_word}")
    lines.append(
        f"{len(before.kernels)} kernels before, {len(after.kernels)} after: "
        f"{len(found.changed)} changed, {len(found.gone)} gone, {len(found.new)} new"
    )
    return "\n".join(lines)


def _edits(old: Kernel, new: Kernel) -> tuple[str, ...]:
    """The lines that differ, without their places: kernels that differ alike are shown together."""
    lines = difflib.ndiff(*([line.strip() for line in k.text.splitlines()] for k in (old, new)))
    return tuple(line for line in lines if line[0] in "+-")


def main(arguments: list[str]) -> int:
    """Run both trees and print what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", nargs="?", default="HEAD", help="commit or folder")
    parser.add_argument("after", nargs="?", help="commit or folder; without, the working tree")
    parser.add_argument("--only", default="", help="regular expression of calls' names")
    parser.add_argument("--names", action="store_true", help="names of kernels, without their text")
    parser.add_argument("--keep", type=Path, default=KEPT, help="folder for what commits gave")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.record:
        print(record(options.only))
        return 0
    before, after = (recording(tree, options.only, options.keep) for tree in (options.before, options.after))
    print(report(before, after, options.names))
    return int(bool(compare(before, after)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
