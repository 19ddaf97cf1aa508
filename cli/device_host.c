/* penstock device-host PLUGIN: the child process that holds a PJRT plugin (DESIGN, decision 9). */
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
              "Started by penstock serve for each PJRT plugin; of no use by hand.\n",
              is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    return pjrt_host_main(argv[1]);
}
