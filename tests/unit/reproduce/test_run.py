"""Functions in processes of their own: answers, failures, deaths, memory of answers."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from resight.errors import InputError, MissingWeights
from resight.reproduce import worker
from resight.reproduce.run import DataFolders, NotRun, Run, describe_death, make_key

HERE = "support_isolated"
MODULE = """
import os, signal, time
from pathlib import Path
from resight.errors import MissingWeights
from resight.reproduce import worker

def add(first, second, log):
    with open(log, "a") as file:
        file.write("ran ")
    print("noise")
    worker.report("adding")
    return {"sum": first + second}

def refuse():
    raise MissingWeights("no weights", expected="weights", fix="fetch them")

def divide():
    return {"value": 1 / 0}

def exhaust():
    raise MemoryError("too large")

def die(number):
    os.kill(os.getpid(), number)

def leave():
    os._exit(3)

def wrong():
    return [1]

def sleep(mark):
    Path(mark).write_text(str(os.getpid()))
    time.sleep(60)
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that child processes can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{HERE}.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return HERE


def test_an_answer_is_remembered_until_arguments_or_files_change(functions: str, tmp_path: Path) -> None:
    lines: list[str] = []
    log, data = tmp_path / "log", tmp_path / "data"
    data.mkdir()
    run = Run(tmp_path / "run", report=lines.append)

    def ask(second: int) -> Any:
        return run.isolate(f"{functions}:add", {"first": 1, "second": second, "log": str(log)})

    log.write_text("")
    os.utime(log, ns=(0, 0))
    assert ask(2) == {"sum": 3}
    assert lines == ["adding"]  # what the function prints is no progress
    log.write_text("")
    os.utime(log, ns=(0, 0))
    assert ask(2) == {"sum": 3}
    assert log.read_text() == ""  # it did not run again
    assert [path.suffix for path in run.folder.iterdir()] == [".json"]
    log.write_text("changed")
    assert ask(2) == {"sum": 3}
    assert log.read_text() == "changedran "


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        ("refuse", {}, "no weights; fetch them"),
        ("divide", {}, "ZeroDivisionError: division by zero"),
        ("exhaust", {}, "out of memory (too large)"),
        ("die", {"number": int(signal.SIGKILL)}, "out of memory (killed)"),
        ("leave", {}, "ended with exit code 3"),
    ],
)
def test_a_failure_is_a_reason_and_is_not_remembered(
    functions: str, tmp_path: Path, function: str, arguments: dict[str, Any], reason: str
) -> None:
    run = Run(tmp_path / "run")
    assert run.isolate(f"{functions}:{function}", arguments) == NotRun(reason)
    assert list(run.folder.iterdir()) == []


def test_deaths_have_names() -> None:
    assert describe_death(-signal.SIGSEGV, "") == "crashed (segmentation fault); a lack of memory can cause this"
    assert describe_death(-signal.SIGUSR1, "") == "crashed (SIGUSR1)"
    assert describe_death(1, "ImportError: x") == "ended with exit code 1: ImportError: x"


def test_an_answer_is_a_dict_that_json_can_hold() -> None:
    assert worker.answer("builtins:sorted", {"iterable": []})["reason"].startswith("TypeError")
    assert worker.answer("builtins:dict", {"a": 1}) == {"answer": {"a": 1}}
    assert worker.answer("builtins:dict", {"a": {1}})["reason"].startswith("TypeError: Object of type set")
    assert worker.answer("no_such_module:f", {})["reason"].startswith("ModuleNotFoundError")


def test_errors_are_told_in_one_line() -> None:
    error = MissingWeights("no\n weights", expected="x", actual="y", fix="fetch them")
    assert worker.describe(error) == "no weights; fetch them"
    assert worker.describe(RuntimeError("DefaultCPUAllocator: can't allocate memory")).startswith("out of memory (")
    assert worker.describe(KeyError()) == "KeyError"


def test_ctrl_c_ends_the_child(functions: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # whose wait it interrupts

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "run").isolate(f"{functions}:sleep", {"mark": str(mark)})
    thread.join()
    assert not is_alive(int(mark.read_text()))
    assert list((tmp_path / "run").iterdir()) == []


def test_a_killed_parent_takes_its_child_with_it(functions: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = (
        "from pathlib import Path; from resight.reproduce.run import Run; "
        f"Run(Path({str(tmp_path / 'run')!r})).isolate({f'{functions}:sleep'!r}, {{'mark': {str(mark)!r}}})"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for(mark.exists)
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: not is_alive(int(mark.read_text())))


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_key_ignores_the_folder_of_the_answers(tmp_path: Path) -> None:
    answers = tmp_path / "reproduce" / "runs"
    answers.mkdir(parents=True)
    arguments = {"root": str(tmp_path)}
    before = make_key("m:f", arguments, answers)
    (answers / "new.json").write_text("")
    os.utime(tmp_path / "reproduce", ns=(1, 1))
    assert make_key("m:f", arguments, answers) == before
    (tmp_path / "truth.csv").write_text("")
    assert make_key("m:f", arguments, answers) != before
    assert make_key("m:g", arguments, answers) != before


def test_data_sets_are_found_in_the_given_folders(tmp_path: Path) -> None:
    for name in ("instre", "own"):
        (tmp_path / name).mkdir()
    assert DataFolders(tmp_path).find("instre") == tmp_path / "instre"
    assert DataFolders(tmp_path, alone="ilias").find("ilias") == tmp_path  # the root is the data set itself
    assert DataFolders(tmp_path, {"ilias": tmp_path / "own"}).find("ilias") == tmp_path / "own"
    for folders in (DataFolders(), DataFolders(tmp_path), DataFolders(None, {"ilias": tmp_path / "none"})):
        with pytest.raises(InputError, match="ilias") as caught:
            folders.find("ilias")
        assert "--data ilias=PATH" in caught.value.fix
