"""Zero differences, whatever the text."""
import csv
import os
import pathlib

import pytest

tokenizers = pytest.importorskip("tokenizers")

import compare
import made
import strings

SHARED = pathlib.Path(os.environ.get("PENSTOCK_SHARED", compare.ROOT.parent / "shared"))
STRINGS = int(os.environ.get("TEXT_STRINGS", 20_000))
EACH = 1 if os.environ.get("TEXT_ALL") else 400
FILES = sorted((SHARED / "tokenizers").glob("*.json"))

pytestmark = pytest.mark.skipif(not compare.BINARY.exists(), reason=f"{compare.BINARY} is not built")


def expect_none(differences):
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


def sentences():
    """Of the STS benchmark where it is at hand: single, and as pairs."""
    found = []
    for path in sorted((SHARED / "text").glob("*.csv")):
        with path.open(newline="") as rows:
            for first, second, _ in list(csv.reader(rows))[::EACH]:
                found += [first, [first, second]]
    return found or made.CORPUS[: len(made.CORPUS) // 20]


@pytest.fixture(scope="module", params=[*made.FAMILIES, *(path.stem for path in FILES)])
def case(request, tmp_path_factory):
    """A tokenizer, without the padding and truncation of its file, and its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param in made.FAMILIES:
        tokenizer = made.FAMILIES[request.param]()
        tokenizer.save(str(folder / "tokenizer.json"))
    else:
        (folder / "tokenizer.json").symlink_to(SHARED / "tokenizers" / f"{request.param}.json")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, folder


def test_sentences(case):
    expect_none(compare.differences(*case, sentences()))


TRUNCATIONS = [(16, "longest_first", "right"), (16, "longest_first", "left"), (128, "longest_first", "right"), (16, "only_first", "right"), (17, "only_second", "left")]


def test_truncated_sentences(case):
    tokenizer, folder = case
    for most, strategy, direction in TRUNCATIONS:
        items = [item for item in sentences() if isinstance(item, list) or strategy != "only_second"]
        tokenizer.enable_truncation(most, strategy=strategy, direction=direction)
        try:
            flags = ["--max-tokens", str(most), "--strategy", strategy, *(["--truncate-left"] if direction == "left" else [])]
            expect_none(compare.differences(tokenizer, folder, items[:: 1 if EACH == 1 else 5], *flags))
        finally:
            tokenizer.no_truncation()


def test_random_strings(case):
    tokenizer, folder = case
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()][:20]
    count = STRINGS // (len(made.FAMILIES) + len(FILES))
    for at in range(0, count, 50_000):
        expect_none(compare.differences(tokenizer, folder, strings.strings(min(50_000, count - at), at + 1, added)))


def test_long_words(case):
    expect_none(compare.differences(*case, strings.long_words() if EACH == 1 else [text[:5_000] for text in strings.long_words()]))


def test_older_files_give_the_same_tokens(tmp_path):
    """vocab.txt, and vocab.json with merges.txt, of tokenizers whose settings are those files' defaults."""
    bert, roberta = made.wordpiece(), made.roberta()
    for name, tokenizer in (("bert", bert), ("roberta", roberta)):
        (tmp_path / name).mkdir()
        tokenizer.model.save(str(tmp_path / name))
    (tmp_path / "roberta/tokenizer_config.json").write_text('{"add_prefix_space": true}')
    texts = [text for text in made.CORPUS[: len(made.CORPUS) // 20] if "Penstock" not in text and "日本" not in text]
    expect_none(compare.differences(bert, tmp_path / "bert", texts))
    expect_none(compare.differences(roberta, tmp_path / "roberta", texts))


def test_lone_surrogates_are_refused(case):
    _, folder = case
    results = compare.ours(folder, ["a\ud800b", "fine"])
    assert "error" in results[0] and "ids" in results[1]
