#include "server/protocol/language/vectors.h"

#include <math.h>

#include "models/text/model_text.h"

row_values language_row(const infer_request *r, int index, int64_t row)
{
    const infer_row *where = &r->rows[row];
    const tensor *t = &r->jobs[where->job]->outputs[r->outputs[index].index];
    row_values v = {.t = t, .length = 1, .width = t->rank > 0 ? t->dims[t->rank - 1] : 1};
    v.count = t->dims[0] > 0 ? tensor_count(t) / t->dims[0] : 0;
    v.from = where->row * v.count;
    if (t->rank == 3)
        v.length = t->dims[1];
    return v;
}

float language_value(const row_values *v, int64_t i)
{
    return v->t->dtype == DTYPE_F32 ? ((const float *)v->t->data)[v->from + i]
                                    : (float)tensor_get_number(v->t, v->from + i);
}

int64_t language_vector_width(const infer_request *r)
{
    row_values v = language_row(r, 0, 0);
    int64_t wanted = r->language->dimensions;
    return wanted > 0 && wanted < v.width ? wanted : v.width;
}

/* The mean of the tokens' vectors, or the first one. */
static double pooled(const infer_request *r, const row_values *v, int64_t i)
{
    if (v->length == 1 || r->model->text->pools_first)
        return language_value(v, i);
    double sum = 0;
    for (int64_t token = 0; token < v->length; token++)
        sum += language_value(v, token * v->width + i);
    return sum / (double)v->length;
}

status language_vector(const infer_request *r, int64_t row, float *out)
{
    row_values v = language_row(r, 0, row);
    int64_t width = language_vector_width(r);
    bool normalizes = r->language->normalizes || r->language->dimensions > 0;
    double square = 0;
    for (int64_t i = 0; i < width; i++) {
        out[i] = (float)pooled(r, &v, i);
        square += (double)out[i] * out[i];
    }
    if (!isfinite(square))
        return status_fail(STATUS_INTERNAL, "the result holds a value that is not a finite number");
    if (!normalizes || square == 0)
        return STATUS_OK;
    double scale = 1 / sqrt(square);
    for (int64_t i = 0; i < width; i++)
        out[i] = (float)(out[i] * scale);
    return STATUS_OK;
}
