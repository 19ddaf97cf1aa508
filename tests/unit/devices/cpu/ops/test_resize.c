/* Resizing to the nearest element against plain loops. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

typedef struct resizing {
    int64_t in[3], out[3]; /* the last three of five dims */
    const char *how;
} resizing;

/* Which element the attributes of check_nearest mean. */
static int64_t nearest_of(const resizing *r, int d, int64_t o)
{
    double scale = (double)r->out[d] / (double)r->in[d];
    bool is_half = r->how[0] == 'h';
    double x = is_half ? ((double)o + 0.5) / scale - 0.5 : (double)o / scale;
    int64_t at = (int64_t)(is_half ? ceil(x - 0.5) : floor(x));
    return at < 0 ? 0 : at >= r->in[d] ? r->in[d] - 1 : at;
}

static void check_nearest(const resizing *r)
{
    cpu_case c = {
        .attributes = {graph_make_string("mode", "nearest"),
                       graph_make_string("coordinate_transformation_mode", r->how),
                       graph_make_string("nearest_mode",
                                         r->how[0] == 'h' ? "round_prefer_floor" : "floor")},
        .attribute_count = 3};
    const double sizes[] = {2, 3, (double)r->out[0], (double)r->out[1], (double)r->out[2]};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(2, 3, r->in[0], r->in[1], r->in[2]));
    cpu_case_input(&c, DTYPE_F32, DIMS(0), NULL);
    cpu_case_input(&c, DTYPE_F32, DIMS(0), NULL);
    cpu_case_input(&c, DTYPE_I64, DIMS(5), sizes);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_RESIZE, 1), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t at[3], rest = i;
        for (int d = 2; d >= 0; d--) {
            at[d] = nearest_of(r, d, rest % r->out[d]);
            rest /= r->out[d];
        }
        for (int d = 0; d < 3; d++)
            rest = rest * r->in[d] + at[d];
        cr_assert(cpu_case_get(&c.outputs[0], i) == cpu_case_get(x, rest), "%s: %lld of %lld",
                  r->how, (long long)i, (long long)tensor_count(&c.outputs[0]));
    }
    cpu_case_dispose(&c);
}

Test(cpu_resize, nearest_of_any_factors)
{
    static const int64_t in[] = {1, 3, 7, 20};
    static const int64_t factors[][2] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {3, 2}, {1, 2}};
    for (int code = 0; code < 4 * 343; code++) {
        resizing r = {.how = code & 1 ? "half_pixel" : "asymmetric"};
        for (int d = 0, left = code % 343; d < 3; d++, left /= 7) {
            r.in[d] = in[(code / 343 + d) % 4];
            r.out[d] = r.in[d] * factors[left % 7][0] / factors[left % 7][1];
            r.out[d] = r.out[d] ? r.out[d] : 1;
        }
        check_nearest(&r);
    }
}

/* A crop beyond the image: what lies outside has a value of its own, in rows and in columns. */
Test(cpu_resize, outside_of_a_crop)
{
    cpu_case c = {
        .attributes = {graph_make_string("mode", "nearest"),
                       graph_make_string("coordinate_transformation_mode", "tf_crop_and_resize"),
                       graph_make_float("extrapolation_value", 9)},
        .attribute_count = 3};
    const double roi[] = {0, 0, -0.5, -0.5, 1, 1, 1.5, 1.5}, sizes[] = {1, 1, 9, 9};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(1, 1, 5, 5));
    cpu_case_input(&c, DTYPE_F32, DIMS(8), roi);
    cpu_case_input(&c, DTYPE_F32, DIMS(0), NULL);
    cpu_case_input(&c, DTYPE_I64, DIMS(4), sizes);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_RESIZE, 1), STATUS_OK);
    for (int64_t i = 0; i < 81; i++) {
        int64_t y = i / 9 - 2, x0 = i % 9 - 2;
        bool is_outside = y < 0 || y > 4 || x0 < 0 || x0 > 4;
        double want = is_outside ? 9 : cpu_case_get(x, y * 5 + x0);
        cr_assert(cpu_case_get(&c.outputs[0], i) == want, "%lld", (long long)i);
    }
    cpu_case_dispose(&c);
}
