"""Arguments of the command line -> the command's exit status; bad input is a message on stderr and status 2."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

import openwork as ow
from openwork.errors import suggestion

__all__ = ["BAD_INPUT", "CliError", "main", "one_line", "shown"]

BAD_INPUT = (
    ow.FormatError, ow.ShapeError, ow.InvariantError, ow.DTypeError, ow.FileFormatError, ow.UnsupportedError, OSError,
    EOFError,
)  # fmt: skip


class CliError(Exception):
    """Input that the command line refuses; the message is what the user sees."""


class Parser(argparse.ArgumentParser):
    """argparse, with errors that are short, and say what was meant."""

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if wrong:
            meant = suggestion(wrong[1], EXAMPLES).strip().removeprefix("help: ")
            message = f"no command {wrong[1]!r}; {meant or ', '.join(EXAMPLES)}"
        print(f"{self.prog}: {' '.join(message.split())} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def refuse(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> NoReturn:
    """Ends with the arguments that a command does not take, and the option that is spelt nearly so."""
    meant = suggestion(unknown[0].partition("=")[0], re.findall(r"--[\w-]+", parser.format_usage()))
    parser.error(f"no argument {' '.join(unknown)}{meant.replace(chr(10), ';', 1)}")


def one_line(error: BaseException) -> str:
    """A message of several lines (with carets under the text) as one: its first line, what is supported, its help."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    lines = [line.strip() for line in str(error).splitlines()]
    shown = [line for line in lines if line.strip("^~ ")]
    if not shown:
        return type(error).__name__
    advice = [line for line in shown[1:] if line.startswith(("supported:", "help:"))]
    return "; ".join([shown[0], *advice])


def shown(error: BaseException) -> str:
    """A message as the user sees it: whole where a caret points into the text, else one line."""
    text = str(error)
    return text if any(line.strip() and not line.strip("^~ ") for line in text.splitlines()) else one_line(error)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds between 0 and 3600")
    return value


EXAMPLES = {
    "tour": ("openwork tour", "openwork tour --scale 30"),
    "info": ("openwork info A.mtx", "openwork info A.mtx --json | jq .formats", "openwork info --cache"),
    "convert": (
        "openwork convert A.mtx A.npz --format csr", 'openwork convert A.mtx A.ow --format "bsr(4, 4)" --memory 2GiB',
    ),
    "bench": (
        "openwork bench A.mtx", 'openwork bench A.mtx --op spmv,spmm:32 --formats "csr,bsr(4, 4)" --threads 2',
        "openwork bench T.tns --op mttkrp:16 --json",
    ),
    "kernel": (
        'openwork kernel "y(i) += A(i,j) * x(j)" --formats A=csr',
        'openwork kernel "C(i,k) += A(i,j) * B(j,k)" --formats A=csr,B=csr --dtypes A=float32,B=float32 --show asm',
    ),
    "advise": ("openwork advise A.mtx", "openwork advise A.mtx --op spmv --seconds 5 --threads 4 --json"),
    "plot": ("openwork plot A.mtx --out A.png", "openwork plot A.mtx --kind rows --out rows.svg"),
    "doctor": ("openwork doctor", "openwork doctor --json > installation.json"),
    "formats": ("openwork formats",),
}  # fmt: skip
"""What is shown in the help of each command."""


def build_parser() -> Parser:
    parser = Parser(
        prog="openwork", description="Sparse tensors in any storage format.",
        epilog="`openwork COMMAND --help` has examples. Python: import openwork as ow; help(ow)",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"openwork {ow.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, about: str) -> argparse.ArgumentParser:
        """The parser of a command, whose help has examples."""
        added: argparse.ArgumentParser = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.",
            epilog="\n  ".join(["examples:", *EXAMPLES[name]]), formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        added.set_defaults(parser=added)
        return added

    tour = command("tour", "what openwork does, on matrices made on the spot")
    tour.add_argument("--scale", type=positive, default=100, help="points along one side of the grid (default 100)")

    info = command("info", "shape, structure, and bytes in each format")
    info.add_argument("file", nargs="?")
    info.add_argument("--cache", action="store_true", help="what the cache of kernels holds, and where")

    convert = command("convert", "read a file, change its format, write another")
    convert.add_argument("input")
    convert.add_argument("output")
    convert.add_argument("--format", default=None, help="a name or a format in the language; default: as read")
    convert.add_argument("--memory", default="1GiB", help="memory at most, where both files go in parts (default 1GiB)")

    bench = command("bench", "times against SciPy and torch, results compared")
    bench.add_argument("file")
    bench.add_argument(
        "--op", help="comma-separated, for example spmv,spmm:32,sddmm:32,to_csc,sum:1; default: the usual"
    )
    bench.add_argument("--formats", help="comma-separated; default csr,coo,csc,bsr(4,4), or coo,csf for tensors")
    bench.add_argument("--dtype", default="float64", choices=["float32", "float64", "complex64", "complex128"])
    bench.add_argument("--threads", type=positive, default=1, help="threads of openwork and of torch (default 1)")
    bench.add_argument("--seconds", type=seconds, default=1.0, help="time to spend on each row (default 1)")
    bench.add_argument("--json", action="store_true", help="print JSON instead of a table")

    kernel = command("kernel", "the generated code of one expression")
    kernel.add_argument("expression", help='for example "y(i) += A(i,j) * x(j)"')
    kernel.add_argument("--formats", nargs="+", default=[], metavar="NAME=FORMAT", help="what is not named is dense")
    kernel.add_argument("--dtypes", nargs="+", default=[], metavar="NAME=DTYPE", help="default float64")
    kernel.add_argument("--show", default="loops", choices=["loops", "llvm", "asm"])

    advise = command("advise", "which format suits an operation: bytes and measured times")
    advise.add_argument("file")
    advise.add_argument(
        "--op",
        default="spmm",
        help="spmv, spmm (32 columns, the default), spmv_t, spgemm, add, scale, sum, sum:0, rows",
    )
    advise.add_argument("--seconds", type=seconds, default=1.0, help="time to measure for (default 1)")
    advise.add_argument("--threads", type=positive, default=None, help="threads of kernels (default: as set)")

    plot = command("plot", "a picture: where elements are, row lengths, the tree of levels")
    plot.add_argument("file")
    plot.add_argument("--out", required=True, help="the picture: .png, .svg or .pdf")
    plot.add_argument("--kind", default="spy", choices=["spy", "rows", "levels"])

    doctor = command("doctor", "versions, processor, cache, and one product that is checked")
    command("formats", "the named formats, written in the language")
    for added in (info, advise, doctor):
        added.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser


def end_quietly() -> int:
    """The reader of our output is gone (`| head`): say nothing, also not at interpreter exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 where a comparison failed, 2 for bad input."""
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    if arguments.command is None and not unknown:
        parser.error(f"which command? {', '.join(EXAMPLES)}")
    if unknown:
        refuse(getattr(arguments, "parser", parser), unknown)
    try:
        run: Callable[[argparse.Namespace], int] = import_module(f"{__package__}.{arguments.command}").run
        notice = ow.get_compile_notice()
        ow.set_compile_notice(None)  # commands show how far they are themselves
        try:
            return run(arguments)
        finally:
            ow.set_compile_notice(notice)
    except BrokenPipeError:
        return end_quietly()
    except (CliError, MemoryError, *BAD_INPUT) as error:
        message = shown(error).removeprefix(f"{arguments.command}: ")
        print(f"openwork {arguments.command}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"openwork {arguments.command}: interrupted", file=sys.stderr)
        return 130
