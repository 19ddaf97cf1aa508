#define ELEMENT double
#define MEMBER f64
#define BLOCKS cpu_binary_blocks_f64
#include "devices/cpu/elementwise/binary_float.h"
