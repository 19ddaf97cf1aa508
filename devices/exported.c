#include "devices/exported.h"

const device_exported_program *device_exported_find(const struct device_exported *exported,
                                                    device_bucket bucket)
{
    for (int i = 0; i < exported->program_count; i++)
        if (exported->programs[i].bucket.batch == bucket.batch &&
            exported->programs[i].bucket.sequence == bucket.sequence)
            return &exported->programs[i];
    return NULL;
}
