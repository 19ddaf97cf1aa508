/* Pooling against plain loops. */
#include <criterion/criterion.h>
#include <math.h>

#include "base/xorshift.h"
#include "tests/unit/devices/cpu/case.h"

typedef struct setting {
    int64_t size[2], kernel[2], strides[2], dilations[2], pads[4];
    bool counts_padding;
} setting;

static int64_t below(uint64_t *seed, int64_t n)
{
    return (int64_t)(xorshift_next(seed) % (uint64_t)n);
}

/* Half of the windows are square and dense, as models have them. */
static setting make_setting(uint64_t *seed)
{
    setting s = {.counts_padding = below(seed, 2)};
    bool is_square = below(seed, 2);
    for (int d = 0; d < 2; d++) {
        s.kernel[d] = is_square && d ? s.kernel[0] : 1 + below(seed, 5);
        s.dilations[d] = is_square ? 1 : 1 + below(seed, 2);
        s.strides[d] = is_square && d ? s.strides[0] : 1 + below(seed, 3);
        s.size[d] = s.kernel[d] * s.dilations[d] + below(seed, 40);
        s.pads[d] = below(seed, s.kernel[d]);
        s.pads[d + 2] = below(seed, s.kernel[d]);
    }
    return s;
}

static double pooled(const setting *s, const tensor *x, int64_t plane, int64_t y, int64_t x0,
                     bool is_max)
{
    double sum = is_max ? -(double)INFINITY : 0, count = 0;
    for (int64_t a = 0; a < s->kernel[0]; a++)
        for (int64_t b = 0; b < s->kernel[1]; b++) {
            int64_t i = y * s->strides[0] + a * s->dilations[0] - s->pads[0];
            int64_t j = x0 * s->strides[1] + b * s->dilations[1] - s->pads[1];
            if (i < 0 || j < 0 || i >= s->size[0] || j >= s->size[1]) {
                count += s->counts_padding;
                continue;
            }
            double v = cpu_case_get(x, (plane * s->size[0] + i) * s->size[1] + j);
            count++;
            sum = !is_max ? sum + v : isnan(sum) || isnan(v) ? (double)NAN : fmax(sum, v);
        }
    return is_max ? sum : sum / count;
}

static void check_pool(const setting *s, bool is_max, bool has_nan)
{
    cpu_case c = {
        .attributes =
            {{.name = "kernel_shape", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = s->kernel},
             {.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = s->strides},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = s->dilations},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = s->pads},
             {.name = "count_include_pad", .kind = GRAPH_ATTRIBUTE_INT, .i = s->counts_padding}},
        .attribute_count = is_max ? 4 : 5};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(2, 3, s->size[0], s->size[1]));
    if (has_nan)
        ((float *)x->data)[tensor_count(x) / 2] = NAN;
    cr_assert_eq(cpu_case_run(&c, is_max ? GRAPH_OP_MAX_POOL : GRAPH_OP_AVERAGE_POOL, 1),
                 STATUS_OK);
    const tensor *out = &c.outputs[0];
    for (int64_t i = 0; i < tensor_count(out); i++) {
        int64_t plane = i / (out->dims[2] * out->dims[3]);
        double want =
            pooled(s, x, plane, i / out->dims[3] % out->dims[2], i % out->dims[3], is_max);
        if (isnan(want))
            cr_assert(isnan(cpu_case_get(out, i)), "result %lld is no NaN", (long long)i);
        else
            cpu_case_expect_near(cpu_case_get(out, i), want, is_max ? 0 : 1e-6, i);
    }
    cpu_case_dispose(&c);
}

Test(cpu_pool, windows_of_all_kinds)
{
    uint64_t seed = 7;
    for (int turn = 0; turn < 300; turn++) {
        setting s = make_setting(&seed);
        check_pool(&s, turn % 2, turn % 5 == 0 && turn % 2);
    }
}

typedef struct volume {
    int64_t size[3], kernel[3], strides[3], dilations[3], pads[6];
    bool counts_padding;
} volume;

static volume make_volume(uint64_t *seed)
{
    volume v = {.counts_padding = below(seed, 2)};
    for (int d = 0; d < 3; d++) {
        v.kernel[d] = 1 + below(seed, 3);
        v.dilations[d] = 1 + below(seed, 2);
        v.strides[d] = 1 + below(seed, 3);
        v.size[d] = v.kernel[d] * v.dilations[d] + below(seed, 6);
        v.pads[d] = below(seed, v.kernel[d]);
        v.pads[d + 3] = below(seed, v.kernel[d]);
    }
    return v;
}

/* Result i, by the definition. */
static double pooled_volume(const volume *v, const tensor *x, const tensor *out, int64_t i,
                            bool is_max)
{
    double sum = is_max ? -(double)INFINITY : 0, count = 0;
    int64_t o[3], plane = i;
    for (int d = 2; d >= 0; d--) {
        o[d] = plane % out->dims[2 + d];
        plane /= out->dims[2 + d];
    }
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1] * v->kernel[2]; t++) {
        const int64_t tap[] = {t / v->kernel[2] / v->kernel[1], t / v->kernel[2] % v->kernel[1],
                               t % v->kernel[2]};
        int64_t from = plane;
        bool is_padding = false;
        for (int d = 0; d < 3; d++) {
            int64_t at = o[d] * v->strides[d] + tap[d] * v->dilations[d] - v->pads[d];
            is_padding |= at < 0 || at >= v->size[d];
            from = from * v->size[d] + at;
        }
        double y = is_padding ? 0 : cpu_case_get(x, from);
        count += !is_padding || v->counts_padding;
        if (!is_padding)
            sum = !is_max ? sum + y : fmax(sum, y);
    }
    return is_max ? sum : sum / count;
}

static void check_volume(const volume *v, bool is_max)
{
    cpu_case c = {
        .attributes =
            {{.name = "kernel_shape", .kind = GRAPH_ATTRIBUTE_INTS, .count = 3, .ints = v->kernel},
             {.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 3, .ints = v->strides},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 3, .ints = v->dilations},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 6, .ints = v->pads},
             {.name = "count_include_pad", .kind = GRAPH_ATTRIBUTE_INT, .i = v->counts_padding}},
        .attribute_count = is_max ? 4 : 5};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(2, 3, v->size[0], v->size[1], v->size[2]));
    cr_assert_eq(cpu_case_run(&c, is_max ? GRAPH_OP_MAX_POOL : GRAPH_OP_AVERAGE_POOL, 1),
                 STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                             pooled_volume(v, x, &c.outputs[0], i, is_max), is_max ? 0 : 1e-6, i);
    cpu_case_dispose(&c);
}

Test(cpu_pool, windows_of_volumes)
{
    uint64_t seed = 8;
    for (int turn = 0; turn < 200; turn++) {
        volume v = make_volume(&seed);
        check_volume(&v, turn % 2);
    }
}
