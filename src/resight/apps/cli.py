"""The `resight` command: names the commands and turns errors into messages and exit codes."""

import io
import sys

import typer

from resight.apps.commands import (
    adding,
    auditing,
    data_sets,
    deduplicating,
    demo,
    evaluating,
    exporting,
    inspecting,
    judging,
    learning,
    locating,
    matching,
    planning,
    proving,
    reporting,
    searching,
    serving,
    training,
    tuning,
)
from resight.errors import ResightError, StorageError

INTERRUPTED = 130

app = typer.Typer(
    name="resight",
    help="Find the very same thing in other images, see where it is, and know how sure the answer is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(
    help="Data sets: which there are, whether one on disk is whole, and its true boxes.", no_args_is_help=True
)

app.command("demo")(demo.demo)
app.command("index")(adding.index)
app.command("delete")(adding.delete)
app.command("search")(searching.search)
app.command("serve")(serving.serve)
app.command("where")(locating.where)
app.command("dedup")(deduplicating.dedup)
app.command("match")(matching.match)
app.command("analogues")(matching.analogues)
app.command("audit")(auditing.audit)
app.command("votes")(auditing.votes)
app.command("review")(auditing.review)
app.command("eval")(evaluating.evaluate)
app.command("judge")(judging.judge)
app.command("report")(reporting.report)
app.command("identity")(proving.identity)
app.command("tune")(tuning.tune)
app.command("plan")(planning.plan)
app.command("export")(exporting.export)
app.command("info")(inspecting.info)
app.command("encoders")(inspecting.encoders)
app.command("codebook")(learning.codebook)
app.command("whiten")(learning.whiten)
app.command("calibrate")(learning.calibrate)
app.command("train")(training.train)
data.command("list")(data_sets.list_data)
data.command("check")(data_sets.check_data)
data.command("boxes")(data_sets.write_boxes)
app.add_typer(data, name="data")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except ResightError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:  # typer turns Ctrl-C into this, without a word
            print("stopped; what was stored is kept, and the same command goes on from there", file=sys.stderr)
        raise
    except OSError as error:
        print(
            f"error: the system refused: {error}\n  fix: check the path, its permissions and the space left",
            file=sys.stderr,
        )
        sys.exit(StorageError.exit_code)
