#ifndef TESTS_HOSTILE_DAMAGE_ONNX_H
#define TESTS_HOSTILE_DAMAGE_ONNX_H

#include "chance.h"
#include "graph/onnx/onnx.pb-c.h"

/* Changes one thing in a parsed model: a dim, an attribute, a weight that is a shape, a type, a
 * name, an operator, an order. The model stays freeable by onnx__model__free_unpacked(). */
void damage_onnx(Onnx__Model *model, chance *c);

#endif
