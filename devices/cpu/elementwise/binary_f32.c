#define ELEMENT float
#define MEMBER f32
#define BLOCKS cpu_binary_blocks_f32
#include "devices/cpu/elementwise/binary_float.h"
