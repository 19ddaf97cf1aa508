#include "devices/cpu/cache/weights_cache.h"

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
#include "base/log.h"

#define MAGIC UINT64_C(0x3153485745574e50)
#define LAYOUT 1 /* of this file; the build id stands for how the kernels pack */
#define ALIGNMENT 64
#define PATH_BYTES_MAX 4096
#define PARTS_OF_ITEM 2 /* the data, and what fills it up to the alignment */

/* The file: a header, `count` records, then the data of each where its record says. */
typedef struct header {
    uint64_t magic, checksum; /* of the rest of the header, and the records */
    uint64_t model_key, signature, build, layout, count, file_bytes;
} header;

typedef struct record {
    uint64_t words[WEIGHTS_CACHE_WORDS];
    uint64_t offset, bytes, checksum;
} record;

struct weights_cache {
    const char *map;
    size_t bytes;
    char path[PATH_BYTES_MAX];
};

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static header header_of(const weights_cache_name *name, uint64_t count)
{
    return (header){.magic = MAGIC,
                    .model_key = name->model_key,
                    .signature = name->signature,
                    .build = build_id_hash(),
                    .layout = LAYOUT,
                    .count = count};
}

static uint64_t checksum_of(const header *h, const record *records)
{
    size_t skipped = 2 * sizeof(uint64_t);
    uint64_t hash = content_hash(0, (const char *)h + skipped, sizeof *h - skipped);
    return content_hash(hash, records, h->count * sizeof *records);
}

static bool name_file(const weights_cache_name *name, char path[PATH_BYTES_MAX])
{
    if (name->folder == NULL || name->model_key == 0 || build_id_hash() == 0)
        return false;
    int n = snprintf(path, PATH_BYTES_MAX, "%s/%016llx-%s.weights", name->folder,
                     (unsigned long long)name->model_key, name->level);
    return n > 0 && n < PATH_BYTES_MAX - 100;
}

/* Whether header and records are those of that name, and lie within the file. */
static bool is_right(const weights_cache *c, const weights_cache_name *name)
{
    header found;
    if (c->bytes < sizeof found)
        return false;
    memcpy(&found, c->map, sizeof found);
    header wanted = header_of(name, found.count);
    wanted.checksum = found.checksum;
    wanted.file_bytes = c->bytes;
    if (memcmp(&wanted, &found, sizeof found) != 0 ||
        found.count > (c->bytes - sizeof found) / sizeof(record))
        return false;
    const record *records = (const record *)(c->map + sizeof found);
    if (checksum_of(&found, records) != found.checksum)
        return false;
    for (uint64_t i = 0; i < found.count; i++)
        if (records[i].offset % ALIGNMENT != 0 || records[i].offset > c->bytes ||
            records[i].bytes > c->bytes - records[i].offset)
            return false;
    return true;
}

weights_cache *weights_cache_open(const weights_cache_name *name)
{
    struct stat s;
    weights_cache *c = calloc(1, sizeof *c);
    if (c == NULL || !name_file(name, c->path))
        goto none;
    int file = open(c->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        goto none;
    void *map = MAP_FAILED;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0)
        map = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    file_use_mark(file);
    close(file);
    if (map == MAP_FAILED)
        goto none;
    c->map = map;
    c->bytes = (size_t)s.st_size;
    if (is_right(c, name))
        return c;
    log_debug("devices", "%s is damaged, or of another build: packing the weights again", c->path);
    munmap(map, c->bytes);
none:
    free(c);
    return NULL;
}

void weights_cache_close(weights_cache *c)
{
    if (c == NULL)
        return;
    munmap((void *)(uintptr_t)c->map, c->bytes);
    free(c);
}

bool weights_cache_find(weights_cache *c, weights_cache_item *item)
{
    header h;
    memcpy(&h, c->map, sizeof h);
    const record *records = (const record *)(c->map + sizeof h);
    for (uint64_t i = 0; i < h.count; i++) {
        const record *r = &records[i];
        if (memcmp(r->words, item->words, sizeof r->words) != 0)
            continue;
        if (content_hash(0, c->map + r->offset, r->bytes) != r->checksum) {
            log_warning("devices", "%s is damaged: packing a constant again", c->path);
            return false;
        }
        item->data = c->map + r->offset;
        item->bytes = r->bytes;
        return true;
    }
    return false;
}

status weights_cache_write(const weights_cache_name *name, const weights_cache_item *items,
                           size_t count)
{
    static const char zeros[ALIGNMENT];
    char path[PATH_BYTES_MAX];
    if (!name_file(name, path))
        return STATUS_OK;
    if (mkdir(name->folder, 0777) != 0 && errno != EEXIST)
        return status_fail(STATUS_IO, "%s: %s", name->folder, strerror(errno));
    record *records = calloc(count + 1, sizeof *records);
    file_part *parts = calloc(PARTS_OF_ITEM * count + 3, sizeof *parts);
    if (records == NULL || parts == NULL) {
        free(records);
        free(parts);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to write %s", path);
    }
    header h = header_of(name, count);
    uint64_t front = sizeof h + count * sizeof *records, at = round_up(front);
    int made = 0;
    parts[made++] = (file_part){&h, sizeof h};
    parts[made++] = (file_part){records, count * sizeof *records};
    parts[made++] = (file_part){zeros, at - front};
    for (size_t i = 0; i < count; i++) {
        const weights_cache_item *item = &items[i];
        memcpy(records[i].words, item->words, sizeof item->words);
        records[i].offset = at;
        records[i].bytes = item->bytes;
        records[i].checksum = content_hash(0, item->data, item->bytes);
        parts[made++] = (file_part){item->data, item->bytes};
        parts[made++] = (file_part){zeros, round_up(item->bytes) - item->bytes};
        at += round_up(item->bytes);
    }
    h.file_bytes = at;
    h.checksum = checksum_of(&h, records);
    status s = file_writer_replace(path, parts, made);
    free(records);
    free(parts);
    return s;
}
