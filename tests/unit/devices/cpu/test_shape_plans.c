/* Plans at the shapes that requests have. */
#include <criterion/criterion.h>

#include "devices/cpu/shape_plans.h"

static graph *make_relu(void)
{
    graph *g = graph_create("g");
    graph_dim any = {.is_unknown = true};
    graph_add_input(g, "x", DTYPE_F32, 1, &any);
    graph_add_output(g, graph_add(g, GRAPH_OP_RELU, 1, g->inputs, 0, NULL), "y");
    return g;
}

static const kernels *table(void)
{
    const kernels *found;
    cr_assert_eq(kernels_select(NULL, &found), STATUS_OK);
    return found;
}

static cpu_shape_plan *acquire(cpu_shape_plans *p, int64_t size, bool is_new)
{
    cpu_shape_plan *found;
    bool was_new;
    float data[1] = {0};
    tensor x = {.dtype = DTYPE_F32, .rank = 1, .dims = {size}, .data = data};
    cr_assert_eq(cpu_shape_plans_acquire(p, &x, &found, &was_new), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(was_new, is_new, "%lld", (long long)size);
    return found;
}

Test(cpu_shape_plans, a_shape_is_planned_once)
{
    graph *g = make_relu();
    cpu_shape_plans *p = cpu_shape_plans_create(g, table(), NULL, NULL, 1);
    cpu_shape_plan *first = acquire(p, 3, true), *again = acquire(p, 3, false),
                   *other = acquire(p, 4, true);
    cr_assert_eq(first, again);
    cr_assert_neq(first, other);
    tensor y;
    arena memory = {0};
    cr_assert_eq(cpu_shape_plan_allocate(other, &y, &memory), STATUS_OK);
    cr_assert_eq(y.rank, 1);
    cr_assert_eq(y.dims[0], 4);
    arena_dispose(&memory);
    cpu_shape_plans_release(p, first);
    cpu_shape_plans_release(p, again);
    cpu_shape_plans_release(p, other);
    cpu_shape_plans_destroy(p);
    graph_destroy(g);
}

Test(cpu_shape_plans, the_shapes_used_last_are_kept)
{
    graph *g = make_relu();
    cpu_shape_plans *p = cpu_shape_plans_create(g, table(), NULL, NULL, 1);
    cpu_shape_plan *held = acquire(p, 1, true);
    for (int64_t size = 2; size <= CPU_SHAPE_PLANS_MAX; size++)
        cpu_shape_plans_release(p, acquire(p, size, true));
    cpu_shape_plans_release(p, acquire(p, 2, false));
    /* One more: 3 was used longest ago; 1 is in use. */
    cpu_shape_plans_release(p, acquire(p, CPU_SHAPE_PLANS_MAX + 1, true));
    cpu_shape_plans_release(p, acquire(p, 2, false));
    cpu_shape_plans_release(p, acquire(p, 1, false));
    cpu_shape_plans_release(p, acquire(p, 3, true));
    cpu_shape_plans_release(p, held);
    cpu_shape_plans_destroy(p);
    graph_destroy(g);
}

Test(cpu_shape_plans, a_shape_over_the_budget_is_refused)
{
    graph *g = make_relu();
    graph_budget budget = graph_budget_default;
    budget.activation_bytes_max = 1 << 10;
    cpu_shape_plans *p = cpu_shape_plans_create(g, table(), NULL, &budget, 1);
    cpu_shape_plan *found = NULL;
    bool is_new;
    tensor x = {.dtype = DTYPE_F32, .rank = 1, .dims = {1 << 20}};
    cr_assert_eq(cpu_shape_plans_acquire(p, &x, &found, &is_new), STATUS_TOO_LARGE);
    cr_assert_null(found);
    cpu_shape_plans_release(p, acquire(p, 8, true));
    cpu_shape_plans_destroy(p);
    graph_destroy(g);
}
