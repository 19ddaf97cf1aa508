/* inference.ModelInferResponse. */
#include <stdio.h>
#include <string.h>

#include "server/protocol/grpc/contents.h"
#include "server/protocol/grpc/infer_message.h"
#include "server/protocol/grpc/wire.h"
#include "server/protocol/write_infer.h"

/* A smaller output costs less to copy than a piece of its own. */
#define COPY_BYTES_MAX 4096

/* Fields of an entry of a map, and of InferParameter. */
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, INT64_PARAM = 2, STRING_PARAM = 3 };
enum { OUTPUT_PARAMETERS = 4, RAW_CONTENTS = 6 };

static void write_number(text_buffer *out, const char *key, uint64_t value)
{
    size_t entry = out->bytes;
    wire_put_bytes(out, ENTRY_KEY, key, strlen(key));
    size_t parameter = out->bytes;
    wire_put_varint(out, INT64_PARAM, value);
    wire_wrap(out, parameter, ENTRY_VALUE);
    wire_wrap(out, entry, OUTPUT_PARAMETERS);
}

/* Where the output is, and how many bytes of it. */
static void write_region(text_buffer *out, const infer_region *region, size_t bytes)
{
    static const char key[] = "shared_memory_region";
    size_t entry = out->bytes;
    wire_put_bytes(out, ENTRY_KEY, key, sizeof key - 1);
    size_t parameter = out->bytes;
    wire_put_bytes(out, STRING_PARAM, region->name.text, region->name.bytes);
    wire_wrap(out, parameter, ENTRY_VALUE);
    wire_wrap(out, entry, OUTPUT_PARAMETERS);
    write_number(out, "shared_memory_byte_size", bytes);
    if (region->offset > 0)
        write_number(out, "shared_memory_offset", region->offset);
}

static void write_output(text_buffer *out, const infer_request *r, const infer_output *o)
{
    const tensor *t = &r->jobs[0]->outputs[o->index];
    const char *name = r->model->outputs[o->index].name;
    const char *datatype = dtype_kserve_name(t->dtype);
    size_t from = out->bytes;
    wire_put_bytes(out, 1, name, strlen(name));
    wire_put_bytes(out, 2, datatype, strlen(datatype));
    size_t shape = out->bytes;
    char *room = text_buffer_reserve(out, TENSOR_RANK_MAX * WIRE_HEAD_BYTES_MAX), *at = room;
    for (int i = 0; room != NULL && i < t->rank; i++)
        at = wire_write_varint(at, (uint64_t)t->dims[i]);
    out->bytes += (size_t)(at - room);
    if (t->rank > 0)
        wire_wrap(out, shape, 3);
    if (o->region.name.bytes > 0) {
        write_region(out, &o->region, write_binary_bytes(t));
    } else if (!o->is_binary) {
        size_t contents = out->bytes;
        grpc_write_contents(&grpc_infer_layout, out, t);
        wire_wrap(out, contents, 5);
    }
    wire_wrap(out, from, 5);
}

void grpc_add_piece(grpc_pieces *pieces, size_t *text_from, const text_buffer *out,
                    const void *data, size_t bytes)
{
    pieces->of[pieces->count++] = (grpc_piece){NULL, out->bytes - *text_from};
    *text_from = out->bytes;
    if (data != NULL)
        pieces->of[pieces->count++] = (grpc_piece){data, bytes};
}

static void write_strings_of(text_buffer *out, const tensor *t)
{
    size_t bytes = write_strings_bytes(t);
    wire_put_head(out, RAW_CONTENTS, bytes);
    char *room = text_buffer_reserve(out, bytes + 1);
    if (room != NULL) {
        write_strings(room, t);
        out->bytes += bytes;
    }
}

status grpc_write_infer(text_buffer *out, const infer_request *r, grpc_pieces *pieces)
{
    const model *m = r->model;
    char version[24];
    size_t text_from = 0;
    int n = snprintf(version, sizeof version, "%lld", (long long)m->version);
    wire_put_bytes(out, 1, m->name, strlen(m->name));
    wire_put_bytes(out, 2, version, (size_t)n);
    if (r->id.bytes > 0)
        wire_put_bytes(out, 3, r->id.text, r->id.bytes);
    for (int i = 0; i < r->output_count; i++)
        write_output(out, r, &r->outputs[i]);
    pieces->count = 0;
    for (int i = 0; i < r->output_count && r->outputs[i].is_binary; i++) {
        const tensor *t = &r->jobs[0]->outputs[r->outputs[i].index];
        if (r->outputs[i].region.name.bytes > 0) {
            wire_put_head(out, RAW_CONTENTS, 0); /* clients count them */
            continue;
        }
        if (t->dtype == DTYPE_BYTES) {
            write_strings_of(out, t);
            continue;
        }
        size_t bytes = tensor_bytes(t);
        wire_put_head(out, RAW_CONTENTS, bytes);
        if (bytes <= COPY_BYTES_MAX || pieces->count + 3 > GRPC_PIECES_MAX)
            text_buffer_append(out, t->data, bytes);
        else
            grpc_add_piece(pieces, &text_from, out, t->data, bytes);
    }
    if (out->bytes > text_from || pieces->count == 0)
        grpc_add_piece(pieces, &text_from, out, NULL, 0);
    return out->is_broken ? status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response")
                          : STATUS_OK;
}
