"""`penstock plan`: what it prints for programs, and what it says about input that will not do."""
import json
import subprocess

import pytest

import serving


def plan(*arguments):
    return subprocess.run([serving.BINARY, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    "text, said",
    [("", "contains no lengths"), ("5\n0\n", ':2: "0"'), ("-3\n", ':1: "-3"'), ("5\nabc\n", ':2: "abc"'), ("5 6\n", '"5 6"'), ("65537\n", "from 1 to 65536"), ("2.5\n", '"2.5"'), ("99999999999999999999\n", "from 1 to 65536"), ("[1, 2\n", '"[1, 2"')],
)
def test_lengths_that_will_not_do(tmp_path, text, said):
    path = tmp_path / "lengths.txt"
    path.write_text(text)
    done = plan("--lengths", path)
    assert done.returncode == 1 and str(path) in done.stderr and said in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there(tmp_path):
    done = plan("--lengths", tmp_path / "none.txt")
    assert done.returncode == 1 and "none.txt: No such file" in done.stderr


@pytest.mark.parametrize("value", ["0", "65", "1000000000000", "-1", "2.5", "many", ""])
def test_a_number_of_buckets_that_will_not_do(tmp_path, value):
    done = plan("--lengths", tmp_path / "lengths.txt", "--max-buckets", value)
    assert done.returncode == 2 and "--max-buckets" in done.stderr and "from 1 to 64" in done.stderr and f'"{value}"' in done.stderr


def test_json(tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("5\n7\n7\n30\n")
    found = json.loads(plan("--lengths", path, "--max-buckets", 2, "--json").stdout)
    assert found["sequence"] == [7, 30] and found["waste"] == pytest.approx(2 / 51, abs=1e-5)
    assert [b["rows"] for b in found["buckets"]] == [3, 1]
    assert found["powers_of_two"]["waste"] == pytest.approx(1 - 49 / (3 * 16 + 32), abs=1e-5)
    assert found["lengths"]["count"] == 4 and found["lengths"]["max"] == 30


def test_many_lengths_take_no_time(tmp_path):
    """All that there can be, and as many buckets: 0.3 s, and 89 s where every end of a bucket is tried."""
    path = tmp_path / "lengths.txt"
    path.write_text("".join(f"{i}\n" for i in range(1, 65537)))
    found = json.loads(plan("--lengths", path, "--max-buckets", 64, "--json").stdout)
    assert found["sequence"] == list(range(1024, 65537, 1024))
