#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity/content_hash.h"
#include "base/io/file_use.h"
#include "base/io/file_writer.h"
#include "base/log.h"
#include "devices/cpu/encoder/internal.h"
#include "kernels/gemm_scaled.h"

/* Packed weights on disk: a page-aligned header with plan and report, then the image as it lies in
 * memory. The file is mapped read-only, so servers on one host share its pages. It is written under
 * another name and renamed: a reader sees a whole file or none, and a replaced file stays valid for
 * those who have it mapped. A file whose numbers or checksum do not match is ignored, and the
 * weights are packed again. */

#define MAGIC UINT64_C(0x31434e4544474e50)
#define LAYOUT 5 /* of this file and of cpu_encoder_lay_out; changes with either */
#define PAGE ((size_t)4096)
#define TEXT_BYTES_MAX ((size_t)1 << 20)

typedef struct header {
    uint64_t magic, checksum; /* of all that follows the checksum, to the end of the file */
    uint64_t model_key, shape;
    uint32_t layout, layout_u8s8, layout_s16, precision, level, plan_count;
    uint64_t report_bytes, image_offset, image_bytes;
} header;

static uint64_t hash_tensor(uint64_t h, const tensor *t)
{
    return t ? content_hash(content_hash(h, t->dims, sizeof t->dims), t->data, tensor_bytes(t))
             : h * 31;
}

/* What the hash of the model files does not cover: shape, and head layers, which may come from
 * other files. */
static uint64_t hash_shape(const encoder *s)
{
    int64_t numbers[] = {s->hidden,
                         s->heads,
                         s->intermediate,
                         s->layer_count,
                         s->output_count,
                         s->positions,
                         s->token_type_table != NULL,
                         s->position_offset,
                         s->kv_heads,
                         s->head_dim,
                         cpu_encoder_up_width(s),
                         s->is_pre_norm,
                         s->is_causal};
    uint64_t h = content_hash(1, numbers, sizeof numbers);
    for (int o = 0; o < s->output_count; o++) {
        const encoder_output *output = &s->outputs[o];
        int64_t kind[] = {output->pooling, output->head_count, output->is_normalised,
                          output->also_count};
        h = content_hash(h, kind, sizeof kind);
        h = content_hash(h, output->also, (size_t)output->also_count * sizeof output->also[0]);
        for (int i = 0; i < output->head_count; i++) {
            h = hash_tensor(h, output->head[i].linear.weight);
            h = hash_tensor(h, output->head[i].linear.bias);
            h = hash_tensor(h, output->head[i].norm.scale);
            h = hash_tensor(h, output->head[i].norm.bias);
            h = content_hash(h, &output->head[i].activation, sizeof output->head[i].activation);
        }
    }
    return h;
}

static header header_of(const cpu_encoder *e)
{
    return (header){.magic = MAGIC,
                    .model_key = e->options.model_key,
                    .shape = hash_shape(&e->source),
                    .layout = LAYOUT,
                    .layout_u8s8 = GEMM_U8S8_LAYOUT,
                    .layout_s16 = GEMM_S16_LAYOUT,
                    .precision = e->options.precision,
                    .level = e->options.kernels->level,
                    .plan_count = (uint32_t)e->source.layer_count * ENCODER_LINEARS};
}

static bool name_file(const cpu_encoder *e, char path[4096])
{
    int n = snprintf(path, 4096, "%s/%016llx-%s-%s.encoder", e->options.cache_folder,
                     (unsigned long long)e->options.model_key,
                     device_precision_names[e->options.precision],
                     kernels_level_name(e->options.kernels->level));
    return n > 0 && n < 4000;
}

