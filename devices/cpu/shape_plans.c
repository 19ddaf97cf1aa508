#include "devices/cpu/shape_plans.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "devices/cpu/evaluate.h"
#include "graph/specialise/specialise.h"

struct cpu_shape_plans {
    int threads;          /* that may work on a run */
    pthread_mutex_t lock; /* of all below; held while CPU_SHAPE_PLANS_MAX plans are searched */
    const graph *source;
    const kernels *table;
    cpu_weights *weights;
    graph_budget budget;
    cpu_shape_plan *first;
    int count;
    size_t bytes;
    uint64_t clock;
};

cpu_shape_plans *cpu_shape_plans_create(const graph *source, const kernels *table,
                                        cpu_weights *weights, const graph_budget *budget,
                                        int threads)
{
    cpu_shape_plans *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->source = source;
    p->table = table;
    p->threads = threads;
    p->weights = weights;
    p->budget = budget ? *budget : graph_budget_default;
    p->budget.cancel = NULL; /* it belongs to the load, which ends before */
    return p;
}

static void destroy_plan(cpu_shape_plan *e)
{
    cpu_plan_destroy(e->plan);
    graph_destroy(e->specialised);
    free(e);
}

void cpu_shape_plans_destroy(cpu_shape_plans *p)
{
    if (!p)
        return;
    while (p->first) {
        cpu_shape_plan *e = p->first;
        assert(e->users == 0);
        p->first = e->next;
        destroy_plan(e);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static bool is_for(const cpu_shape_plan *e, const tensor *inputs)
{
    const graph *g = e->specialised;
    for (int i = 0; i < g->input_count; i++) {
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        if (shape->rank != inputs[i].rank)
            return false;
        for (int d = 0; d < shape->rank; d++)
            if (shape->dims[d].constant != inputs[i].dims[d])
                return false;
    }
    return true;
}

static cpu_shape_plan *find(cpu_shape_plans *p, const tensor *inputs)
{
    for (cpu_shape_plan *e = p->first; e; e = e->next) {
        if (is_for(e, inputs)) {
            e->users++;
            e->used = ++p->clock;
            return e;
        }
    }
    return NULL;
}

/* Unlinks the unused plan that was used longest ago, while there is too much; NULL: nothing is left
 * to drop. */
static cpu_shape_plan *evict(cpu_shape_plans *p)
{
    cpu_shape_plan **oldest = NULL;
    if (p->count <= CPU_SHAPE_PLANS_MAX && p->bytes <= CPU_SHAPE_PLANS_BYTES_MAX)
        return NULL;
    for (cpu_shape_plan **e = &p->first; *e; e = &(*e)->next)
        if ((*e)->users == 0 && (!oldest || (*e)->used < (*oldest)->used))
            oldest = e;
    if (!oldest)
        return NULL;
    cpu_shape_plan *gone = *oldest;
    *oldest = gone->next;
    p->count--;
    p->bytes -= gone->bytes;
    return gone;
}

static status make(const cpu_shape_plans *p, const tensor *inputs, cpu_shape_plan **out)
{
    int count = p->source->input_count;
    cpu_shape_plan *e = calloc(1, sizeof *e);
    tensor *shapes = calloc((size_t)count + 1, sizeof *shapes);
    status s = STATUS_OK;
    if (!e || !shapes) {
        free(e);
        free(shapes);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    }
    for (int i = 0; i < count; i++) {
        shapes[i] = inputs[i];
        shapes[i].data = NULL; /* else it would be taken for a constant */
    }
    s = graph_specialise(p->source, &(graph_binding){shapes, &p->budget}, cpu_evaluate_node,
                         &e->specialised);
    free(shapes);
    if (!s)
        s = graph_cost_check(e->specialised, &p->budget);
    if (!s)
        s = cpu_plan_create_for(e->specialised, p->table, p->weights, p->threads, &e->plan);
    if (s) {
        destroy_plan(e);
        return s;
    }
    e->bytes = arena_held_bytes(&e->specialised->memory);
    *out = e;
    return STATUS_OK;
}

status cpu_shape_plans_acquire(cpu_shape_plans *p, const tensor *inputs, cpu_shape_plan **out,
                               bool *is_new)
{
    *is_new = false;
    pthread_mutex_lock(&p->lock);
    cpu_shape_plan *found = find(p, inputs), *made = NULL;
    pthread_mutex_unlock(&p->lock);
    if (found) {
        *out = found;
        return STATUS_OK;
    }
    status s = make(p, inputs, &made);
    if (s)
        return s;
    pthread_mutex_lock(&p->lock);
    found = find(p, inputs); /* perhaps another thread was quicker */
    if (!found) {
        made->users = 1;
        made->used = ++p->clock;
        made->next = p->first;
        p->first = found = made;
        p->count++;
        p->bytes += made->bytes;
        made = NULL;
        *is_new = true;
    }
    cpu_shape_plan *gone = NULL;
    for (cpu_shape_plan *e; (e = evict(p));) {
        e->next = gone;
        gone = e;
    }
    pthread_mutex_unlock(&p->lock);
    if (made)
        destroy_plan(made);
    for (cpu_shape_plan *e = gone; e; e = gone) {
        gone = e->next;
        destroy_plan(e);
    }
    *out = found;
    return STATUS_OK;
}

void cpu_shape_plans_release(cpu_shape_plans *p, cpu_shape_plan *plan)
{
    pthread_mutex_lock(&p->lock);
    assert(plan->users > 0);
    plan->users--;
    pthread_mutex_unlock(&p->lock);
}

size_t cpu_shape_plan_output_bytes(const cpu_shape_plan *plan)
{
    const graph *g = plan->specialised;
    size_t bytes = 0;
    for (int i = 0; i < g->output_count; i++) {
        tensor t = graph_value_tensor(&g->values[g->outputs[i]]);
        bytes += tensor_bytes(&t);
    }
    return bytes;
}

status cpu_shape_plan_allocate(const cpu_shape_plan *plan, tensor *outputs, arena *results)
{
    const graph *g = plan->specialised;
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        tensor made = graph_value_tensor(v);
        status s = tensor_set_shape(&made, made.dtype, made.rank, made.dims);
        if (s)
            return s;
        size_t bytes = tensor_bytes(&made);
        made.data = arena_allocate_aligned(results, bytes ? bytes : 1, 64);
        if (!made.data)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for output \"%s\"", v->name);
        outputs[i] = made;
    }
    return STATUS_OK;
}
