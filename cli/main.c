/* The `penstock` program: runs the command that argv[1] names. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "server/options/version.h"

static const struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"serve", "serve models over HTTP", command_serve},
    {"inspect", "print a model's inputs, outputs, buckets and operators", command_inspect},
    {"compile", "compile programs for a TPU on a machine without one", command_compile},
    {"bench", "measure the CPU engine in this process, without HTTP", command_bench},
    {"plan", "choose sequence buckets for observed lengths", command_plan},
    {"key", "make a key for a client, and its line for the file of keys", command_key},
    {"health", "ask whether the server on this machine is live", command_health},
    {"profile", "record what an accelerator of a running server does", command_profile},
    {"tokenize", "print the token ids of texts", command_tokenize},
    {"device-host", "run a PJRT plugin for a server (internal)", command_device_host},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("penstock: an inference server that batches single requests\n\n"
          "usage: penstock COMMAND [OPTION...]\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].what);
    fputs("\nSee penstock COMMAND --help. penstock --version prints the version.\n", out);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("penstock " PENSTOCK_VERSION);
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "penstock: there is no command \"%s\"\n\n", argv[1]);
    print_help(stderr);
    return 2;
}
