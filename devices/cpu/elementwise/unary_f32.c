#define ELEMENT float
#define BLOCK cpu_unary_f32_block
#define BLOCKS cpu_unary_f32_blocks
#include "devices/cpu/elementwise/unary_float.h"