/* Reads plan, report and the offset of the image; false when anything does not match. */
static bool adopt(cpu_encoder *e, const char *data, size_t bytes)
{
    header wanted = header_of(e), found;
    if (bytes < sizeof found)
        return false;
    memcpy(&found, data, sizeof found);
    wanted.checksum = found.checksum;
    wanted.report_bytes = found.report_bytes;
    wanted.image_offset = found.image_offset;
    wanted.image_bytes = found.image_bytes;
    size_t skipped = 2 * sizeof(uint64_t), text = sizeof found + wanted.plan_count;
    if (memcmp(&wanted, &found, sizeof found) != 0 || found.report_bytes > TEXT_BYTES_MAX ||
        found.image_offset % PAGE != 0 || found.image_offset > bytes ||
        text + found.report_bytes > found.image_offset ||
        found.image_bytes != bytes - found.image_offset ||
        content_hash(0, data + skipped, bytes - skipped) != found.checksum)
        return false;
    for (uint32_t i = 0; i < found.plan_count; i++) {
        unsigned format = (unsigned char)data[sizeof found + i];
        if (format >= CPU_ENCODER_FORMAT_COUNT)
            return false;
        e->plan[i] = (cpu_encoder_format)format;
    }
    if (cpu_encoder_lay_out(e, NULL) != found.image_bytes)
        return false;
    e->report = strndup(data + text, found.report_bytes);
    return e->report != NULL;
}

status cpu_encoder_cache_load(cpu_encoder *e)
{
    char path[4096];
    struct stat s;
    if (!e->options.cache_folder || e->options.model_key == 0 || !name_file(e, path))
        return STATUS_NOT_FOUND;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return STATUS_NOT_FOUND;
    void *data = MAP_FAILED;
    size_t bytes = 0;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0) {
        bytes = (size_t)s.st_size;
        data = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    }
    file_use_mark(file);
    close(file);
    if (data == MAP_FAILED)
        return STATUS_NOT_FOUND;
    if (!adopt(e, data, bytes)) {
        log_warning("devices", "%s is damaged or from another version: packing the weights again",
                    path);
        munmap(data, bytes);
        cpu_encoder_plan_all(e, e->options.precision);
        return STATUS_NOT_FOUND;
    }
    e->image = data;
    e->image_bytes = bytes;
    e->is_mapped = e->is_from_cache = true;
    cpu_encoder_lay_out(e, (char *)data + ((const header *)data)->image_offset);
    return STATUS_OK;
}

static status write_file(const cpu_encoder *e, const char *path)
{
    header h = header_of(e);
    h.report_bytes = e->report ? strlen(e->report) : 0;
    h.image_bytes = e->image_bytes;
    size_t front = sizeof h + h.plan_count + h.report_bytes;
    front = (front + PAGE - 1) & ~(PAGE - 1);
    h.image_offset = front;
    char *whole = malloc(front + e->image_bytes);
    if (!whole)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to write %s", path);
    memset(whole, 0, front);
    for (uint32_t i = 0; i < h.plan_count; i++)
        whole[sizeof h + i] = (char)e->plan[i];
    if (h.report_bytes > 0)
        memcpy(whole + sizeof h + h.plan_count, e->report, h.report_bytes);
    memcpy(whole + front, e->image, e->image_bytes);
    memcpy(whole, &h, sizeof h);
    size_t skipped = 2 * sizeof(uint64_t);
    h.checksum = content_hash(0, whole + skipped, front + e->image_bytes - skipped);
    memcpy(whole, &h, sizeof h);
    file_part part = {whole, front + e->image_bytes};
    status s = file_writer_replace(path, &part, 1);
    free(whole);
    return s;
}

void cpu_encoder_cache_store(const cpu_encoder *e)
{
    char path[4096];
    if (!e->options.cache_folder || e->options.model_key == 0 || !name_file(e, path))
        return;
    if (mkdir(e->options.cache_folder, 0777) != 0 && errno != EEXIST) {
        log_warning("devices", "the packed weights are not cached: %s: %s", e->options.cache_folder,
                    strerror(errno));
        return;
    }
    if (write_file(e, path) != STATUS_OK)
        log_warning("devices", "the packed weights are not cached: %s", status_message());
}
