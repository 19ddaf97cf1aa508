#ifndef KERNELS_SCALAR_SCALAR_H
#define KERNELS_SCALAR_SCALAR_H

#include "kernels/kernels.h"

/* What the scalar files share: the definitions that tests compare every level with. */

float scalar_exp(float x);
float scalar_sigmoid(float x);
float scalar_gelu(float x);
float scalar_gelu_tanh(float x);
float scalar_activate(kernels_activation activation, float x);

#endif
