/* A device host without the rest of the server: what `penstock device-host PLUGIN` does. */
#include <stdio.h>
#include <string.h>

#include "devices/pjrt/host/host.h"

int main(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], "device-host") != 0) {
        fprintf(stderr, "usage: %s device-host PLUGIN\n", argv[0]);
        return 2;
    }
    return pjrt_host_main(argv[2]);
}
