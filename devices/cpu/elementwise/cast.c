#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/lines.h"

static status prepare_cast(cpu_prepare *p)
{
    dtype from = p->inputs[0]->dtype, to = p->outputs[0].dtype;
    if ((from == DTYPE_BYTES) != (to == DTYPE_BYTES))
        return status_fail(STATUS_UNSUPPORTED, "no conversion of %s to %s on the CPU",
                           dtype_name(from), dtype_name(to));
    return STATUS_OK;
}

static void convert_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    c->kernels->convert_line(
        &(convert_line){.from = in->dtype,
                        .to = out->dtype,
                        .in = (const char *)in->data + first * dtype_bytes(in->dtype),
                        .out = (char *)out->data + first * dtype_bytes(out->dtype),
                        .count = count});
}

/* Halves and what is no float, by way of F32: what halves hold is exact there, and integers that
 * F32 rounds are beyond them. */
static void convert_halves(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    const char *from = (const char *)in->data + first * dtype_bytes(in->dtype);
    char *to = (char *)out->data + first * dtype_bytes(out->dtype);
    bool is_of_half = in->dtype == DTYPE_F16;
    float some[CPU_BLOCK_ELEMENTS];
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < CPU_BLOCK_ELEMENTS ? count - i : CPU_BLOCK_ELEMENTS;
        const void *x = from + i * dtype_bytes(in->dtype);
        void *y = to + i * dtype_bytes(out->dtype);
        if (is_of_half)
            c->kernels->convert_f16_f32(x, some, n);
        convert_line line = {in->dtype, DTYPE_F32, x, some, n};
        if (is_of_half)
            line = (convert_line){DTYPE_F32, out->dtype, some, y, n};
        c->kernels->convert_line(&line);
        if (!is_of_half)
            c->kernels->convert_f32_f16(some, y, n);
    }
}

/* Not from F64, which would be rounded twice. */
static bool is_half_and_number(dtype from, dtype to)
{
    return (from == DTYPE_F16 && convert_line_has(DTYPE_F32, to)) ||
           (to == DTYPE_F16 && from != DTYPE_F64 && convert_line_has(from, DTYPE_F32));
}

/* Floats become integers toward zero, saturated; integers wrap; anything but zero is true. */
static status run_cast(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    int64_t count = tensor_count(in);
    if (in->dtype == out->dtype) {
        if (count)
            memcpy(out->data, in->data, tensor_bytes(in));
        return STATUS_OK;
    }
    const kernels *k = c->kernels;
    if (in->dtype == DTYPE_F16 && out->dtype == DTYPE_F32)
        return k->convert_f16_f32(in->data, out->data, (size_t)count), STATUS_OK;
    if (in->dtype == DTYPE_BF16 && out->dtype == DTYPE_F32)
        return k->convert_bf16_f32(in->data, out->data, (size_t)count), STATUS_OK;
    if (in->dtype == DTYPE_F32 && out->dtype == DTYPE_F16)
        return k->convert_f32_f16(in->data, out->data, (size_t)count), STATUS_OK;
    if (in->dtype == DTYPE_F32 && out->dtype == DTYPE_BF16)
        return k->convert_f32_bf16(in->data, out->data, (size_t)count), STATUS_OK;
    if (convert_line_has(in->dtype, out->dtype)) {
        cpu_split_rows(c, (double)count / 4, convert_some, (size_t)count);
        return STATUS_OK;
    }
    if (is_half_and_number(in->dtype, out->dtype)) {
        cpu_split_rows(c, (double)count / 4, convert_halves, (size_t)count);
        return STATUS_OK;
    }
    cpu_compute compute = cpu_compute_of(in->dtype);
    cpu_block x;
    for (int64_t i = 0; i < count; i += CPU_BLOCK_ELEMENTS) {
        size_t n = (size_t)(count - i < CPU_BLOCK_ELEMENTS ? count - i : CPU_BLOCK_ELEMENTS);
        cpu_load(compute, in->dtype, in->data, i, 1, n, &x);
        cpu_store(compute, out->dtype, &x, out->data, i, 1, n);
    }
    return STATUS_OK;
}

static status run_bit_cast(const cpu_call *c)
{
    size_t bytes = tensor_bytes(c->inputs[0]);
    if (bytes)
        memcpy(c->outputs[0].data, c->inputs[0]->data, bytes);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_BIT_CAST, prepare_cast, run_bit_cast, 0, false},
    {GRAPH_OP_CAST, prepare_cast, run_cast, 0, false},
    {GRAPH_OP_CAST_LIKE, prepare_cast, run_cast, 0, false},
};

const cpu_op_family cpu_ops_cast = {table, sizeof table / sizeof table[0]};
