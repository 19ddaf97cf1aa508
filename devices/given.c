#include "devices/given.h"

const device_given_program *device_given_find(const struct device_given *given,
                                              device_bucket bucket)
{
    for (int i = 0; i < given->program_count; i++)
        if (given->programs[i].bucket.batch == bucket.batch &&
            given->programs[i].bucket.sequence == bucket.sequence)
            return &given->programs[i];
    return NULL;
}
