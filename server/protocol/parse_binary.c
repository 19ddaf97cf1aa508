#include <assert.h>
#include <string.h>

#include "server/protocol/infer.h"

/* Below this a copy costs less than keeping the body. */
#define BORROW_BYTES_MIN 65536

/* BYTES elements: uint32 little-endian length, then that many bytes, one after another (Open
 * Inference Protocol, binary tensor data extension). */
static status parse_strings(tensor *t, arena *memory, const char *from, size_t bytes)
{
    int64_t count = tensor_count(t);
    if ((uint64_t)count > bytes / 4)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu binary bytes cannot hold %lld strings",
                           bytes, (long long)count);
    tensor_string *strings = arena_allocate(memory, (size_t)count * sizeof(*strings) + 1);
    char *copy = arena_allocate(memory, bytes + 1);
    if (strings == NULL || copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    memcpy(copy, from, bytes);
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if (bytes - at < sizeof(length))
            goto short_of;
        memcpy(&length, copy + at, sizeof(length)); /* little-endian hosts only, as all of ours */
        at += sizeof(length);
        if (bytes - at < length)
            goto short_of;
        strings[i] = (tensor_string){(const uint8_t *)copy + at, length};
        at += length;
    }
    if (at != bytes)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu binary bytes left after %lld strings",
                           bytes - at, (long long)count);
    t->data = strings;
    return STATUS_OK;
short_of:
    return status_fail(STATUS_INVALID_ARGUMENT, "%zu binary bytes end inside the strings", bytes);
}

status parse_binary_tensor(tensor *t, arena *memory, const char *from, size_t bytes,
                           bool can_borrow, bool *is_borrowed)
{
    *is_borrowed = false;
    if (t->dtype == DTYPE_BYTES)
        return parse_strings(t, memory, from, bytes);
    if (bytes != tensor_bytes(t)) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu binary bytes, but %s of %s takes %zu",
                           bytes, tensor_shape_text(shape, t->rank, t->dims),
                           dtype_kserve_name(t->dtype), tensor_bytes(t));
    }
    if (t->dtype == DTYPE_BOOL) {
        for (size_t i = 0; i < bytes; i++) {
            if ((unsigned char)from[i] > 1)
                return status_fail(STATUS_INVALID_ARGUMENT, "a BOOL byte is %u, not 0 or 1",
                                   (unsigned char)from[i]);
        }
    }
    /* Kernels read whole elements, so a borrowed tensor must lie on their boundary. */
    if (can_borrow && bytes >= BORROW_BYTES_MIN && (uintptr_t)from % dtype_bytes(t->dtype) == 0) {
        t->data = (void *)(uintptr_t)from;
        *is_borrowed = true;
        return STATUS_OK;
    }
    t->data = arena_allocate_aligned(memory, bytes ? bytes : 1, 64);
    if (t->data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    memcpy(t->data, from, bytes);
    return STATUS_OK;
}

/* Counts the strings of a raw BYTES body. */
static int64_t count_strings(const char *body, size_t bytes)
{
    int64_t count = 0;
    for (size_t at = 0; bytes - at >= 4;) {
        uint32_t length;
        memcpy(&length, body + at, sizeof(length));
        at += 4;
        if (bytes - at < length)
            break;
        at += length;
        count++;
    }
    return count;
}

status parse_kserve_raw(infer_request *r, const infer_context *c, const char *body, size_t bytes)
{
    const model *m = r->model;
    if (m->input_count != 1)
        return status_fail(
            STATUS_INVALID_ARGUMENT,
            "a raw request (Inference-Header-Content-Length: 0) needs a model of one "
            "input; this one has %d",
            m->input_count);
    const model_tensor *declared = &m->inputs[0];
    job *j = c->acquire_job(c->context);
    if (j == NULL)
        return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
    r->jobs[r->job_count++] = j;
    int64_t dims[TENSOR_RANK_MAX], known = 1;
    int open_axis = -1;
    for (int i = 0; i < declared->rank; i++) {
        dims[i] = i == declared->batch_axis ? 1 : declared->dims[i];
        if (dims[i] >= 0) {
            known *= dims[i];
        } else if (open_axis < 0) {
            open_axis = i;
        } else {
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "a raw request cannot tell the shape of input \"%s\"",
                               declared->name);
        }
    }
    if (open_axis >= 0) {
        size_t elements = declared->dtype == DTYPE_BYTES ? (size_t)count_strings(body, bytes)
                                                         : bytes / dtype_bytes(declared->dtype);
        dims[open_axis] = known > 0 ? (int64_t)elements / known : 0;
    }
    tensor *t = &j->inputs[0];
    status failure = tensor_set_shape(t, declared->dtype, declared->rank, dims);
    if (!failure)
        failure = parse_binary_tensor(t, &j->memory, body, bytes, c->can_borrow, &r->borrows_body);
    if (!failure)
        failure = infer_check_input(m, 0, t, j);
    if (!failure)
        failure = infer_finish_job(m, j, (bool[]){true}, c->limits);
    if (failure)
        return failure;
    for (int i = 0; i < m->output_count; i++)
        r->outputs[r->output_count++] = (infer_output){.index = i, .is_binary = true};
    return STATUS_OK;
}
