#include <string.h>

#include "devices/device.h"

const char *const device_precision_names[DEVICE_PRECISION_COUNT + 1] = {
    [DEVICE_FP32] = "fp32", [DEVICE_BF16] = "bf16", [DEVICE_INT8] = "int8"};

bool device_precision_from_name(const char *name, device_precision *out)
{
    for (int p = 0; p < DEVICE_PRECISION_COUNT; p++)
        if (strcmp(name, device_precision_names[p]) == 0) {
            *out = (device_precision)p;
            return true;
        }
    return false;
}
