import numpy as np
from PIL import Image

from resight.audit.dedup.grey_thumbnails import make_thumbnails
from resight.store import ImageRecord


def make_records(folder, count):
    records = []
    for number in range(count):
        file = folder / f"{number}.png"
        Image.new("L", (20, 10), 40 * number).save(file)
        records.append(ImageRecord(str(number), file, str(number), 1, 0, (20, 10)))
    return records


def test_some_thumbnails_are_rows_of_the_file_and_no_copy_of_it(tmp_path):
    made = make_thumbnails(make_records(tmp_path, 4), tmp_path / "grey.npy")
    some = made.choose([3, 1]).choose([1, 0])
    assert some.ids == ("1", "3")
    assert [int(picture[0, 0]) for picture in some.grey] == [40, 120]
    assert len(some.grey) == 2
    assert np.shares_memory(some.grey[1], made.grey[3])
