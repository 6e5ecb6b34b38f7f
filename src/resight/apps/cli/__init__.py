"""One module a command. Their tops import nothing heavy: `resight --help` has to answer at once.

The `resight` command: names the commands and turns errors into messages and exit codes.
"""

import io
import sys

import typer

from resight.apps.cli import (
    audit,
    dedup,
    demo,
    eval,
    index,
    info,
    judge,
    learn,
    locate,
    plan,
    report,
    search,
    serve,
    train,
    tune,
)
from resight.apps.cli import data as data_sets
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
app.command("index")(index.index)
app.command("delete")(index.delete)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.command("where")(locate.where)
app.command("dedup")(dedup.dedup)
app.command("match")(dedup.match)
app.command("analogues")(dedup.analogues)
app.command("audit")(audit.audit)
app.command("votes")(audit.votes)
app.command("review")(audit.review)
app.command("eval")(eval.evaluate)
app.command("judge")(judge.judge)
app.command("report")(report.report)
app.command("identity")(tune.identity)
app.command("tune")(tune.tune)
app.command("plan")(plan.plan)
app.command("export")(index.export)
app.command("info")(info.info)
app.command("encoders")(info.encoders)
app.command("codebook")(learn.codebook)
app.command("whiten")(learn.whiten)
app.command("calibrate")(learn.calibrate)
app.command("train")(train.train)
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
