#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/inspect/device.h"
#include "devices/pjrt/device.h"

int inspect_device(const char *name)
{
    log_configure(LOG_ERROR, LOG_FORMAT_AUTO);
    if (strncmp(name, "pjrt:", 5) != 0) {
        fprintf(stderr, "penstock inspect: --device: \"%s\" is not pjrt:PLUGIN.so\n", name);
        return 2;
    }
    device *devices[DEVICE_PJRT_DEVICES_MAX];
    int count = 0;
    device_pjrt_options options = {.plugin = name + 5};
    if (device_pjrt_create(&options, 0, devices, &count)) {
        fprintf(stderr, "penstock inspect: %s\n", status_message());
        return 1;
    }
    printf("plugin    %s\nversion   %s\n", name + 5, device_pjrt_version(devices[0]));
    for (int i = 0; i < count; i++) {
        device_status at = {0};
        devices[i]->interface->describe(devices[i], &at);
        printf("%-9s %s, %d execution slots, %s\n", devices[i]->name, devices[i]->kind,
               devices[i]->slots, at.state == DEVICE_HEALTHY ? "healthy" : at.detail);
    }
    for (int i = 0; i < count; i++)
        devices[i]->interface->destroy(devices[i]);
    return 0;
}
