#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "devices/device.h"

/* The flags of the commands other than serve. A command describes its flags in one table; parsing,
 * --help and the error messages follow from it. Main thread only. */

#define FLAG_LIST_MAX 32

typedef struct flag_list {
    int64_t values[FLAG_LIST_MAX];
    int count;
} flag_list;

typedef enum flag_kind {
    FLAG_SWITCH,
    FLAG_TEXT,
    FLAG_INTEGER,
    FLAG_NUMBER,
    FLAG_PRECISION,
    FLAG_LIST
} flag_kind;

/* Made by the functions below, which check the type of `out`. */
typedef struct flag {
    const char *name;     /* "--threads" */
    const char *argument; /* "N" in the help; NULL for switches */
    const char *help;
    flag_kind kind;
    void *out;
    double minimum, maximum;
    bool is_required;
} flag;

/* Takes no value; sets `*out` to true. */
static inline flag flag_switch(const char *name, const char *help, bool *out)
{
    return (flag){.name = name, .help = help, .kind = FLAG_SWITCH, .out = out};
}

/* The value is borrowed from argv. */
static inline flag flag_text(const char *name, const char *argument, const char *help,
                             const char **out)
{
    return (flag){
        .name = name, .argument = argument, .help = help, .kind = FLAG_TEXT, .out = (void *)out};
}

static inline flag flag_integer(const char *name, const char *argument, const char *help, int *out,
                                int minimum, int maximum)
{
    return (flag){.name = name,
                  .argument = argument,
                  .help = help,
                  .kind = FLAG_INTEGER,
                  .out = out,
                  .minimum = minimum,
                  .maximum = maximum};
}

static inline flag flag_number(const char *name, const char *argument, const char *help,
                               double *out, double minimum, double maximum)
{
    return (flag){.name = name,
                  .argument = argument,
                  .help = help,
                  .kind = FLAG_NUMBER,
                  .out = out,
                  .minimum = minimum,
                  .maximum = maximum};
}

/* --precision: fp32, bf16 or int8. */
static inline flag flag_precision(const char *help, device_precision *out)
{
    return (flag){
        .name = "--precision", .argument = "P", .help = help, .kind = FLAG_PRECISION, .out = out};
}

/* Integers of at least 1 with commas between them. */
static inline flag flag_integers(const char *name, const char *help, flag_list *out, int maximum)
{
    return (flag){.name = name,
                  .argument = "N,N,...",
                  .help = help,
                  .kind = FLAG_LIST,
                  .out = out,
                  .minimum = 1,
                  .maximum = maximum};
}

/* The command fails without it. */
static inline flag flag_required(flag f)
{
    f.is_required = true;
    return f;
}

typedef struct flags_usage {
    const char *command;  /* "bench" */
    const char *synopsis; /* "--model DIR [OPTION...]"; more lines begin with the command's name */
    const char *description; /* a paragraph, which the help wraps */
    const flag *flags;
    int count;
    const char **operand; /* the one argument that is not a flag; NULL: there is none */
    const char *epilogue; /* after the flags, or NULL */
} flags_usage;

#define FLAGS_OK (-1)

/* Reads `--name value` and `--name=value` into the flags' variables; those of flags that are not
 * given keep their values. FLAGS_OK, or the exit status with which the command ends: 0 after
 * --help, 2 after an error message. */
int flags_parse(const flags_usage *u, int argc, char **argv) MUST_CHECK;

/* Prints status_message() as an error of the command line and returns 2, the exit status. */
int flags_fail(const flags_usage *u);

void flags_print_help(const flags_usage *u, FILE *out);

#endif
