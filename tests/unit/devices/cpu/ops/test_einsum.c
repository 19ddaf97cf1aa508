/* Einsum of two F32 inputs, a matrix product in any order of its labels, against a plain loop. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/devices/cpu/case.h"

/* Of labels b, m, n, k of these sizes. */
static const int64_t sizes['z'] = {['b'] = 3, ['m'] = 5, ['n'] = 40, ['k'] = 7, ['c'] = 2};

static int64_t offset_of(const char *labels, const int64_t at['z'])
{
    int64_t offset = 0;
    for (const char *l = labels; *l; l++)
        offset = offset * sizes[(int)*l] + at[(int)*l];
    return offset;
}

static void add_input(cpu_case *c, const char *labels)
{
    int64_t dims[TENSOR_RANK_MAX + 1], rank = 0;
    for (const char *l = labels; *l; l++)
        dims[rank++] = sizes[(int)*l];
    dims[rank] = -1;
    cpu_case_random(c, DTYPE_F32, dims);
}

static void check(const char *a, const char *b, const char *out)
{
    char equation[64];
    snprintf(equation, sizeof equation, "%s,%s->%s", a, b, out);
    cpu_case c = {.attributes = {graph_make_string("equation", equation)}, .attribute_count = 1};
    add_input(&c, a);
    add_input(&c, b);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_EINSUM, 1), STATUS_OK, "%s", equation);
    double sums[3 * 5 * 40 * 2] = {0};
    int64_t at['z'] = {0};
    for (at['b'] = 0; at['b'] < 3; at['b']++)
        for (at['c'] = 0; at['c'] < 2; at['c']++)
            for (at['m'] = 0; at['m'] < 5; at['m']++)
                for (at['n'] = 0; at['n'] < 40; at['n']++)
                    for (at['k'] = 0; at['k'] < 7; at['k']++)
                        sums[offset_of(out, at)] += cpu_case_get(&c.inputs[0], offset_of(a, at)) *
                                                    cpu_case_get(&c.inputs[1], offset_of(b, at));
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), sums[i], 1e-4, i);
    cpu_case_dispose(&c);
}

Test(cpu_einsum, products_in_any_order)
{
    static const char *const cases[][3] = {
        {"bcmk", "bcnk", "bcmn"}, {"cbmk", "bkcn", "bmcn"}, {"mbck", "cknb", "nmbc"},
        {"bckm", "nkcb", "cbnm"}, {"bmck", "bnck", "bcnm"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(cases[i][0], cases[i][1], cases[i][2]);
}
