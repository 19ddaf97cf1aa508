#define ELEMENT double
#define BLOCK cpu_unary_f64_block
#define BLOCKS cpu_unary_f64_blocks
#include "devices/cpu/elementwise/unary_float.h"
