"""The commands' help, and their errors for wrong flags."""
import subprocess

import pytest
import serving

COMMANDS = ["serve", "inspect", "compile", "bench", "plan"]


def run(*arguments):
    return subprocess.run([str(serving.BINARY), *arguments], capture_output=True, text=True, timeout=600)


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
        ("bench", "--model DIR is missing"),
        (BENCH + "--threads abc", '--threads: "abc" is not a whole number from 1 to 64'),
        (BENCH + "--threads 65", '--threads: "65" is not a whole number from 1 to 64'),
        (BENCH + "--batch 0", '--batch: "0" is not a whole number from 1 to 1024'),
        (BENCH + "--batch 2.5", '--batch: "2.5" is not a whole number'),
        (BENCH + "--seconds nan", '--seconds: "nan" is not a number from 0.01 to 3600'),
        (BENCH + "--precision fp8", '--precision: "fp8" is not one of fp32, bf16, int8'),
        (BENCH + "more", 'unexpected argument "more"'),
        (BENCH + "--nope", "unknown flag --nope"),
        ("inspect", "MODEL is missing"),
        ("inspect a b", 'unexpected argument "b"'),
        ("inspect --precision fp8 a", '--precision: "fp8" is not one of fp32, bf16, int8'),
        ("inspect --jsno a", "unknown flag --jsno; did you mean --json?"),
        ("compile", "--model DIR is missing"),
        ("compile --precision fp8", '--precision: "fp8" is not one of fp32, bf16, int8'),
        ("compile --model m more", 'unexpected argument "more"'),
        ("compile --batch 0", '--batch: "0" is not a list of up to 32 whole numbers from 1'),
        ("compile --model m --target tpu:v9:1x1 --cache c --plugin p", '--target: "tpu:v9:1x1" is not tpu:GENERATION:TOPOLOGY'),
        ("plan --max-buckets 65 --lengths f", '--max-buckets: "65" is not a whole number from 1 to 64'),
        ("plan --nope", "unknown flag --nope"),
        ("serve --nope", "--nope: unknown flag"),
    ],
)
def test_wrong_usage_is_explained(line, words):
    done = run(*line.split())
    assert done.returncode == 2 and words in done.stderr and done.stdout == "", done
    command = line.split()[0]
    assert f"penstock {command}: " in done.stderr and f"penstock {command} --help" in done.stderr
