from resight.audit.line_log import LineLog


def test_a_log_goes_on_where_it_was_stopped(tmp_path):
    LineLog.open(tmp_path / "log", "key").add([1, 2.5], [3, None])
    again = LineLog.open(tmp_path / "log", "key")
    assert again.lines == [[1, 2.5], [3, None]]
    again.add([4])
    assert LineLog.open(tmp_path / "log", "key").lines == [[1, 2.5], [3, None], [4]]


def test_another_key_starts_over(tmp_path):
    LineLog.open(tmp_path / "log", "key").add([1])
    assert LineLog.open(tmp_path / "log", "other").lines == []
    assert LineLog.open(tmp_path / "log", "key").lines == []


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    LineLog.open(tmp_path / "log", "key").add([1])
    with (tmp_path / "log").open("a") as file:
        file.write("[2, 3")
    again = LineLog.open(tmp_path / "log", "key")
    assert again.lines == [[1]]
    again.add([5])
    assert LineLog.open(tmp_path / "log", "key").lines == [[1], [5]]
