#include "devices/cpu/evaluate.h"

#include <assert.h>
#include <stdlib.h>

#include "devices/cpu/ops/op.h"

status cpu_evaluate_node(const graph_node *node, const tensor *const *inputs, tensor *outputs,
                         const cancel_token *cancel)
{
    const kernels *table;
    status s = kernels_select("scalar", &table);
    if (s)
        return s;
    arena memory;
    arena_init(&memory, 0);
    void *scratch = NULL;
    cpu_prepare prepare = {
        .node = node, .inputs = inputs, .outputs = outputs, .kernels = table, .memory = &memory};
    s = cpu_op_prepare(&prepare);
    if (s)
        goto fail;
    size_t whole = cpu_scratch_round(prepare.scratch_bytes);
    scratch =
        aligned_alloc(CPU_SCRATCH_ALIGNMENT, cpu_scratch_round(whole + prepare.part_bytes + 1));
    if (!scratch) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory to fold node \"%s\"", node->name);
        goto fail;
    }
    cpu_call call = {.node = node,
                     .inputs = inputs,
                     .outputs = outputs,
                     .kernels = table,
                     .state = prepare.state,
                     .scratch = scratch,
                     .parts = (char *)scratch + whole,
                     .cancel = cancel};
    s = cpu_op_run(&call);
fail:
    free(scratch);
    arena_dispose(&memory);
    return s;
}
