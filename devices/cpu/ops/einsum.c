#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/gemm_f32.h"

/* Einsum of two F32 inputs as matrix products, where each summed label is in both; others by
 * definition: for each output element the sum, over the labels it lacks, of the product of the
 * inputs. Labels are letters; an ellipsis stands for up to eight further labels that
 * broadcast from the right. */

#define INPUTS_MAX 8
#define CANCEL_STEPS (1 << 20) /* between checks for cancellation */
#define LABELS_MAX 32
#define ELLIPSIS_FIRST 64 /* label numbers: letters below, ellipsis dims from here */
#define LABEL_NUMBERS (ELLIPSIS_FIRST + TENSOR_RANK_MAX)

/* What a label of two inputs is to a matrix product. */
typedef enum label_kind { BATCH, ROWS, COLUMNS, INNER, KIND_COUNT } label_kind;

typedef struct einsum_product {
    int labels[KIND_COUNT][LABELS_MAX], counts[KIND_COUNT];
    int64_t sizes[KIND_COUNT]; /* products of their dims */
} einsum_product;

typedef struct einsum_state {
    int label_count, out_count; /* the output's labels come first */
    int64_t dims[LABELS_MAX];
    int64_t strides[INPUTS_MAX][LABELS_MAX];
    bool is_product;
    einsum_product product;
} einsum_state;

typedef struct term {
    int labels[LABELS_MAX];
    int count;
} term;

static int label_of(char c)
{
    return c >= 'a' ? c - 'a' + 26 : c - 'A';
}

/* Labels of one term of the equation, its ellipsis filled with `ellipsis_rank` labels. */
static const char *parse_term(const char *at, int ellipsis_rank, term *t)
{
    t->count = 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (isalpha((unsigned char)*at) && t->count < LABELS_MAX) {
            t->labels[t->count++] = label_of(*at);
        } else if (*at == '.') {
            while (at[1] == '.')
                at++;
            for (int i = 0; i < ellipsis_rank && t->count < LABELS_MAX; i++)
                t->labels[t->count++] = ELLIPSIS_FIRST + TENSOR_RANK_MAX - ellipsis_rank + i;
        }
    }
    return at;
}

static int letters_in(const char *at)
{
    int count = 0;
    for (; *at && *at != ',' && *at != '-'; at++)
        count += isalpha((unsigned char)*at) != 0;
    return count;
}

/* Without "->": the labels that occur once, in alphabetical order, after the ellipsis. */
static void imply_output(const int uses[LABEL_NUMBERS], term *out)
{
    out->count = 0;
    for (int l = ELLIPSIS_FIRST; l < LABEL_NUMBERS; l++)
        if (uses[l])
            out->labels[out->count++] = l;
    for (int l = 0; l < ELLIPSIS_FIRST; l++)
        if (uses[l] == 1 && out->count < LABELS_MAX)
            out->labels[out->count++] = l;
}

static status plan_einsum(einsum_state *s, const char *equation, const tensor *const *inputs,
                          int input_count)
{
    term terms[INPUTS_MAX], out;
    int uses[LABEL_NUMBERS] = {0}, place[LABEL_NUMBERS], widest = 0;
    const char *at = equation;
    for (int i = 0; i < input_count; i++) {
        int rank = inputs[i]->rank - letters_in(at);
        widest = rank > widest ? rank : widest;
        at = parse_term(at, rank, &terms[i]);
        if (terms[i].count != inputs[i]->rank)
            return status_fail(STATUS_INVALID_ARGUMENT, "equation \"%s\" does not fit input %d",
                               equation, i);
        for (int d = 0; d < terms[i].count; d++)
            uses[terms[i].labels[d]]++;
        at += *at == ',';
    }
    if (*at == '-')
        parse_term(at + 2, widest, &out);
    else
        imply_output(uses, &out);
    for (int l = 0; l < LABEL_NUMBERS; l++)
        place[l] = -1;
    for (int d = 0; d < out.count; d++)
        place[out.labels[d]] = s->label_count++;
    s->out_count = out.count;
    for (int l = 0; l < LABEL_NUMBERS; l++)
        if (uses[l] && place[l] < 0) {
            if (s->label_count == LABELS_MAX)
                return status_fail(STATUS_UNSUPPORTED, "more than %d labels", LABELS_MAX);
            place[l] = s->label_count++;
        }
    for (int i = 0; i < LABELS_MAX; i++)
        s->dims[i] = 1;
    for (int i = 0; i < input_count; i++) {
        int64_t dense[TENSOR_RANK_MAX];
        cpu_dense_strides(inputs[i]->rank, inputs[i]->dims, dense);
        for (int d = 0; d < terms[i].count; d++) {
            int p = place[terms[i].labels[d]];
            if (inputs[i]->dims[d] != 1) { /* a repeated label walks the diagonal */
                s->dims[p] = inputs[i]->dims[d];
                s->strides[i][p] += dense[d];
            }
        }
    }
    return STATUS_OK;
}

