"""Runs every console block of the pages as printed."""
import functools

import pytest

from pages import ROOT, matches, pages, read_page

SERVE = "./serve"  # what runs when a page begins


@functools.lru_cache(None)
def blocks_of(path):
    return read_page(path.relative_to(ROOT).as_posix(), path.read_text())


def all_blocks():
    found = []
    for path in pages():
        try:
            found += blocks_of(path)
        except ValueError:
            pass  # test_page_can_be_read tells
    return found


@pytest.mark.parametrize("path", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_page_can_be_read(path):
    blocks_of(path)


def server_before(block):
    """The server that runs when the block begins: the last one that the page started before."""
    found = SERVE
    for earlier in blocks_of(ROOT / block.page):
        if earlier is block:
            break
        if not earlier.not_run and not (earlier.needs and not (ROOT / earlier.needs).exists()):
            found = next((c.text for c in reversed(earlier.commands) if c.is_server()), found)
    return found


@pytest.mark.parametrize("block", all_blocks(), ids=repr)
def test_block(block, page_of):
    if block.not_run:
        pytest.skip(block.not_run)
    if block.needs and not (ROOT / block.needs).exists():
        pytest.skip(f"{block.needs} is not there")
    page = page_of(block.page)
    if not block.commands[0].is_server():
        page.serve(server_before(block))
    for command in block.commands:
        code, printed = (block.exit, page.serve(command.text)) if command.is_server() else page.run(command.text)
        where = f"{block.page}:{command.line}: $ {command.text}\n"
        assert code == block.exit, f"{where}ended with {code} and printed:\n{printed}"
        if command.output.strip():
            assert matches(command.output, printed), f"{where}printed:\n{printed}\nThe page has:\n{command.output}"
        elif block.exit == 0:
            assert not printed.startswith('{"error"'), f"{where}printed:\n{printed}"
