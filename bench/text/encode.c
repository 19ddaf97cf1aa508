/* How many tokens per second one thread makes of a file's lines: bench_text FOLDER FILE ROUNDS.
 * Prints tokens, and the seconds of the fastest round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io/file_reader.h"
#include "text/tokenizer.h"

static size_t encode_lines(const tokenizer *t, tokenizer_scratch *s, const char *data, size_t bytes)
{
    const tokenizer_options all = {0};
    size_t tokens_count = 0;
    for (const char *line = data, *end = data + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        tokenizer_tokens tokens;
        tokenizer_text text = {line, (size_t)(stop - line)};
        if (tokenizer_encode(t, s, text, NULL, &all, &tokens)) {
            fprintf(stderr, "bench_text: %s\n", status_message());
            exit(1);
        }
        tokens_count += tokens.count;
        line = stop + 1;
    }
    return tokens_count;
}

int main(int argc, char **argv)
{
    tokenizer *t = NULL;
    void *data = NULL;
    size_t bytes = 0, count = 0;
    uint64_t best_ns = UINT64_MAX;
    if (argc != 4) {
        fprintf(stderr, "usage: bench_text FOLDER FILE ROUNDS\n");
        return 2;
    }
    if (tokenizer_load(argv[1], &t) ||
        file_reader_read_whole(argv[2], (size_t)1 << 30, &data, &bytes)) {
        fprintf(stderr, "bench_text: %s\n", status_message());
        return 1;
    }
    tokenizer_scratch *s = tokenizer_scratch_create();
    for (int round = 0; round < atoi(argv[3]); round++) {
        uint64_t begin = clock_now_ns();
        count = encode_lines(t, s, data, bytes);
        uint64_t took = clock_now_ns() - begin;
        best_ns = took < best_ns ? took : best_ns;
    }
    printf("%zu %.9f\n", count, (double)best_ns / 1e9);
    tokenizer_scratch_destroy(s);
    tokenizer_destroy(t);
    free(data);
    return 0;
}