/* False: it is none. */
static bool plan_product(const einsum_state *s, einsum_product *p)
{
    for (int k = 0; k < KIND_COUNT; k++)
        p->sizes[k] = 1;
    for (int l = 0; l < s->label_count; l++) {
        bool in_a = s->strides[0][l] != 0, in_b = s->strides[1][l] != 0, is_out = l < s->out_count;
        if (s->dims[l] == 1)
            continue;
        if (s->dims[l] == 0 || (!in_a && !in_b) || (!is_out && !(in_a && in_b)))
            return false;
        label_kind kind = !is_out ? INNER : in_a && in_b ? BATCH : in_a ? ROWS : COLUMNS;
        p->labels[kind][p->counts[kind]++] = l;
        p->sizes[kind] *= s->dims[l];
    }
    return true;
}

static size_t matrices_bytes(const einsum_product *p, label_kind rows, label_kind columns)
{
    return cpu_scratch_round((size_t)(p->sizes[BATCH] * p->sizes[rows] * p->sizes[columns]) *
                             sizeof(float));
}

static status prepare_einsum(cpu_prepare *p)
{
    int count = p->node->input_count;
    if (count > INPUTS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "%d inputs; up to %d are supported", count,
                           INPUTS_MAX);
    if (p->inputs[0]->dtype >= DTYPE_BYTES)
        return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
    einsum_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    char equation[256];
    size_t used = 0;
    for (const char *at = graph_attribute_string(p->node, "equation", ""); *at; at++)
        if (*at != ' ' && used < sizeof equation - 1)
            equation[used++] = *at;
    equation[used] = 0;
    p->state = s;
    status failure = plan_einsum(s, equation, p->inputs, count);
    s->is_product =
        !failure && count == 2 && p->inputs[0]->dtype == DTYPE_F32 && plan_product(s, &s->product);
    if (s->is_product)
        p->scratch_bytes = matrices_bytes(&s->product, ROWS, INNER) +
                           matrices_bytes(&s->product, INNER, COLUMNS) +
                           matrices_bytes(&s->product, ROWS, COLUMNS);
    return failure;
}

/* Steps the labels [from, to) like an odometer and moves the offsets; false at the end. */
static bool advance(const einsum_state *s, int from, int to, int inputs, int64_t *index,
                    int64_t *offsets)
{
    for (int l = to - 1; l >= from; l--) {
        index[l]++;
        for (int i = 0; i < inputs; i++)
            offsets[i] += s->strides[i][l];
        if (index[l] < s->dims[l])
            return true;
        for (int i = 0; i < inputs; i++)
            offsets[i] -= s->strides[i][l] * s->dims[l];
        index[l] = 0;
    }
    return false;
}

/* Copies between a tensor of these strides (by label) and dense matrices [batch][rows][columns]. */
static void copy_matrices(const cpu_call *c, label_kind rows, label_kind columns,
                          const int64_t *strides, const void *from, bool is_gathering, void *to)
{
    const einsum_state *s = c->state;
    const label_kind kinds[] = {BATCH, rows, columns};
    int64_t dims[LABELS_MAX], apart[LABELS_MAX], dense[LABELS_MAX];
    int rank = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < s->product.counts[kinds[k]]; i++, rank++) {
            int label = s->product.labels[kinds[k]][i];
            dims[rank] = s->dims[label];
            apart[rank] = strides[label];
        }
    cpu_dense_strides(rank, dims, dense);
    cpu_split_copy(c, sizeof(float), rank, dims, from, is_gathering ? apart : dense, to,
                   is_gathering ? dense : apart);
}

