"""The reader of pages and the comparison: what they take and what they refuse."""
import pytest

from pages import matches, read_page

PAGE = """\
Text.

```console
$ first -d '{
    "a": 1}'
{"b": 2}
$ second | \\
    third
```

<!-- needs: .cache/minilm -->
<!-- exit: 2 -->

```console
$ penstock serve --model x=y    # until Ctrl-C
```

```json
{"not": "a command"}
```
"""


def test_blocks_and_commands():
    first, second = read_page("page.md", PAGE)
    assert [c.text for c in first.commands] == ["first -d '{\n    \"a\": 1}'", "second | \\\n    third"]
    assert [c.output for c in first.commands] == ['{"b": 2}\n', ""]
    assert (first.needs, first.exit, first.line) == (None, 0, 3)
    assert (second.needs, second.exit, second.commands[0].is_server()) == (".cache/minilm", 2, True)


@pytest.mark.parametrize("command, is_server", [
    ("./serve", True), ("./serve minilm --threads 2", True), ("penstock serve --config a.json", True),
    ("build/release/bin/penstock serve", True), ("penstock serve --help", False), ("./serve --help", False),
    ("penstock inspect serve", False), ("curl http://127.0.0.1:8080/serve", False), ("penstock serve --print-config", False),
])  # fmt: skip
def test_servers(command, is_server):
    assert read_page("p", f"```console\n$ {command}\n```\n")[0].commands[0].is_server() == is_server


@pytest.mark.parametrize("text", [
    "```sh\nmake\n```\n",
    "```console\nno command\n```\n",
    "```console\n```\n",
    "```console\n$ echo 'open\n```\n",
    "    $ indented command\n",
    "```text\n$ command\n```\n",
    "<!-- not run: why -->\nNot a block.\n",
])  # fmt: skip
def test_what_a_page_must_not_have(text):
    with pytest.raises(ValueError):
        read_page("p", text)


@pytest.mark.parametrize("expected, printed", [
    ("a 1 b", "a 1 b\n"), ("a ... b", "a 12.5 ms b"), ("a...", "a\nb\nc"), ("[1,\n 2]", "[1,2]"), ("[1,\n 2]", "[1, 2]"),
    ("a  b", "a b"), ("...", ""),
])  # fmt: skip
def test_output_that_matches(expected, printed):
    assert matches(expected, printed)


@pytest.mark.parametrize("expected, printed", [
    ("a 1 b", "a 2 b"), ("a", "a\nb"), ("a b", "ab"), ("1.5", "1x5"), ("a ... b", "a 12.5 ms"), ("x", ""),
])  # fmt: skip
def test_output_that_differs(expected, printed):
    assert not matches(expected, printed)
