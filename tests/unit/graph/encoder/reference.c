#include "tests/unit/graph/encoder/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct rows {
    int64_t count, columns;
    double *x;
} rows;

static rows make_rows(int64_t count, int64_t columns)
{
    double *x = calloc((size_t)(count * columns) + 1, sizeof x[0]);
    if (x == NULL)
        abort();
    return (rows){.count = count, .columns = columns, .x = x};
}

static rows apply_linear(const encoder_linear *l, const rows *in)
{
    int64_t n = l->weight->dims[l->is_transposed ? 0 : 1], k = in->columns;
    rows out = make_rows(in->count, n);
    for (int64_t r = 0; r < in->count; r++)
        for (int64_t c = 0; c < n; c++) {
            double sum = l->bias != NULL ? tensor_get_number(l->bias, c) : 0;
            for (int64_t i = 0; i < k; i++)
                sum += in->x[r * k + i] *
                       tensor_get_number(l->weight, l->is_transposed ? c * k + i : i * n + c);
            out.x[r * n + c] = sum;
        }
    return out;
}

static void apply_norm(const encoder_norm *norm, rows *x)
{
    for (int64_t r = 0; norm->scale != NULL && r < x->count; r++) {
        double *row = x->x + r * x->columns, mean = 0, variance = 0;
        for (int64_t i = 0; i < x->columns; i++)
            mean += row[i] / (double)x->columns;
        for (int64_t i = 0; i < x->columns; i++)
            variance += (row[i] - mean) * (row[i] - mean) / (double)x->columns;
        for (int64_t i = 0; i < x->columns; i++) {
            row[i] = (row[i] - mean) / sqrt(variance + (double)norm->epsilon) *
                     tensor_get_number(norm->scale, i);
            row[i] += norm->bias != NULL ? tensor_get_number(norm->bias, i) : 0;
        }
    }
}

static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static double apply_activation(encoder_activation a, double x)
{
    switch (a) {
    case ENCODER_GELU:
        return gelu(x);
    case ENCODER_GELU_TANH:
        return x / 2 * (1 + tanh(0.79788456080286541 * (x + 0.044715 * x * x * x)));
    case ENCODER_RELU:
        return fmax(x, 0);
    case ENCODER_SILU:
        return x / (1 + exp(-x));
    default:
        abort();
    }
}

static double apply_head_activation(encoder_head_activation a, double x)
{
    switch (a) {
    case ENCODER_HEAD_NONE:
        return x;
    case ENCODER_HEAD_TANH:
        return tanh(x);
    case ENCODER_HEAD_RELU:
        return fmax(x, 0);
    case ENCODER_HEAD_GELU:
        return gelu(x);
    default:
        abort();
    }
}

static void add_table_row(const tensor *table, int64_t row, double *x, int64_t hidden)
{
    for (int64_t c = 0; c < hidden; c++)
        x[c] += tensor_get_number(table, row * hidden + c);
}

static rows embed(const encoder *e, const tensor *inputs, int64_t batch, int64_t length)
{
    int64_t width = e->word_table->dims[1];
    rows x = make_rows(batch * length, width);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0, tokens = 0; i < length; i++) {
            int64_t at = b * length + i;
            int64_t id = tensor_get_integer(&inputs[e->ids_input], at);
            int64_t position = e->position_offset + i;
            if (e->positions == ENCODER_POSITIONS_FROM_IDS) {
                tokens += id != e->pad_id;
                position = e->pad_id + (id != e->pad_id ? tokens : 0);
            }
            add_table_row(e->word_table, id, x.x + at * width, width);
            if (e->positions != ENCODER_POSITIONS_NONE)
                add_table_row(e->position_table, position, x.x + at * width, width);
            if (e->token_type_table != NULL)
                add_table_row(e->token_type_table,
                              e->token_type_input >= 0
                                  ? tensor_get_integer(&inputs[e->token_type_input], at)
                                  : 0,
                              x.x + at * width, width);
        }
    apply_norm(&e->embedding_norm, &x);
    if (e->embedding_projection.weight == NULL)
        return x;
    rows wide = apply_linear(&e->embedding_projection, &x);
    free(x.x);
    return wide;
}

