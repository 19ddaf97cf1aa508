/* Tokenizers: the file of a stranger, and the text of a stranger. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "tests/fuzz/fuzz.h"
#include "text/tokenizer.h"

/* The spans are within the text and in order, and the ids become text again. */
static void check_tokens(const tokenizer *t, const tokenizer_tokens *tokens, size_t bytes_max)
{
    text_buffer out = {0};
    for (size_t i = 0; i < tokens->count; i++) {
        assert(tokens->spans[i].begin <= tokens->spans[i].end);
        assert(tokens->spans[i].end <= bytes_max);
    }
    status failed = tokenizer_decode(t, tokens->ids, tokens->count, tokens->count % 2, &out);
    assert(failed != STATUS_INTERNAL);
    text_buffer_dispose(&out);
}

/* One byte of choices, then a text, or two around a zero byte. */
static void encode(const tokenizer *t, const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    uint8_t choice = fuzz_take_byte(&in);
    const uint8_t *zero = in.bytes ? memchr(in.data, 0, in.bytes) : NULL;
    size_t first_bytes = zero ? (size_t)(zero - in.data) : in.bytes;
    tokenizer_text first = {(const char *)in.data, first_bytes};
    tokenizer_text second = {(const char *)in.data + first_bytes + 1,
                             zero ? in.bytes - first_bytes - 1 : 0};
    tokenizer_options options = {.omits_special_tokens = choice & 1,
                                 .truncates_left = choice & 2,
                                 .strategy = (choice >> 2) % 3,
                                 .tokens_max = choice >> 4};
    tokenizer_scratch *s = tokenizer_scratch_create();
    tokenizer_tokens once, again;
    status failed = tokenizer_encode(t, s, first, zero ? &second : NULL, &options, &once);
    assert(failed != STATUS_INTERNAL && (!failed || status_message()[0] != 0));
    if (!failed) {
        check_tokens(t, &once, in.bytes);
        assert(options.tokens_max == 0 || once.count <= options.tokens_max ||
               options.tokens_max == tokenizer_special_count(t, zero != NULL));
        size_t count = once.count;
        failed = tokenizer_encode(t, s, first, zero ? &second : NULL, &options, &again);
        assert(!failed && again.count == count); /* now from the cache */
    }
    tokenizer_scratch_destroy(s);
}

/* tokenizer.json, a zero byte, then what encode() reads. */
void fuzz_tokenizer(const uint8_t *data, size_t bytes)
{
    tokenizer *t = NULL;
    const uint8_t *zero = bytes ? memchr(data, 0, bytes) : NULL;
    size_t json_bytes = zero ? (size_t)(zero - data) : bytes;
    if (tokenizer_parse((const char *)data, json_bytes, "tokenizer.json", &t)) {
        assert(status_message()[0] != 0 && t == NULL);
        return;
    }
    if (zero != NULL)
        encode(t, zero + 1, bytes - json_bytes - 1);
    tokenizer_destroy(t);
}

static const char *const families[] = {"bert", "byte_level", "unigram", "llama", "word_level"};
#define FAMILY_COUNT (sizeof families / sizeof *families)

/* The seeds of fuzz_tokenizer(); they stay loaded. */
static const tokenizer *family(size_t index)
{
    static tokenizer *loaded[FAMILY_COUNT];
    if (loaded[index] == NULL) {
        char path[800];
        void *data = NULL;
        size_t bytes = 0;
        snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/%s",
                 families[index]);
        status failed = file_reader_read_whole(path, 1 << 20, &data, &bytes);
        if (!failed)
            failed = tokenizer_parse(data, strlen(data), path, &loaded[index]);
        if (failed) {
            fprintf(stderr, "%s\n", status_message());
            abort();
        }
        free(data);
    }
    return loaded[index];
}

void fuzz_tokenize(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    encode(family(fuzz_take_byte(&in) % FAMILY_COUNT), in.data, in.bytes);
}
