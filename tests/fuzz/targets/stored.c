/* Files of the cache, with the checksums that belong to them: graphs of an earlier start. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/identity/content_hash.h"
#include "base/io/file_reader.h"
#include "graph/import.h"
#include "graph/stored/code_graph.h"
#include "graph/stored/stored_graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary.h"

#define KEY 1
#define FILE_BYTES_MAX (1 << 20)
#define HEADER_WORDS 10 /* stored_graph.c */
enum { CHECKSUM = 1, FILE_BYTES = 5, WORDS = 6, WORDS_CHECKSUM = 7, DATA_OFFSET = 8 };

/* The graphs that are written once, then changed: what importers make. */
static const char *const models[] = {
    "tests/fuzz/corpus/onnx/layer",  "tests/fuzz/corpus/onnx/loop",
    "tests/fuzz/corpus/onnx/scan",   "tests/fuzz/corpus/onnx/trees",
    "tests/fuzz/corpus/onnx/tokens", "tests/fuzz/corpus/onnx/sequence",
    "tests/fuzz/corpus/onnx/resize", "tests/fuzz/corpus/onnx/lstm",
};
#define MODELS (sizeof models / sizeof models[0])

static struct {
    uint64_t *words; /* the whole file */
    size_t bytes;
} files[MODELS];

static void release_files(void)
{
    for (size_t i = 0; i < MODELS; i++)
        free(files[i].words);
}

static void write_files(void)
{
    static const tensor shape = {.dtype = DTYPE_F32, .rank = 2, .dims = {3, 9}};
    const stored_graph_about about = {
        .flags = 1, .note = "why", .shapes = &shape, .shape_count = 1};
    char folder[TEMPORARY_FOLDER_BYTES], path[600];
    temporary_make(folder);
    for (size_t i = 0; i < MODELS; i++) {
        graph *g;
        void *data;
        graph_import_options options = {0};
        snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/%s", models[i]);
        assert(graph_import_onnx(path, &options, &g) == STATUS_OK);
        snprintf(path, sizeof path, "%s/a.graph", folder);
        assert(stored_graph_write(path, KEY, g, &about, FILE_BYTES_MAX) == STATUS_OK);
        graph_destroy(g);
        assert(file_reader_read_whole(path, FILE_BYTES_MAX, &data, &files[i].bytes) == STATUS_OK);
        files[i].words = data;
    }
    temporary_remove(folder);
    atexit(release_files);
}

/* The words of the graph; the caller frees them. */
static coder write_words(const graph *g)
{
    coder c = {0};
    graph *same = (graph *)(uintptr_t)g;
    code_graph(&c, &same);
    assert(!c.has_failed);
    return c;
}

/* What was accepted can be written; what was written is read, and is the same written again. */
static void check_round(const graph *g)
{
    graph *again = NULL;
    coder first = write_words(g);
    char *data = aligned_alloc(CODER_ALIGNMENT, (size_t)first.data_bytes + CODER_ALIGNMENT);
    assert(data != NULL);
    for (size_t i = 0; i < first.constant_count; i++)
        if (first.constants[i].bytes > 0)
            memcpy(data + first.constants[i].offset, first.constants[i].data,
                   (size_t)first.constants[i].bytes);
    coder reader = {.is_reading = true,
                    .words = first.words,
                    .count = first.count,
                    .data = data,
                    .data_bytes = first.data_bytes};
    code_graph(&reader, &again);
    assert(again != NULL && reader.at == first.count);
    coder second = write_words(again);
    assert(second.count == first.count && second.data_bytes == first.data_bytes);
    assert(memcmp(second.words, first.words, first.count * sizeof first.words[0]) == 0);
    graph_destroy(again);
    coder_dispose(&second);
    coder_dispose(&first);
    free(data);
}

/* All that a model's load reads of it. */
static void check_about(const stored_graph_about *about)
{
    assert(about->shape_count >= 0);
    for (int i = 0; about->shapes != NULL && i < about->shape_count; i++)
        assert(about->shapes[i].rank >= 0 && tensor_count(&about->shapes[i]) >= 0);
    if (about->note != NULL)
        assert(strlen(about->note) < FILE_BYTES_MAX);
}

static void read_file(uint64_t *words, size_t bytes)
{
    char path[64];
    graph *g;
    stored_graph_about about;
    uint64_t room = bytes / sizeof words[0] - HEADER_WORDS;
    if (words[WORDS] <= room)
        words[WORDS_CHECKSUM] =
            content_hash(0, words + HEADER_WORDS, words[WORDS] * sizeof words[0]);
    words[CHECKSUM] = content_hash(0, words + 2, (HEADER_WORDS - 2) * sizeof words[0]);
    int file = memfd_create("stored", MFD_CLOEXEC);
    assert(file >= 0 && write(file, words, bytes) == (ssize_t)bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    status failure = stored_graph_read(path, KEY, &g, &about);
    close(file);
    if (failure) {
        assert(failure == STATUS_CORRUPT && status_message()[0] != 0);
        return;
    }
    check_about(&about);
    check_round(g);
    graph_destroy(g);
}

/* A number of 0 to 8 bytes, and whether its bits are inverted. */
static uint64_t take_number(fuzz_input *in)
{
    uint8_t how = fuzz_take_byte(in);
    uint64_t value = 0;
    for (int i = 0; i < (how & 15) && i < 8; i++)
        value |= (uint64_t)fuzz_take_byte(in) << 8 * i;
    return how & 128 ? ~value : value;
}

/* A byte says which file; then words of it, each by place and new content. Beyond the files: all
 * words as they are, without constants. */
void fuzz_stored(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    if (files[0].words == NULL)
        write_files();
    size_t which = fuzz_take_byte(&in);
    bool is_whole = which >= MODELS;
    size_t file_bytes =
        is_whole ? HEADER_WORDS * sizeof(uint64_t) + in.bytes / 8 * 8 : files[which].bytes;
    uint64_t *words = malloc(file_bytes);
    assert(words != NULL);
    memcpy(words, files[is_whole ? 0 : which].words,
           is_whole ? HEADER_WORDS * sizeof words[0] : file_bytes);
    if (is_whole) {
        memcpy(words + HEADER_WORDS, in.data, in.bytes / 8 * 8);
        words[FILE_BYTES] = file_bytes;
        words[WORDS] = in.bytes / 8;
        words[DATA_OFFSET] = words[DATA_OFFSET + 1] = 0;
    }
    while (!is_whole && in.bytes > 0) {
        size_t at = fuzz_take_u16(&in) % (file_bytes / sizeof words[0]);
        words[at] = take_number(&in);
    }
    read_file(words, file_bytes);
    free(words);
}
