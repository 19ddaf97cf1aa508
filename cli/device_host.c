/* penstock device-host: the child process that runs a PJRT plugin, so that a plugin which crashes
 * or hangs does not take the server down. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "devices/pjrt/host/host.h"

int command_device_host(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs("usage: penstock device-host PLUGIN\n\n"
              "Internal: penstock serve starts one for each PJRT plugin.\n",
              is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    return pjrt_host_main(argv[1]);
}
