#include "damage_onnx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

static void set_text(char **text, const char *to)
{
    char *copy = strdup(to); /* it may be the same string */
    free(*text);
    *text = copy;
}

static void change_attribute(Onnx__Attribute *a, chance *c)
{
    static const float floats[] = {0, -1, 1e30f, -1e-30f, NAN, INFINITY, -INFINITY};
    float f = floats[chance_below(c, sizeof floats / sizeof floats[0])];
    switch (chance_below(c, 6)) {
    case 0:
        a->type = (int32_t)chance_below(c, 15);
        break;
    case 1:
        if (a->n_ints > 1)
            a->n_ints--;
        break;
    default:
        a->i = chance_number(c);
        a->f = f;
        if (a->n_ints > 0)
            a->ints[chance_below(c, (uint32_t)a->n_ints)] = chance_number(c);
        if (a->n_floats > 0)
            a->floats[chance_below(c, (uint32_t)a->n_floats)] = f;
        break;
    }
}

/* Lists of 64-bit integers are shapes, axes, starts, ends. */
static void change_tensor(Onnx__Tensor *t, chance *c)
{
    int64_t number = chance_number(c);
    switch (chance_below(c, 5)) {
    case 0:
        if (t->n_dims > 0)
            t->dims[chance_below(c, (uint32_t)t->n_dims)] = number;
        break;
    case 1:
        t->data_type = (int32_t)chance_below(c, 24);
        break;
    case 2:
        if (t->n_dims > 1) {
            int64_t first = t->dims[0];
            t->dims[0] = t->dims[1];
            t->dims[1] = first;
        }
        break;
    default:
        if (t->has_raw_data && t->raw_data.len >= 8)
            memcpy(t->raw_data.data + 8 * chance_below(c, (uint32_t)(t->raw_data.len / 8)), &number,
                   8);
        else if (t->n_int64_data > 0)
            t->int64_data[chance_below(c, (uint32_t)t->n_int64_data)] = number;
        break;
    }
}

/* A small one, if a few tries find it: those decide shapes. */
static Onnx__Tensor *choose_tensor(Onnx__Graph *g, chance *c)
{
    Onnx__Tensor *t = NULL;
    for (int i = 0; i < 20 && g->n_initializer > 0; i++) {
        t = g->initializer[chance_below(c, (uint32_t)g->n_initializer)];
        if (t->data_type == 7)
            break;
    }
    return t;
}

static void change_input(Onnx__Graph *g, chance *c)
{
    if (g->n_input == 0)
        return;
    Onnx__ValueInfo *info = g->input[chance_below(c, (uint32_t)g->n_input)];
    Onnx__Type__Tensor *type = info->type != NULL ? info->type->tensor_type : NULL;
    if (type == NULL || type->shape == NULL || type->shape->n_dim == 0)
        return;
    Onnx__Shape__Dimension *dim = type->shape->dim[chance_below(c, (uint32_t)type->shape->n_dim)];
    switch (chance_below(c, 3)) {
    case 0:
        type->elem_type = (int32_t)chance_below(c, 17);
        break;
    case 1:
        type->shape->n_dim--;
        protobuf_c_message_free_unpacked(&type->shape->dim[type->shape->n_dim]->base, NULL);
        break;
    default:
        dim->has_dim_value = 1;
        dim->dim_value = chance_number(c);
        break;
    }
}

static void change_node(Onnx__Graph *g, chance *c)
{
    Onnx__Node *n = g->node[chance_below(c, (uint32_t)g->n_node)];
    Onnx__Node *other = g->node[chance_below(c, (uint32_t)g->n_node)];
    switch (chance_below(c, 7)) {
    case 0: /* another operator of the model */
        set_text(&n->op_type, other->op_type);
        break;
    case 1: /* any operator */
        set_text(&n->op_type, graph_op_name((graph_op)chance_below(c, GRAPH_OP_COUNT)));
        break;
    case 2: /* reads what another one reads or writes */
        if (n->n_input > 0 && other->n_input > 0)
            set_text(&n->input[chance_below(c, (uint32_t)n->n_input)],
                     chance_below(c, 2) ? other->input[0] : other->output[0]);
        break;
    case 3:
        if (n->n_input > 0)
            set_text(&n->input[chance_below(c, (uint32_t)n->n_input)], "");
        break;
    case 4:
        if (n->n_attribute > 0)
            onnx__attribute__free_unpacked(n->attribute[--n->n_attribute], NULL);
        break;
    case 5:
        if (n->n_input > 1) {
            char *first = n->input[0];
            n->input[0] = n->input[n->n_input - 1];
            n->input[n->n_input - 1] = first;
        }
        break;
    default:
        if (n->n_output > 0)
            set_text(&n->output[0], chance_below(c, 2) ? other->output[0] : "fresh");
        break;
    }
}

void damage_onnx(Onnx__Model *model, chance *c)
{
    Onnx__Graph *g = model->graph;
    Onnx__Node *n = g->node[chance_below(c, (uint32_t)g->n_node)];
    Onnx__Tensor *t = choose_tensor(g, c);
    switch (chance_below(c, 9)) {
    case 0:
        change_input(g, c);
        break;
    case 8: /* another output of the graph: unused nodes are removed */
        if (n->n_output > 0)
            set_text(&g->output[0]->name, n->output[n->n_output - 1]);
        break;
    case 1:
        model->opset_import[0]->version = 1 + (int64_t)chance_below(c, 30);
        break;
    case 2:
    case 3:
        change_node(g, c);
        break;
    case 4:
    case 5:
        if (t != NULL)
            change_tensor(t, c);
        break;
    default:
        if (n->n_attribute > 0) {
            Onnx__Attribute *a = n->attribute[chance_below(c, (uint32_t)n->n_attribute)];
            if (a->t != NULL && chance_below(c, 2))
                change_tensor(a->t, c);
            else
                change_attribute(a, c);
        }
        break;
    }
}