static void attend(const encoder *e, const tensor *mask, int64_t length, int64_t b, int64_t h,
                   int64_t i, const rows *q, const rows *k, const rows *v, double *p, rows *out)
{
    double top = -INFINITY, sum = 0;
    bool has_key = mask == NULL;
    for (int64_t j = 0; j < length && !has_key; j++)
        has_key = tensor_get_number(mask, b * length + j) != 0;
    for (int64_t j = 0; j < length; j++) {
        p[j] = 0;
        for (int64_t c = 0; c < e->head_dim; c++)
            p[j] += q->x[(b * length + i) * e->hidden + h * e->head_dim + c] *
                    k->x[(b * length + j) * e->hidden + h * e->head_dim + c];
        p[j] *= (double)e->attention_scale;
        if (e->relative_table != NULL)
            p[j] += tensor_get_number(e->relative_table,
                                      encoder_relative_bucket(e->relative_table->dims[0],
                                                              e->relative_distance_max, j - i) *
                                              e->heads +
                                          h);
        if (!has_key)
            p[j] = 0;
        else if (mask != NULL && tensor_get_number(mask, b * length + j) == 0)
            p[j] = -INFINITY;
        top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < length; j++)
        sum += p[j] = exp(p[j] - top);
    for (int64_t j = 0; j < length; j++)
        for (int64_t c = 0; c < e->head_dim; c++)
            out->x[(b * length + i) * e->hidden + h * e->head_dim + c] +=
                p[j] / sum * v->x[(b * length + j) * e->hidden + h * e->head_dim + c];
}

static void add_rows(rows *x, const rows *y)
{
    for (int64_t i = 0; i < x->count * x->columns; i++)
        x->x[i] += y->x[i];
    free(y->x);
}

static void run_layer(const encoder *e, const encoder_layer *layer, const tensor *mask,
                      int64_t batch, int64_t length, rows *x)
{
    rows q = apply_linear(&layer->query, x), k = apply_linear(&layer->key, x);
    rows v = apply_linear(&layer->value, x), mixed = make_rows(x->count, e->hidden);
    double *p = calloc((size_t)length, sizeof p[0]);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < e->heads; h++)
            for (int64_t i = 0; i < length; i++)
                attend(e, mask, length, b, h, i, &q, &k, &v, p, &mixed);
    rows output = apply_linear(&layer->attention_output, &mixed);
    add_rows(x, &output);
    apply_norm(&layer->attention_norm, x);
    rows up = apply_linear(&layer->up, x);
    for (int64_t i = 0; i < up.count * up.columns; i++)
        up.x[i] = apply_activation(layer->activation, up.x[i]);
    rows down = apply_linear(&layer->down, &up);
    add_rows(x, &down);
    apply_norm(&layer->output_norm, x);
    free(q.x);
    free(k.x);
    free(v.x);
    free(mixed.x);
    free(up.x);
    free(p);
}

static rows pool(const encoder_output *o, const tensor *mask, int64_t batch, int64_t length,
                 const rows *x)
{
    rows out = make_rows(batch, x->columns);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < x->columns; c++) {
            double sum = 0, count = 0, top = -INFINITY;
            for (int64_t i = 0; i < length; i++) {
                if (mask != NULL && tensor_get_number(mask, b * length + i) == 0)
                    continue;
                double value = x->x[(b * length + i) * x->columns + c];
                sum += value;
                count++;
                top = fmax(top, value);
            }
            out.x[b * x->columns + c] = o->pooling == ENCODER_POOLING_MEAN ? sum / fmax(count, 1e-9)
                                        : o->pooling == ENCODER_POOLING_MAX
                                            ? top
                                            : x->x[b * length * x->columns + c];
        }
    return out;
}

static void finish(const encoder_output *o, rows *x)
{
    for (int k = 0; k < o->head_count; k++) {
        rows y = apply_linear(&o->head[k].linear, x);
        for (int64_t i = 0; i < y.count * y.columns; i++)
            y.x[i] = apply_head_activation(o->head[k].activation, y.x[i]);
        free(x->x);
        *x = y;
    }
    for (int64_t r = 0; o->is_normalised && r < x->count; r++) {
        double squares = 0;
        for (int64_t c = 0; c < x->columns; c++)
            squares += x->x[r * x->columns + c] * x->x[r * x->columns + c];
        for (int64_t c = 0; c < x->columns; c++)
            x->x[r * x->columns + c] /= fmax(sqrt(squares), (double)o->norm_epsilon);
    }
}

void reference_run(const encoder *e, const tensor *inputs, int index, arena *memory, tensor *output)
{
    const encoder_output *o = &e->outputs[index];
    const tensor *mask = e->mask_input >= 0 ? &inputs[e->mask_input] : NULL;
    int64_t batch = inputs[e->ids_input].dims[0], length = inputs[e->ids_input].dims[1];
    rows x = embed(e, inputs, batch, length);
    for (int i = 0; i < e->layer_count; i++)
        run_layer(e, &e->layers[i], mask, batch, length, &x);
    if (o->pooling != ENCODER_POOLING_NONE) {
        rows pooled = pool(o, mask, batch, length, &x);
        free(x.x);
        x = pooled;
    }
    finish(o, &x);
    bool is_hidden = o->pooling == ENCODER_POOLING_NONE;
    int64_t dims[] = {batch, is_hidden ? length : x.columns, x.columns};
    if (tensor_allocate(output, memory, DTYPE_F32, is_hidden && !o->is_column ? 3 : 2, dims))
        abort();
    for (int64_t i = 0; i < x.count * x.columns; i++)
        ((float *)output->data)[i] = (float)x.x[i];
    free(x.x);
}
