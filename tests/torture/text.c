/* Tokenizers in which the n-th allocation of our own code fails, or all from the n-th on: the load,
 * a pair of texts to tokens, the tokens to text.
 *
 *   torture_text TRIALS PATH...     a folder with vocab.txt, or a seed of the fuzzer `tokenizer`: a
 * tokenizer.json and a zero byte; about TRIALS of the allocations (0: each)
 *
 * Each ends with STATUS_OUT_OF_MEMORY and a message, or with the tokens and the text of a run where
 * nothing fails; so does the next run with the same scratch. What is left behind, the sanitizer of
 * the build reports. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "tests/torture/failing.h"
#include "text/tokenizer.h"

static text_buffer long_text; /* more than what the buffers begin with */

static void write_text(void)
{
    for (int i = 0; i < 120; i++)
        text_buffer_put(&long_text, "unaffable. \xC3\xA9" /* e, acute */
                                    "\xE4\xB8\x80"        /* an ideograph */
                                    " abc's 123  [CLS]<mask>\xC2\xA0\n");
    text_buffer_put(&long_text, "\xE3\x80\xAE a"); /* U+302E: a mark that stays and is sorted */
    for (int i = 0; i < 300; i++)
        text_buffer_put(&long_text, i % 2 ? "\xCC\x81" : "\xCC\x96"); /* marks of two classes */
    text_buffer_put(&long_text, " ");
    for (int i = 0; i < 300; i++)
        text_buffer_put(&long_text, "ab"); /* one word */
}

/* STATUS_OK: *out is the caller's. */
static status load(const char *path, const char *json, tokenizer **out)
{
    return json != NULL ? tokenizer_parse(json, strlen(json), path, out)
                        : tokenizer_load(path, out);
}

/* Writes ids, spans and decoded text to `out`. `s` is NULL: a scratch of its own. */
static status run(const tokenizer *t, tokenizer_scratch *s, text_buffer *out)
{
    tokenizer_text text = {long_text.data, long_text.bytes}, second = {"b ab.", 5};
    tokenizer_scratch *own = s == NULL ? tokenizer_scratch_create() : NULL;
    tokenizer_tokens tokens;
    text_buffer decoded = {0};
    status failed = s == NULL && own == NULL
                        ? status_fail(STATUS_OUT_OF_MEMORY, "no memory for a scratch")
                        : tokenizer_encode(t, s != NULL ? s : own, text, &second,
                                           &(tokenizer_options){0}, &tokens);
    if (!failed)
        failed = tokenizer_decode(t, tokens.ids, tokens.count, true, &decoded);
    if (!failed && decoded.is_broken)
        failed = status_fail(STATUS_OUT_OF_MEMORY, "no memory for decoded text");
    failing_end();
    for (size_t i = 0; !failed && i < tokens.count; i++)
        text_buffer_format(out, "%u %u-%u ", tokens.ids[i], tokens.spans[i].begin,
                           tokens.spans[i].end);
    if (!failed)
        text_buffer_append(out, decoded.data, decoded.bytes);
    text_buffer_dispose(&decoded);
    tokenizer_scratch_destroy(own);
    return failed;
}

/* The load, the run, or both fail at n; what comes out is right or refused. */
static bool is_right(const char *what, int64_t n, status s, const text_buffer *found,
                     const text_buffer *expected)
{
    bool is_same =
        found->bytes == expected->bytes && memcmp(found->data, expected->data, found->bytes) == 0;
    if (s == STATUS_OK ? is_same : s == STATUS_OUT_OF_MEMORY && strstr(status_message(), "memory"))
        return true;
    printf("%s: allocation %lld: %s: %s\n", what, (long long)n, status_name(s),
           s ? status_message() : "other tokens, or another text");
    return false;
}

typedef struct counts {
    int64_t passed, failed;
} counts;

static void count(counts *c, bool is_passed)
{
    *(is_passed ? &c->passed : &c->failed) += 1;
}

static int64_t step_of(int64_t total, int64_t trials)
{
    return trials > 0 && trials < total ? total / trials : 1;
}

static void torture_load(const char *path, const char *json, int64_t trials,
                         const text_buffer *expected, counts *c)
{
    tokenizer *t = NULL;
    failing_begin(INT64_MAX, INT64_MAX);
    status s = load(path, json, &t);
    int64_t total = failing_end();
    tokenizer_destroy(s ? NULL : t);
    for (int64_t n = 0; n < total; n += step_of(total, trials))
        for (int kind = 0; kind < 2; kind++) {
            text_buffer found = {0};
            failing_begin(n, kind ? INT64_MAX : n + 1);
            s = load(path, json, &t);
            failing_end();
            if (!s) {
                s = run(t, NULL, &found);
                tokenizer_destroy(t);
            }
            count(c, is_right(path, n, s, &found, expected));
            text_buffer_dispose(&found);
        }
}

static void torture_run(const char *path, const tokenizer *t, int64_t trials,
                        const text_buffer *expected, counts *c)
{
    text_buffer found = {0};
    int64_t total = INT64_MAX;
    for (int64_t n = 0; n < total; n += total < INT64_MAX ? step_of(total, trials) : 1) {
        for (int kind = 0; kind < 2; kind++) {
            tokenizer_scratch *s = tokenizer_scratch_create();
            failing_begin(n, kind ? INT64_MAX : n + 1);
            text_buffer_clear(&found);
            count(c, is_right(path, n, run(t, s, &found), &found, expected));
            text_buffer_clear(&found);
            count(c,
                  run(t, s, &found) == STATUS_OK && is_right(path, n, STATUS_OK, &found, expected));
            tokenizer_scratch_destroy(s);
        }
        failing_begin(INT64_MAX, INT64_MAX);
        if (total == INT64_MAX && run(t, NULL, &found) == STATUS_OK)
            total = failing_end();
    }
    text_buffer_dispose(&found);
}

static void torture(const char *path, int64_t trials, counts *c)
{
    void *data = NULL;
    size_t bytes = 0;
    tokenizer *t = NULL;
    text_buffer expected = {0};
    bool is_file = file_reader_read_whole(path, 1 << 20, &data, &bytes) == STATUS_OK;
    /* What is parsed is the library's: it loses bytes of strings where it finds no memory. */
    json_set_alloc_funcs(is_file ? __real_malloc : __wrap_malloc, free);
    if (load(path, data, &t) || run(t, NULL, &expected)) {
        printf("%s: %s\n", path, status_message());
        c->failed++;
    } else {
        torture_load(path, data, trials, &expected, c);
        torture_run(path, t, trials, &expected, c);
    }
    tokenizer_destroy(t);
    text_buffer_dispose(&expected);
    free(data);
}

/* The table of characters is made by the first load that has memory for it. */
static void torture_first(counts *c)
{
    tokenizer *t = NULL;
    for (int64_t n = 0; n < 400; n += 57) {
        failing_begin(n, INT64_MAX);
        status s = tokenizer_parse("{}", 2, "{}", &t);
        failing_end();
        count(c, s == STATUS_OUT_OF_MEMORY || (n > 100 && s == STATUS_CORRUPT));
    }
}

int main(int argument_count, char **arguments)
{
    counts c = {0};
    if (argument_count < 3) {
        fprintf(stderr, "usage: torture_text TRIALS PATH...\n");
        return 2;
    }
    write_text();
    torture_first(&c);
    for (int i = 2; i < argument_count; i++)
        torture(arguments[i], atoll(arguments[1]), &c);
    text_buffer_dispose(&long_text);
    printf("%lld passed, %lld failed\n", (long long)c.passed, (long long)c.failed);
    return c.failed > 0;
}
