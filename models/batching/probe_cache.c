#include "models/batching/probe_cache.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file_use.h"
#include "base/log.h"

#define LAYOUT 3 /* of the file, and of what the probe does */
#define NUMBERS 6
#define NOTE_BYTES_MAX 2000

static uint64_t add(uint64_t hash, const void *data, size_t bytes)
{
    /* FNV-1a. */
    for (const unsigned char *p = data; bytes > 0; p++, bytes--)
        hash = (hash ^ *p) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return add(hash, text, strlen(text) + 1);
}

static uint64_t key_of(const model *m, const manifest *file, const model_batching *before)
{
    device *cpu = m->devices[m->device_count - 1];
    device_status cpu_status = {0};
    cpu->interface->describe(cpu, &cpu_status);
    int64_t numbers[] = {LAYOUT,
                         (int64_t)m->on_device.model_key,
                         m->on_device.precision,
                         file->can_batch,
                         file->can_pad,
                         before->batch_max,
                         before->sequence_max,
                         m->device_count == 1,
                         m->input_count,
                         m->output_count};
    uint64_t hash = add(UINT64_C(14695981039346656037), numbers, sizeof numbers);
    hash = add_text(hash, PENSTOCK_VERSION);
    hash = add_text(hash, cpu_status.detail); /* the level of the kernels */
    hash = add_text(hash, file->pooling ? file->pooling : "");
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        const model_tensor *t =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        int64_t kind[] = {t->dtype, t->batch_axis, t->sequence_axis, t->is_mask, t->is_optional};
        hash = add_text(hash, t->name);
        hash = add(hash, kind, sizeof kind);
        hash = add(hash, &t->pad_value, sizeof t->pad_value);
        hash = add(hash, t->dims, (size_t)t->rank * sizeof t->dims[0]);
    }
    return hash;
}

static bool name_file(const model *m, const char *cache_folder, uint64_t key, char path[PATH_MAX])
{
    if (cache_folder == NULL || m->on_device.model_key == 0)
        return false;
    int n = snprintf(path, PATH_MAX, "%s/%016llx.batching", cache_folder, (unsigned long long)key);
    return n > 0 && n < PATH_MAX;
}

/* The file is one line: a hash of the rest, NUMBERS numbers, the note. */
static uint64_t hash_of(const long long numbers[NUMBERS], const char *note)
{
    return add_text(add(0, numbers, NUMBERS * sizeof numbers[0]), note);
}

bool probe_cache_load(model *m, const manifest *file, const char *cache_folder)
{
    char path[PATH_MAX], note[NOTE_BYTES_MAX + 1] = "";
    long long numbers[NUMBERS] = {0};
    unsigned long long hash;
    if (!name_file(m, cache_folder, key_of(m, file, &m->batching), path))
        return false;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    bool is_good =
        fscanf(f, "%llx %lld %lld %lld %lld %lld %lld %2000[^\n]", &hash, &numbers[0], &numbers[1],
               &numbers[2], &numbers[3], &numbers[4], &numbers[5], note) == 2 + NUMBERS;
    file_use_mark(fileno(f));
    fclose(f);
    bool is_basis = numbers[4] >= 0 && numbers[4] <= MODEL_BASIS_UNDECIDED && numbers[5] >= 0 &&
                    numbers[5] <= MODEL_BASIS_UNDECIDED;
    if (!is_good || !is_basis || hash != hash_of(numbers, note)) {
        log_warning("models", "%s is damaged: the model is probed again", path);
        return false;
    }
    const char *kept = arena_copy_string(&m->memory, note, strlen(note));
    if (kept == NULL)
        return false;
    m->batching.can_batch = numbers[0] != 0;
    m->batching.can_pad = numbers[1] != 0;
    m->batching.batch_max = numbers[2];
    m->batching.sequence_max = numbers[3];
    m->batching.batch_basis = (model_basis)numbers[4];
    m->batching.pad_basis = (model_basis)numbers[5];
    m->batching_note = kept;
    log_info("models", "%s: %s (from the cache)", m->name, m->batching_note);
    return true;
}

void probe_cache_store(const model *m, const manifest *file, const model_batching *before,
                       const char *cache_folder)
{
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    if (!name_file(m, cache_folder, key_of(m, file, before), path) || m->batching_note[0] == 0 ||
        strlen(m->batching_note) > NOTE_BYTES_MAX || strchr(m->batching_note, '\n') != NULL)
        return;
    const model_batching *b = &m->batching;
    long long numbers[NUMBERS] = {b->can_batch,    b->can_pad,     b->batch_max,
                                  b->sequence_max, b->batch_basis, b->pad_basis};
    mkdir(cache_folder, 0777);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *f = fopen(temporary, "we");
    bool is_good = f != NULL;
    if (f != NULL) {
        is_good =
            fprintf(f, "%llx %lld %lld %lld %lld %lld %lld %s\n",
                    (unsigned long long)hash_of(numbers, m->batching_note), numbers[0], numbers[1],
                    numbers[2], numbers[3], numbers[4], numbers[5], m->batching_note) > 0;
        is_good &= fclose(f) == 0;
    }
    if (is_good && rename(temporary, path) == 0)
        return;
    unlink(temporary);
    log_warning("models", "cannot write the results of the batching probe to %s", path);
}
