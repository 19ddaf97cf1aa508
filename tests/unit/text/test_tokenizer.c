#include "text/tokenizer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define WORDPIECE                                                                                  \
    "{\"added_tokens\": [{\"id\": 1, \"content\": \"[CLS]\", \"special\": true, \"normalized\": "  \
    "false}, {\"id\": 2, \"content\": \"[SEP]\", \"special\": true, \"normalized\": false}],"      \
    "\"normalizer\": {\"type\": \"BertNormalizer\"},"                                              \
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"                                         \
    "\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", 1], \"sep\": "        \
    "[\"[SEP]\", 2]},"                                                                             \
    "\"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\"},"                                  \
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"vocab\": {\"[UNK]\": 0, "    \
    "\"[CLS]\": 1, \"[SEP]\": 2, \"un\": 3, \"##able\": 4, \"able\": 5, \".\": 6, \"##a\": 7}}}"

static tokenizer *parse(const char *json)
{
    tokenizer *t = NULL;
    status s = tokenizer_parse(json, strlen(json), "test", &t);
    cr_assert_eq(s, STATUS_OK, "%s", status_message());
    return t;
}

static tokenizer_text text(const char *string)
{
    return (tokenizer_text){string, strlen(string)};
}

static void expect(const tokenizer *t, const char *first, const char *second,
                   const tokenizer_options *options, const char *wanted)
{
    char found[512] = "";
    tokenizer_tokens tokens;
    tokenizer_text b = text(second ? second : "");
    tokenizer_scratch *s = tokenizer_scratch_create();
    /* Twice: the second time words come from the cache. */
    for (int round = 0; round < 2; round++) {
        status failed = tokenizer_encode(t, s, text(first), second ? &b : NULL, options, &tokens);
        cr_assert_eq(failed, STATUS_OK, "%s", status_message());
        size_t at = 0;
        for (size_t i = 0; i < tokens.count; i++)
            at += (size_t)snprintf(found + at, sizeof found - at, "%s%u/%u:%u-%u", i ? " " : "",
                                   tokens.ids[i], tokens.type_ids[i], tokens.spans[i].begin,
                                   tokens.spans[i].end);
        cr_assert_str_eq(found, wanted);
    }
    tokenizer_scratch_destroy(s);
}

Test(tokenizer, wordpiece_takes_the_longest_token_and_counts_characters)
{
    tokenizer *t = parse(WORDPIECE);
    const tokenizer_options all = {0};
    expect(t, "unable  \xC3\x9Cnable.", NULL, &all,
           "1/0:0-0 3/0:0-2 4/0:2-6 3/0:8-10 4/0:10-14 6/0:14-15 2/0:0-0");
    expect(t, "unknown unable", NULL, &all, "1/0:0-0 0/0:0-7 3/0:8-10 4/0:10-14 2/0:0-0");
    expect(t, "un", ".", &all, "1/0:0-0 3/0:0-2 2/0:0-0 6/1:0-1 2/1:0-0");
    expect(t, "", NULL, &all, "1/0:0-0 2/0:0-0");
    expect(t, "[SEP]un", NULL, &(tokenizer_options){.omits_special_tokens = true},
           "2/0:0-5 3/0:5-7");
    tokenizer_destroy(t);
}

Test(tokenizer, truncates_pairs_as_asked)
{
    tokenizer *t = parse(WORDPIECE);
    tokenizer_options o = {.tokens_max = 6};
    expect(t, "un un un", ". .", &o, "1/0:0-0 3/0:0-2 3/0:3-5 2/0:0-0 6/1:0-1 2/1:0-0");
    o.strategy = TOKENIZER_ONLY_SECOND;
    expect(t, "un un", ". .", &o, "1/0:0-0 3/0:0-2 3/0:3-5 2/0:0-0 6/1:0-1 2/1:0-0");
    o.strategy = TOKENIZER_ONLY_FIRST;
    o.truncates_left = true;
    expect(t, "un able", ". .", &o, "1/0:0-0 5/0:3-7 2/0:0-0 6/1:0-1 6/1:2-3 2/1:0-0");
    tokenizer_destroy(t);
}

Test(tokenizer, decodes_with_and_without_special_tokens)
{
    tokenizer *t = parse(WORDPIECE);
    const uint32_t ids[] = {1, 3, 4, 6, 99, 2};
    text_buffer out = {0};
    cr_assert_eq(tokenizer_decode(t, ids, 6, true, &out), STATUS_OK);
    cr_assert_str_eq(text_buffer_string(&out), "unable.");
    text_buffer_clear(&out);
    cr_assert_eq(tokenizer_decode(t, ids, 6, false, &out), STATUS_OK);
    cr_assert_str_eq(text_buffer_string(&out), "[CLS] unable. [SEP]");
    text_buffer_dispose(&out);
    tokenizer_destroy(t);
}

static void expect_refused(const char *json, status code, const char *words)
{
    tokenizer *t = NULL;
    cr_assert_eq(tokenizer_parse(json, strlen(json), "t.json", &t), code, "%s", status_message());
    cr_assert_null(t);
    cr_assert(strstr(status_message(), words), "%s", status_message());
}

Test(tokenizer, refuses_what_it_does_not_know_by_name)
{
    expect_refused("{\"model\": {\"type\": \"Magic\"}}", STATUS_UNSUPPORTED,
                   "t.json: \"model\": the model \"Magic\" is not supported; supported are "
                   "WordPiece, BPE, Unigram, WordLevel");
    expect_refused("{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": "
                   "\"NFC\"}, {\"type\": \"Rot13\"}]}}",
                   STATUS_UNSUPPORTED, "\"normalizer\": normalizers[1]: the normalizer \"Rot13\"");
    expect_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"dropout\": "
                   "0.1}}",
                   STATUS_UNSUPPORTED, "dropout");
    expect_refused("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": -1}}}", STATUS_CORRUPT,
                   "\"vocab\": \"a\": expected a token id");
    expect_refused("{\"model\"", STATUS_CORRUPT, "t.json: line 1");
    expect_refused("{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": "
                   "\"AAAA\"}}",
                   STATUS_CORRUPT, "precompiled_charsmap has 3 bytes");
}

Test(tokenizer, refuses_text_that_is_not_utf8_with_its_place)
{
    tokenizer *t = parse(WORDPIECE);
    tokenizer_scratch *s = tokenizer_scratch_create();
    tokenizer_tokens tokens;
    const tokenizer_options all = {0};
    static const char *const wrong[] = {"ab\xED\xA0\x80", "ab\xFF", "ab\xC0\x80", "ab\xE2\x82"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(tokenizer_encode(t, s, text(wrong[i]), NULL, &all, &tokens),
                     STATUS_INVALID_ARGUMENT);
        cr_assert(strstr(status_message(), "byte 2 is 0x"), "%s", status_message());
    }
    const tokenizer_options tight = {.tokens_max = 1};
    cr_assert_eq(tokenizer_encode(t, s, text("un"), NULL, &tight, &tokens),
                 STATUS_INVALID_ARGUMENT);
    tokenizer_scratch_destroy(s);
    tokenizer_destroy(t);
}
