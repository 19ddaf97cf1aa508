#include "graph/stored/stored_graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity/build_id.h"
#include "base/identity/content_hash.h"
#include "base/io/file_use.h"
#include "base/io/file_writer.h"
#include "graph/stored/code_graph.h"

#define MAGIC UINT64_C(0x3168706172474e50)
#define LAYOUT 1 /* of this file; the build id stands for what the graphs mean */
#define PATH_BYTES_MAX 4096
#define SHAPES_MAX 4096

typedef struct header {
    uint64_t magic, checksum; /* of the rest of the header */
    uint64_t key, build, layout, file_bytes;
    uint64_t words, words_checksum, data_offset, data_bytes;
} header;

static uint64_t checksum_of(const header *h)
{
    size_t skipped = 2 * sizeof(uint64_t);
    return content_hash(0, (const char *)h + skipped, sizeof *h - skipped);
}

static void code_about(coder *c, stored_graph_about *about)
{
    bool has_shapes = about->shapes != NULL;
    coder_u64(c, &about->flags);
    coder_text(c, &about->note);
    coder_int(c, &about->shape_count, 0, SHAPES_MAX);
    coder_bool(c, &has_shapes);
    if (!has_shapes)
        return;
    size_t count = (size_t)about->shape_count;
    tensor *list = c->is_reading ? coder_allocate(c, count, sizeof *list) : NULL;
    for (size_t i = 0; i < count && !c->has_failed; i++) {
        tensor t = c->is_reading ? (tensor){0} : about->shapes[i];
        coder_shape(c, &t);
        if (c->is_reading)
            list[i] = t;
    }
    if (c->is_reading)
        about->shapes = list;
}

/* The header, the words and the constants, each with what fills it up. */
static status write_parts(const char *path, header *h, const coder *c)
{
    static const char zeros[CODER_ALIGNMENT];
    file_part *parts = calloc(2 * c->constant_count + 3, sizeof *parts);
    if (parts == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to write %s", path);
    int made = 0;
    uint64_t front = sizeof *h + h->words * sizeof(uint64_t);
    parts[made++] = (file_part){h, sizeof *h};
    parts[made++] = (file_part){c->words, (size_t)h->words * sizeof(uint64_t)};
    parts[made++] = (file_part){zeros, (size_t)(h->data_offset - front)};
    for (size_t i = 0; i < c->constant_count; i++) {
        const coder_constant *k = &c->constants[i];
        size_t filled = (size_t)(coder_place_bytes(k->bytes) - k->bytes);
        parts[made++] = (file_part){k->data, (size_t)k->bytes};
        parts[made++] = (file_part){zeros, filled};
    }
    h->checksum = checksum_of(h);
    status s = file_writer_replace(path, parts, made);
    free(parts);
    return s;
}

status stored_graph_write(const char *path, uint64_t key, const graph *g,
                          const stored_graph_about *about, uint64_t bytes_max)
{
    coder c = {0};
    stored_graph_about copy = *about;
    graph *same = (graph *)(uintptr_t)g; /* a writer changes nothing */
    if (g->described != NULL || build_id_hash() == 0 || strlen(path) >= PATH_BYTES_MAX)
        return status_fail(STATUS_UNSUPPORTED, "%s: such a graph is not kept", path);
    code_graph(&c, &same);
    code_about(&c, &copy);
    status s = STATUS_OK;
    if (c.has_failed && c.why == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory to write %s", path);
    else if (c.has_failed || c.data_bytes > bytes_max)
        s = status_fail(STATUS_UNSUPPORTED, "%s: %s", path, c.why ? c.why : "it is too large");
    if (!s) {
        uint64_t front = sizeof(header) + c.count * sizeof(uint64_t);
        header h = {.magic = MAGIC,
                    .key = key,
                    .build = build_id_hash(),
                    .layout = LAYOUT,
                    .words = c.count,
                    .words_checksum = content_hash(0, c.words, c.count * sizeof(uint64_t)),
                    .data_offset = coder_place_bytes(front),
                    .data_bytes = c.data_bytes};
        h.file_bytes = h.data_offset + h.data_bytes;
        s = write_parts(path, &h, &c);
    }
    coder_dispose(&c);
    return s;
}

/* The mapped file of a graph; in its memory. */
typedef struct mapped {
    void *data;
    size_t bytes;
} mapped;

static void release(void *context)
{
    mapped *m = context;
    munmap(m->data, m->bytes);
}

static status map_file(const char *path, mapped *m)
{
    struct stat s;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    m->data = MAP_FAILED;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0)
        m->data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    file_use_mark(file);
    close(file);
    if (m->data == MAP_FAILED)
        return status_fail(STATUS_CORRUPT, "%s: it cannot be mapped", path);
    m->bytes = (size_t)s.st_size;
    return STATUS_OK;
}

/* Whether the parts lie within the file, and the words are as they were written. */
static bool is_right(const mapped *m, uint64_t key)
{
    header h;
    if (m->bytes < sizeof h)
        return false;
    memcpy(&h, m->data, sizeof h);
    header wanted = h;
    wanted.magic = MAGIC;
    wanted.checksum = checksum_of(&h);
    wanted.key = key;
    wanted.build = build_id_hash();
    wanted.layout = LAYOUT;
    wanted.file_bytes = m->bytes;
    return memcmp(&wanted, &h, sizeof h) == 0 &&
           h.words <= (m->bytes - sizeof h) / sizeof(uint64_t) &&
           h.data_offset % CODER_ALIGNMENT == 0 && h.data_offset <= m->bytes &&
           h.data_bytes <= m->bytes - h.data_offset &&
           content_hash(0, (const char *)m->data + sizeof h, h.words * sizeof(uint64_t)) ==
               h.words_checksum;
}

status stored_graph_read(const char *path, uint64_t key, graph **out, stored_graph_about *about)
{
    mapped m;
    graph *g = NULL;
    stored_graph_about found = {0};
    status s = map_file(path, &m);
    if (s)
        return s;
    if (!is_right(&m, key)) {
        munmap(m.data, m.bytes);
        return status_fail(STATUS_CORRUPT, "%s is damaged, or of another build", path);
    }
    header h;
    memcpy(&h, m.data, sizeof h);
    coder c = {.is_reading = true,
               .words = (uint64_t *)((char *)m.data + sizeof h),
               .count = h.words,
               .data = (const char *)m.data + h.data_offset,
               .data_bytes = h.data_bytes};
    code_graph(&c, &g);
    if (g != NULL)
        code_about(&c, &found);
    mapped *kept = g != NULL ? arena_allocate(&g->memory, sizeof *kept) : NULL;
    if (c.has_failed || kept == NULL) {
        graph_destroy(g);
        munmap(m.data, m.bytes);
        return status_fail(STATUS_CORRUPT, "%s is damaged", path);
    }
    *kept = m;
    g->release = release;
    g->release_context = kept;
    /* What was read to check it, and is packed elsewhere, need not stay in memory. */
    uint64_t whole = (h.data_offset + 65535) & ~UINT64_C(65535);
    if (whole < m.bytes)
        madvise((char *)m.data + whole, m.bytes - whole, MADV_DONTNEED);
    *out = g;
    *about = found;
    return STATUS_OK;
}
