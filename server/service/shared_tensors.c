#include "server/service/shared_tensors.h"

#include <string.h>

#include "server/protocol/write_infer.h"

static status check(const infer_regions *base, const infer_region *region)
{
    const shared_tensors *r = (const shared_tensors *)base;
    return shared_memory_check(r->memory, region->name.text, region->name.bytes, region->offset,
                               region->bytes);
}

static status read_region(const infer_regions *base, const infer_region *region, void *to)
{
    const shared_tensors *r = (const shared_tensors *)base;
    if (budget_add(r->held, region->bytes) != BUDGET_GRANTED)
        return status_fail(STATUS_UNAVAILABLE, "there is no room for the request's tensors now");
    return shared_memory_read(r->memory, region->name.text, region->name.bytes, region->offset,
                              region->bytes, to);
}

void shared_tensors_init(shared_tensors *r, shared_memory *memory, budget_account *held)
{
    *r = (shared_tensors){{check, read_region}, memory, held};
}

bool shared_tensors_are_named(const char *body, size_t bytes)
{
    static const char key[] = "shared_memory_region";
    return memmem(body, bytes, key, sizeof key - 1) != NULL;
}

bool shared_tensors_are_written(const infer_request *q)
{
    for (int i = 0; i < q->output_count; i++) {
        if (q->outputs[i].region.name.bytes > 0)
            return true;
    }
    return false;
}

static status write_output(job *first, const tensor *t, const infer_region *region,
                           shared_memory *memory)
{
    size_t bytes = write_binary_bytes(t);
    const char *data = t->data;
    if (bytes > region->bytes)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared_memory_byte_size is %llu, but the result takes %zu bytes",
                           (unsigned long long)region->bytes, bytes);
    if (t->dtype == DTYPE_BYTES) {
        char *text = arena_allocate(&first->memory, bytes + 1);
        if (text == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of strings", bytes);
        write_strings(text, t);
        data = text;
    }
    return shared_memory_write(memory, region->name.text, region->name.bytes, region->offset, bytes,
                               data);
}

status shared_tensors_write(const infer_request *q, shared_memory *memory)
{
    status failure = STATUS_OK;
    for (int i = 0; i < q->output_count && !failure; i++) {
        const infer_output *o = &q->outputs[i];
        if (o->region.name.bytes == 0)
            continue;
        failure = write_output(q->jobs[0], &q->jobs[0]->outputs[o->index], &o->region, memory);
        if (failure)
            return status_prefix(failure, "output \"%s\"", q->model->outputs[o->index].name);
    }
    return failure;
}
