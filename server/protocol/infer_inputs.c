#include "server/protocol/infer_inputs.h"

#include <string.h>

#include "server/protocol/text/text_fields.h"

status infer_inputs_begin(infer_inputs *in, infer_request *r, const infer_context *c)
{
    job *j = c->acquire_job(c->context);
    if (j == NULL)
        return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
    r->jobs[r->job_count++] = j;
    in->request = r;
    in->context = c;
    in->region_bytes = 0;
    in->job = j;
    in->has_text = in->has_pair = false;
    memset(in->is_given, 0, sizeof in->is_given);
    return STATUS_OK;
}

static status fail_unknown(const model *m, json_string name, bool is_text)
{
    if (is_text)
        return status_fail(STATUS_INVALID_ARGUMENT, "the model takes no text: %s",
                           m->text_note != NULL ? m->text_note : "");
    return status_fail(STATUS_INVALID_ARGUMENT, "the model has no input \"%.*s\"",
                       (int)(name.bytes < 200 ? name.bytes : 200), name.text);
}

status infer_inputs_open(infer_inputs *in, json_string name, infer_slot *out)
{
    const model *m = in->request->model;
    int index = infer_find_input(m, name);
    bool is_pair = json_string_is(name, TEXT_PAIR_INPUT);
    bool is_text = is_pair || json_string_is(name, TEXT_INPUT);
    if (index < 0 && (!is_text || m->text == NULL))
        return fail_unknown(m, name, is_text);
    bool *is_given = index >= 0 ? &in->is_given[index] : is_pair ? &in->has_pair : &in->has_text;
    out->index = index;
    out->name = index >= 0 ? m->inputs[index].name : is_pair ? TEXT_PAIR_INPUT : TEXT_INPUT;
    out->data = index >= 0 ? &in->job->inputs[index] : &out->text;
    if (*is_given)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" twice", out->name);
    *is_given = true;
    return STATUS_OK;
}

static status shape_text(infer_inputs *in, infer_slot *slot, dtype type, int rank,
                         const int64_t *dims)
{
    const model *m = in->request->model;
    status failure = tensor_set_shape(slot->data, type, rank, dims);
    if (!failure && rank > 0 && dims[0] > m->batching.queue_rows_max)
        failure = infer_check_size(m, dims[0], -1, in->context->limits);
    return failure;
}

status infer_inputs_shape(infer_inputs *in, infer_slot *slot, dtype type, int rank,
                          const int64_t *dims)
{
    const model *m = in->request->model;
    if (slot->index < 0)
        return shape_text(in, slot, type, rank, dims);
    /* Many clients cannot write a shape of no dims: a scalar may come as [1]. */
    bool is_scalar = m->inputs[slot->index].rank == 0 && rank == 1 && dims[0] == 1;
    status failure = tensor_set_shape(slot->data, type, is_scalar ? 0 : rank, dims);
    if (!failure)
        failure = infer_check_input(m, slot->index, slot->data, in->job);
    if (!failure)
        failure = infer_check_size(m, in->job->rows, in->job->length, in->context->limits);
    return failure;
}

status infer_inputs_read_region(infer_inputs *in, infer_slot *slot, const infer_region *region)
{
    const infer_context *c = in->context;
    arena *memory = &in->job->memory;
    bool is_borrowed;
    if (c->regions == NULL)
        return infer_fail_region(region);
    if (slot->data->dtype != DTYPE_BYTES && region->bytes != tensor_bytes(slot->data))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared_memory_byte_size is %llu, but the tensor takes %zu bytes",
                           (unsigned long long)region->bytes, tensor_bytes(slot->data));
    if (region->bytes > c->limits->decompressed_bytes_max - in->region_bytes)
        return status_fail(STATUS_TOO_LARGE,
                           "inputs in shared memory of more than %zu bytes together",
                           c->limits->decompressed_bytes_max);
    in->region_bytes += region->bytes;
    status failure = c->regions->check(c->regions, region);
    if (failure)
        return failure;
    char *data = arena_allocate_aligned(memory, region->bytes ? region->bytes : 1, 64);
    if (data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %llu bytes",
                           (unsigned long long)region->bytes);
    failure = c->regions->read(c->regions, region, data);
    /* Where it is borrowed, it is from memory of the job. */
    return failure
               ? failure
               : parse_binary_tensor(slot->data, memory, data, region->bytes, true, &is_borrowed);
}

status infer_inputs_close(infer_inputs *in, infer_slot *slot)
{
    if (slot->index >= 0)
        return STATUS_OK;
    bool is_pair = strcmp(slot->name, TEXT_PAIR_INPUT) == 0;
    return text_take_tensor(slot->data, is_pair, &in->job->memory, &in->request->texts);
}

status infer_inputs_end(infer_inputs *in)
{
    infer_request *r = in->request;
    if (in->has_text || in->has_pair) /* rows are made of them when they are tokens */
        return infer_check_texts(r, in->is_given);
    return infer_finish_job(r->model, in->job, in->is_given, in->context->limits);
}
