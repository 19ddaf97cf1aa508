#include "models/loading/samples.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define IDS_MAX 65536 /* of one sample */

static uint64_t add_hash(uint64_t hash, int64_t number)
{
    /* FNV-1a on whole numbers. */
    return (hash ^ (uint64_t)number) * UINT64_C(1099511628211);
}

static status read_ids(const char *path, int number, const char *line, arena *memory,
                       device_sample *out)
{
    json_error_t error;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &error), *id;
    size_t count = json_array_size(json), i;
    status s = STATUS_OK;
    int64_t *ids = NULL;
    if (!json_is_array(json) || count == 0 || count > IDS_MAX)
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: no JSON array of 1 to %d token ids", path,
                        number, IDS_MAX);
    else if (!(ids = arena_allocate(memory, count * sizeof *ids)))
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for samples");
    json_array_foreach(json, i, id)
    {
        if (s)
            break;
        ids[i] = json_integer_value(id);
        if (!json_is_integer(id) || ids[i] < 0)
            s = status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: element %zu is no token id", path,
                            number, i);
    }
    json_decref(json);
    *out = (device_sample){.ids = ids, .length = (int64_t)count, .line = number};
    return s;
}

static bool is_array(const char *line)
{
    return line[strspn(line, " \t")] == '[';
}

static int count_arrays(FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;
    int count = 0;
    while (getline(&line, &capacity, file) >= 0)
        count += is_array(line);
    free(line);
    rewind(file);
    return count;
}

status samples_read(const char *path, arena *memory, device_samples *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    *out = (device_samples){.hash = UINT64_C(14695981039346656037)};
    int64_t all = count_arrays(file), kept = all < SAMPLES_MAX ? all : SAMPLES_MAX, seen = 0;
    char *line = NULL;
    size_t capacity = 0;
    status s = STATUS_OK;
    for (int number = 1; !s && getline(&line, &capacity, file) >= 0; number++) {
        if (!is_array(line))
            continue;
        bool is_kept = out->count < kept && seen++ == out->count * all / kept;
        device_sample *sample = &out->samples[out->count];
        if (!is_kept)
            continue;
        s = read_ids(path, number, line, memory, sample);
        for (int64_t i = 0; !s && i < sample->length; i++)
            out->hash = add_hash(out->hash, sample->ids[i]);
        out->hash = add_hash(out->hash, -1);
        out->count++;
    }
    if (!s && ferror(file))
        s = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return s;
}
