#include "tests/kernels/emulate.h"

bool emulate_instruction(void *context)
{
    (void)context;
    return false;
}

bool emulate_can(uint32_t missing_features)
{
    (void)missing_features;
    return false;
}

uint64_t emulate_take_count(void)
{
    return 0;
}
