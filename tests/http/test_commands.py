"""The subcommands that do not serve: their help, and what they say of wrong flags."""
import subprocess

import pytest
import serving

COMMANDS = ["serve", "inspect", "compile", "bench", "plan"]


def run(*arguments):
    return subprocess.run([str(serving.BINARY), *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    done = run(command, "--help")
    assert done.returncode == 0 and done.stderr == "" and f"penstock {command}" in done.stdout and "--help" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_commands_are_listed():
    done = run("--help")
    assert done.returncode == 0 and all(f"  {command} " in done.stdout for command in COMMANDS)
    assert run("--version").stdout.startswith("penstock ")
    assert run().returncode == 2 and run("sevre").returncode == 2 and 'no command "sevre"' in run("sevre").stderr


BENCH = "bench --model m --sequences s "


@pytest.mark.parametrize(
    "line, words",
    [
        ("bench", "--model and --sequences are needed"),
        (BENCH + "--threads abc", '--threads wants a whole number from 1 to 64, not "abc"'),
        (BENCH + "--threads 65", "--threads wants a whole number from 1 to 64"),
        (BENCH + "--batch 0", "--batch wants a whole number from 1 to 1024"),
        (BENCH + "--batch 2.5", "--batch wants a whole number"),
        (BENCH + "--seconds nan", "--seconds wants a number from 0.01 to 3600"),
        (BENCH + "--precision fp8", '--precision wants fp32, bf16 or int8, not "fp8"'),
        (BENCH + "more", 'what is "more"?'),
        (BENCH + "--nope", "see penstock bench --help"),
        ("inspect", "one model is inspected at a time"),
        ("inspect a b", "one model is inspected at a time"),
        ("inspect --precision fp8 a", "--precision wants fp32, bf16 or int8"),
        ("inspect --nope", "see penstock inspect --help"),
        ("compile", "--model, --target and --cache are needed"),
        ("compile --precision fp8", "--precision wants fp32, bf16 or int8"),
        ("compile --model m more", 'what is "more"?'),
        ("compile --batch 0", "--batch takes up to 32 numbers from 1"),
        ("plan --max-buckets 65 --lengths f", "--max-buckets wants a whole number from 1 to 64"),
        ("plan --nope", 'there is no option "--nope"'),
        ("serve --nope", "--nope: unknown flag"),
    ],
)
def test_wrong_usage_is_explained(line, words):
    done = run(*line.split())
    assert done.returncode == 2 and words in done.stderr and done.stdout == "", done
    assert f"penstock {line.split()[0]}: " in done.stderr
