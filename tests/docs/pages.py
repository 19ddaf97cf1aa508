"""Reads the console blocks of a page. README.md beside this file has the rules."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATTERNS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "deploy/*.md", "examples/**/*.md")


class Command:
    def __init__(self, text, line):
        self.text, self.line, self.output = text, line, ""

    def is_server(self):
        """Does it serve until it is stopped?"""
        starts = re.match(r"(\S*/)?(penstock\s+serve|serve)\b", self.text)
        return bool(starts) and not re.search(r"--(help|print-config)\b", self.text)


class Block:
    def __init__(self, page, line, marks):
        self.page, self.line, self.commands = page, line, []
        self.not_run, self.needs, self.exit = marks.get("not run"), marks.get("needs"), int(marks.get("exit", 0))

    def __repr__(self):
        return f"{self.page}:{self.line}"


def is_complete(command):
    return subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode == 0 and not command.endswith("\\")


def read_block(block, lines, first_line):
    """Commands and what each prints, from the lines between the fences."""
    open_command = None
    for number, line in enumerate(lines, first_line):
        if open_command is not None:
            open_command.text += "\n" + line
        elif line.startswith("$ "):
            open_command = Command(line[2:], number)
            block.commands.append(open_command)
        elif block.commands:
            block.commands[-1].output += line + "\n"
        else:
            raise ValueError(f"{block.page}:{number}: output before the first command")
        if open_command is not None and is_complete(open_command.text):
            open_command = None
    if open_command is not None:
        raise ValueError(f"{block.page}:{open_command.line}: the command has no end: {open_command.text}")
    if not block.commands:
        raise ValueError(f"{block.page}:{block.line}: a console block without a command")


def read_page(page, text):
    """The page's console blocks in order. Raises ValueError for what a page must not have."""
    blocks, marks, fence, body = [], {}, None, []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.fullmatch(r"<!-- (not run|needs|exit): (.+) -->", line.strip())
        if fence is None and line.startswith("```"):
            fence, start, body = line[3:].strip(), number, []
            if fence in ("sh", "bash", "shell"):
                raise ValueError(f"{page}:{number}: commands stand in console blocks, not in {fence}")
        elif fence is not None and line.startswith("```"):
            if fence == "console":
                blocks.append(Block(page, start, marks))
                read_block(blocks[-1], body, start + 1)
            fence, marks = None, {}
        elif fence is not None:
            body.append(line)
            if fence != "console" and line.startswith("$ "):
                raise ValueError(f"{page}:{number}: a command outside a console block: {line}")
        elif mark:
            marks[mark[1]] = mark[2]
        elif line.strip():
            if marks:
                raise ValueError(f"{page}:{number}: the mark before this line belongs to no block")
            if re.match(r" *\$ ", line):
                raise ValueError(f"{page}:{number}: a command outside a console block: {line}")
    return blocks


def pages():
    return sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})


def matches(expected, printed):
    """Is `printed` what the page prints? `...` matches anything; a line break of the page any white space or none; blanks any blanks."""
    pattern = ""
    for piece in re.split(r"(\.\.\.|\s+)", expected.strip()):
        if piece == "...":
            pattern += r".*?"
        elif piece.isspace():
            pattern += r"\s*" if "\n" in piece else r"\s+"
        else:
            pattern += re.escape(piece)
    return re.fullmatch(pattern, printed.strip(), re.S) is not None
