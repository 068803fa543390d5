"""Links between landmarks, in every form in which people have them; counted from 1, and none that cannot be."""

import numpy as np
import pytest

from dpmanifold import InvalidArgumentError, InvalidDataError
from dpmanifold.data import landmark_links

pytestmark = pytest.mark.security

PAIRS = [[1, 2], [2, 3], [3, 1]]


@pytest.mark.parametrize(
    "links",
    ["1-2,2-3,3-1", " 1 - 2 , 2-3, 3-1 ", "1-2-3-1", "01-2-3-1", PAIRS, np.array(PAIRS), np.array(PAIRS, dtype=float),
     tuple(map(tuple, PAIRS)), iter(PAIRS)],
)  # fmt: skip
def test_texts_and_pairs(links):
    found = landmark_links(links, landmarks=3)
    assert found.tolist() == PAIRS
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n2 3\n3 1\n",
        "1\t2\r\n2\t3\r\n3\t1",
        "from,to\n1,2\n2,3\n3,1\n",
        '"V1" "V2"\n1 2\n2 3\n3 1\n',
        "\ufeff1;2\n\n2;3\n3;1\n\n",
        '"1","2"\n"2","3"\n"3","1"\n',
    ],
)
def test_files(tmp_path, text):
    path = tmp_path / "links.txt"
    path.write_bytes(text.encode())
    assert landmark_links(path).tolist() == PAIRS
    assert landmark_links(str(path), landmarks=5).tolist() == PAIRS


def test_what_is_no_link_is_refused(tmp_path):
    for links, message in [
        ("1-9", "names landmark 9, and there are 8"),
        ([[0, 1], [1, 2]], r"counted from 1, and the pair at index 0"),
        ("1-2, 3-3", "index 1 joins a landmark with itself"),
        ("nowhere.txt", "neither a file nor links"),
        ("", "neither a file nor links"),
        ("1-2,", "neither a file nor links"),
        ([], "pairs of whole numbers"),
        ([[1, 2, 3]], "pairs of whole numbers"),
        ([[1.5, 2.0]], "pairs of whole numbers"),
        ([[1, 2], [3]], "pairs of whole numbers"),
        (7, "pairs of whole numbers"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            landmark_links(links, landmarks=8)
    path = tmp_path / "links.txt"
    for text, message in {
        "1 2\n2 3 4\n": "line 2",
        "1 2\nx y\n": "line 2",
        "1\n": "line 1",
        "from\n2 x\n": "line 2",
    }.items():
        path.write_text(text)
        with pytest.raises(InvalidDataError, match=rf"links\.txt: {message} is not a pair"):
            landmark_links(path)
    path.write_text("from to\n")
    with pytest.raises(InvalidArgumentError, match="no pair"):
        landmark_links(path)
    path.write_bytes(b"\xff\xfe1")
    with pytest.raises(InvalidDataError, match="as text"):
        landmark_links(path)
