/* How many tokens per second one thread makes of a file's lines: bench_text FOLDER FILE ROUNDS.
 * Prints tokens, and the seconds of the fastest round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    clock_t best = 0;
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
        clock_t begin = clock();
        count = encode_lines(t, s, data, bytes);
        clock_t took = clock() - begin;
        best = round == 0 || took < best ? took : best;
    }
    printf("%zu %.9f\n", count, (double)best / CLOCKS_PER_SEC);
    tokenizer_scratch_destroy(s);
    tokenizer_destroy(t);
    free(data);
    return 0;
}
