#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/attention.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->attention_f32) attention_fn;

static void *workspace_of(const attention_f32 *a)
{
    size_t longest = 0;
    for (size_t s = 0; s < a->sequences; s++) {
        size_t length = (size_t)(a->offsets[s + 1] - a->offsets[s]);
        longest = length > longest ? length : longest;
    }
    return check_buffer(attention_f32_workspace_bytes(longest, a->head_size), 64);
}

/* One query in double precision. */
static void compare_query(const attention_f32 *a, size_t first, size_t length, size_t head,
                          size_t i)
{
    double weights[600], top = -INFINITY, sum = 0;
    size_t d = a->head_size, kept = 0;
    for (size_t j = 0; j < length; j++) {
        double score = 0;
        for (size_t x = 0; x < d; x++)
            score += (double)a->q[(first + i) * a->qkv_stride + head * d + x] *
                     a->k[(first + j) * a->qkv_stride + head * d + x];
        weights[j] = score * a->scale;
        if (a->bias)
            weights[j] += a->bias[(ptrdiff_t)head * a->bias_head_stride +
                                  (ptrdiff_t)i * a->bias_row_stride + (ptrdiff_t)j];
        bool is_kept = !a->mask || a->mask[first + j];
        top = is_kept ? fmax(top, weights[j]) : top;
        kept += is_kept;
    }
    for (size_t j = 0; j < length; j++) {
        bool is_kept = !a->mask || a->mask[first + j];
        weights[j] = kept == 0 ? 1 : is_kept ? exp(weights[j] - top) : 0;
        sum += weights[j];
    }
    for (size_t x = 0; x < d; x++) {
        double want = 0;
        for (size_t j = 0; j < length; j++)
            want += weights[j] / sum * a->v[(first + j) * a->qkv_stride + head * d + x];
        float got = a->out[(first + i) * a->out_stride + head * d + x];
        if (!check_close("value", x, got, want, 1e-5)) {
            printf("  length %zu, head %zu of size %zu, query %zu\n", length, head, d, i);
            return;
        }
    }
}

/* Three sequences of the given lengths; `turn` chooses mask and bias. */
static attention_f32 make_attention(const int32_t lengths[3], size_t heads, size_t head_size,
                                    unsigned turn)
{
    attention_f32 a = {.sequences = 3, .heads = heads, .head_size = head_size};
    int32_t *offsets = check_buffer(4 * sizeof *offsets, 4);
    size_t longest = 1;
    offsets[0] = 0;
    for (int s = 0; s < 3; s++) {
        offsets[s + 1] = offsets[s] + lengths[s];
        longest = (size_t)lengths[s] > longest ? (size_t)lengths[s] : longest;
    }
    a.offsets = offsets;
    size_t tokens = (size_t)offsets[3], hidden = heads * head_size;
    a.qkv_stride = 3 * hidden;
    float *qkv = check_floats(tokens * a.qkv_stride);
    check_fill_floats(qkv, tokens * a.qkv_stride, -1, 1);
    a.q = qkv;
    a.k = qkv + hidden;
    a.v = qkv + 2 * hidden;
    a.scale = 1 / sqrtf((float)head_size);
    if (turn % 3) {
        uint8_t *mask = check_buffer(tokens, 1);
        for (size_t t = 0; t < tokens; t++)
            mask[t] = check_random() % 4 != 0 && !(turn % 3 == 2 && t < (size_t)lengths[0]);
        a.mask = mask;
    }
    if (turn % 4 == 1) { /* one value for each query and key */
        float *bias = check_floats(heads * longest * longest);
        check_fill_floats(bias, heads * longest * longest, -2, 2);
        a.bias = bias;
        a.bias_head_stride = (ptrdiff_t)(longest * longest);
        a.bias_row_stride = (ptrdiff_t)longest;
    } else if (turn % 4 == 3) { /* by relative position */
        float *bias = check_floats(heads * (2 * longest - 1));
        check_fill_floats(bias, heads * (2 * longest - 1), -2, 2);
        a.bias = bias + longest - 1;
        a.bias_head_stride = (ptrdiff_t)(2 * longest - 1);
        a.bias_row_stride = -1;
    }
    a.out_stride = hidden;
    a.out = check_floats(tokens * hidden);
    a.workspace = workspace_of(&a);
    return a;
}

/* A sequence alone must give the bits it gave among the others. */
static void check_alone(attention_fn run, const attention_f32 *a)
{
    size_t tokens = (size_t)a->offsets[a->sequences], hidden = a->heads * a->head_size;
    float *out = check_floats(tokens * hidden);
    for (size_t s = 0; s < a->sequences; s++) {
        attention_f32 one = *a;
        one.offsets = a->offsets + s;
        one.sequences = 1;
        one.out = out;
        run(&one);
    }
    if (memcmp(out, a->out, tokens * hidden * sizeof *out) != 0)
        check_fail("a sequence alone has other bits");
}

static void check_attention(const variant *v)
{
    attention_fn run = (attention_fn)v->function;
    static const int32_t lengths[][3] = {{1, 5, 17},  {0, 12, 33},  {31, 32, 3},
                                         {64, 2, 65}, {13, 100, 7}, {16, 290, 1}};
    static const size_t shapes[][2] = {{2, 8},  {1, 10}, {3, 16}, {2, 32},
                                       {1, 64}, {2, 33}, {1, 80}};
    for (unsigned turn = 0; turn < 42; turn++) {
        const size_t *shape = shapes[turn % 7];
        attention_f32 a = make_attention(lengths[turn % 6], shape[0], shape[1], turn);
        run(&a);
        for (size_t s = 0; s < 3; s++) {
            size_t first = (size_t)a.offsets[s], length = (size_t)a.offsets[s + 1] - first;
            for (size_t head = 0; head < a.heads; head++) {
                for (size_t i = 0; i < length; i += 1 + length / 20)
                    compare_query(&a, first, length, head, i);
            }
        }
        check_alone(run, &a);
        check_reset();
    }
}

typedef struct bench_job {
    attention_fn run;
    attention_f32 *arguments;
} bench_job;

static void run_job(void *context)
{
    bench_job *job = context;
    job->run(job->arguments);
}

static void bench_attention(const variant *v)
{
    static const int32_t lengths[] = {16, 32, 128, 512};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int32_t three[3] = {lengths[i], lengths[i], lengths[i]};
        attention_f32 a = make_attention(three, 12, 32, 0);
        bench_job job = {(attention_fn)v->function, &a};
        char what[40];
        snprintf(what, sizeof what, "3 x %d tokens, 12 x 32", (int)lengths[i]);
        double operations = 3.0 * lengths[i] * lengths[i] * 4 * 12 * 32;
        bench_line(what, 1e-9 * operations / bench_seconds(run_job, &job), "GFLOP/s",
                   bench_peak("f32"));
        check_reset();
    }
}

const check checks_attention[] = {{"attention_f32", check_attention, bench_attention},
                                  {NULL, NULL, NULL}};
