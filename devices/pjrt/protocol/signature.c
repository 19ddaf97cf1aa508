#include "devices/pjrt/protocol/signature.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/exported.h"
#include "devices/pjrt/protocol/hlo_summary.h"

void pjrt_declaration_make(const device_model *model, device_bucket bucket,
                           const stablehlo_program *program, pjrt_declaration *out)
{
    const graph *g = model->graph;
    assert(model->exported != NULL && program->argument_count == model->exported->argument_count);
    *out = (pjrt_declaration){.argument_count = program->argument_count,
                              .output_count = g->output_count};
    out->items = calloc((size_t)(out->argument_count + out->output_count) + 1, sizeof *out->items);
    assert(out->items != NULL);
    for (int i = 0; i < out->argument_count; i++) {
        const stablehlo_argument *a = &program->arguments[i];
        pjrt_declared *d = &out->items[i];
        d->shape = (pjrt_tensor_shape){.dtype = (int32_t)a->dtype, .rank = a->rank};
        memcpy(d->shape.dims, a->dims, sizeof d->shape.dims);
        snprintf(d->what, sizeof d->what, "argument %d, %s \"%.80s\",", i,
                 a->input >= 0 ? "input" : "weight", model->exported->arguments[i].name);
    }
    for (int i = 0; i < out->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        pjrt_declared *d = &out->items[out->argument_count + i];
        d->shape = (pjrt_tensor_shape){.dtype = (int32_t)v->dtype, .rank = v->shape.rank};
        for (int k = 0; k < v->shape.rank; k++)
            d->shape.dims[k] = graph_dim_at(v->shape.dims[k], bucket.batch, bucket.sequence);
        snprintf(d->what, sizeof d->what, "output %d, \"%.80s\",", i, v->name);
    }
}

void pjrt_declaration_dispose(pjrt_declaration *d)
{
    free(d->items);
    *d = (pjrt_declaration){0};
}

static void describe(char out[160], dtype type, int rank, const int64_t *dims)
{
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    snprintf(out, 160, "%s%s", dtype_kserve_name(type), tensor_shape_text(shape, rank, dims));
}

static status compare(const pjrt_declared *d, const hlo_shape *has)
{
    char declared[160], found[160] = "of a type that is not supported";
    if (has->has_dtype && (int32_t)has->dtype == d->shape.dtype && has->rank == d->shape.rank &&
        memcmp(has->dims, d->shape.dims, (size_t)has->rank * sizeof has->dims[0]) == 0)
        return STATUS_OK;
    describe(declared, (dtype)d->shape.dtype, d->shape.rank, d->shape.dims);
    if (has->has_dtype)
        describe(found, has->dtype, has->rank, has->dims);
    return status_fail(STATUS_INVALID_ARGUMENT, "%s is %s in the program and %s in model.json",
                       d->what, found, declared);
}

status pjrt_declaration_check(const pjrt_declaration *d, const void *hlo, size_t hlo_bytes)
{
    hlo_signature has;
    status s = hlo_read_signature(hlo, hlo_bytes, &has);
    if (s)
        return s;
    if (has.parameter_count != d->argument_count)
        s = status_fail(STATUS_INVALID_ARGUMENT,
                        "the program takes %d arguments, model.json lists %d", has.parameter_count,
                        d->argument_count);
    else if (has.result_count != d->output_count)
        s = status_fail(STATUS_INVALID_ARGUMENT, "the program has %d outputs, model.json lists %d",
                        has.result_count, d->output_count);
    for (int i = 0; s == STATUS_OK && i < d->argument_count + d->output_count; i++)
        s = compare(&d->items[i], &has.shapes[i]);
    hlo_signature_dispose(&has);
    return s;
}