typedef struct product_run {
    const cpu_call *call;
    const float *a, *b;
    float *out;
} product_run;

static void multiply_batch(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const product_run *r = context;
    const einsum_state *s = r->call->state;
    const int64_t *sizes = s->product.sizes;
    size_t m = (size_t)sizes[ROWS], n = (size_t)sizes[COLUMNS], k = (size_t)sizes[INNER];
    if (!cancel_check(r->call->cancel))
        r->call->kernels->gemm_unpacked_f32(&(gemm_f32_unpacked){.m = m,
                                                                 .n = n,
                                                                 .k = k,
                                                                 .a = r->a + unit * m * k,
                                                                 .a_stride = k,
                                                                 .b = r->b + unit * k * n,
                                                                 .b_row_stride = n,
                                                                 .b_column_stride = 1,
                                                                 .c = r->out + unit * m * n,
                                                                 .c_stride = n});
}

static status run_product(const cpu_call *c)
{
    const einsum_state *s = c->state;
    const einsum_product *p = &s->product;
    float *a = c->scratch, *b = (float *)((char *)a + matrices_bytes(p, ROWS, INNER));
    float *out = (float *)((char *)b + matrices_bytes(p, INNER, COLUMNS));
    int64_t strides[LABELS_MAX] = {0};
    cpu_dense_strides(s->out_count, s->dims, strides);
    copy_matrices(c, ROWS, INNER, s->strides[0], c->inputs[0]->data, true, a);
    copy_matrices(c, INNER, COLUMNS, s->strides[1], c->inputs[1]->data, true, b);
    product_run r = {c, a, b, out};
    double steps = (double)p->sizes[BATCH] * (double)p->sizes[ROWS] * (double)p->sizes[COLUMNS] *
                   (double)p->sizes[INNER];
    cpu_split(c, steps / 32, multiply_batch, &r, (size_t)p->sizes[BATCH]);
    copy_matrices(c, ROWS, COLUMNS, strides, out, false, c->outputs[0].data);
    return cancel_check(c->cancel);
}

static status run_einsum(const cpu_call *c)
{
    const einsum_state *e = c->state;
    if (e->is_product && tensor_count(&c->outputs[0]) > 0)
        return run_product(c);
    int inputs = c->node->input_count;
    uint64_t steps = 0;
    status s;
    tensor *out = &c->outputs[0];
    cpu_compute compute = cpu_compute_of(out->dtype);
    bool is_float = compute == CPU_COMPUTE_F32 || compute == CPU_COMPUTE_F64;
    compute = is_float ? CPU_COMPUTE_F64 : compute;
    int64_t index[LABELS_MAX] = {0}, offsets[INPUTS_MAX] = {0}, count = tensor_count(out);
    bool is_empty = false;
    for (int l = e->out_count; l < e->label_count; l++)
        is_empty |= e->dims[l] == 0;
    for (int64_t i = 0; i < count; i++) {
        union {
            double f;
            uint64_t u;
        } sum = {.u = 0}, product = {.u = 0}, x;
        do {
            if (is_empty)
                break;
            if (++steps % CANCEL_STEPS == 0 && (s = cancel_check(c->cancel)))
                return s;
            for (int t = 0; t < inputs; t++) {
                const tensor *in = c->inputs[t];
                cpu_load(compute, in->dtype, in->data, offsets[t], 1, 1, &x);
                if (t == 0)
                    product = x;
                else if (is_float)
                    product.f *= x.f;
                else
                    product.u *= x.u;
            }
            if (is_float)
                sum.f += product.f;
            else
                sum.u += product.u;
        } while (advance(e, e->out_count, e->label_count, inputs, index, offsets));
        cpu_store(compute, out->dtype, &sum, out->data, i, 1, 1);
        advance(e, 0, e->out_count, inputs, index, offsets);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_EINSUM, prepare_einsum, run_einsum, 0, false},
};

const cpu_op_family cpu_ops_einsum = {table, sizeof table / sizeof table[0]};
